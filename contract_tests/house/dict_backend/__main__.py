"""The bridge's own commands, with one backend more."""

from irc_bridge import backends
from irc_bridge.cli.main import main

backends.BACKENDS = {**backends.BACKENDS, "dict": "contract_tests.house.dict_backend"}
main()
