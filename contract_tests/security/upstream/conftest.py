from collections.abc import Iterator
from pathlib import Path

import pytest

from contract_tests.security.upstream.canary import Canary, canary
from contract_tests.security.upstream.client import Client, client_of
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.upstream import bridge_over
from contract_tests.worlds.world import UpstreamWorld

PURGE_AT_ONCE = 'purge_after = "0s"\n'


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Canary:
    return canary(tmp_path_factory.mktemp("outside"))


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory, outside: Canary) -> Path:
    """What the bridge of `confined` allows; in it a link leads out."""
    folder = tmp_path_factory.mktemp("below")
    (folder / "out").symlink_to(outside.folder)
    return folder


@pytest.fixture(scope="module")
def running(upstream: UpstreamWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Without `root` and `allowed_locations`."""
    with bridge_over(upstream.url, tmp_path_factory.mktemp("bridge"), PURGE_AT_ONCE) as server:
        yield server


@pytest.fixture(scope="module")
def confining(upstream: UpstreamWorld, below: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    setting = f'{PURGE_AT_ONCE}allowed_locations = ["{below}"]\n'
    with bridge_over(upstream.url, tmp_path_factory.mktemp("bridge"), setting) as server:
        yield server


@pytest.fixture
def client(running: Server, upstream: UpstreamWorld, name: str) -> Client:
    return client_of(running, upstream, name)


@pytest.fixture
def confined(confining: Server, upstream: UpstreamWorld, name: str) -> Client:
    return client_of(confining, upstream, f"{name}_confined")
