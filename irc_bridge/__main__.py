"""`python -m irc_bridge`, and the script for `spark-submit .../irc_bridge/__main__.py`."""

import sys
from pathlib import Path


def _start() -> None:
    from irc_bridge.cli.main import main

    main()


# Python puts the folder of a script first on its path: there `http` would be the room, not the standard library.
if sys.path and Path(sys.path[0]).absolute() == Path(__file__).absolute().parent:
    del sys.path[0]

_start()
