from collections.abc import Iterator

import pytest
from lance.namespace import RestNamespace

from contract_tests.lance.client import Lance
from contract_tests.worlds.world import Bridge


@pytest.fixture
def lance_rest(bridge: Bridge) -> Iterator[Lance]:
    with Lance(bridge.server.url) as client:
        yield client


@pytest.fixture
def rest(bridge: Bridge) -> RestNamespace:
    """Lance's own client."""
    return RestNamespace(uri=f"{bridge.server.url}/lance")
