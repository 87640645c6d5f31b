from collections.abc import Iterator

import pytest
from lance.namespace import RestNamespace

from contract_tests.lance.client import InDefault, Lance
from contract_tests.worlds.world import Bridge, UpstreamWorld


@pytest.fixture
def lance_rest(bridge: Bridge) -> Iterator[Lance]:
    kind = InDefault if isinstance(bridge.world, UpstreamWorld) else Lance
    with kind(bridge.server.url) as client:
        yield client


@pytest.fixture
def rest(bridge: Bridge) -> RestNamespace:
    """Lance's own client."""
    return RestNamespace(uri=f"{bridge.server.url}/lance")
