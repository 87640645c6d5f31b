"""A backend is a keeper of names. One made of a dict passes the contract tests for what it offers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from contract_tests.contract.conftest import ROOT
from contract_tests.contract.test_caching import *  # noqa: F403
from contract_tests.contract.test_commits import *  # noqa: F403
from contract_tests.contract.test_version_commits import TestAddSnapshot as TestAddSnapshot
from contract_tests.contract.test_version_commits import location as location
from contract_tests.house import dict_backend
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import LISTING, Bridge, World

LINES = 150

# the names live in one process: a second server does not see them
del test_other_servers_give_the_same_tags  # noqa: F821


class DictServer(Server):
    module = "contract_tests.house.dict_backend"


@dataclass(frozen=True)
class DictWorld(World):
    def configuration(self, root: Root | Path, more: str = "") -> str:
        return super().configuration(root, more).replace('backend = "dir"', 'backend = "dict"')

    def server(self, configuration: Path, *arguments: str) -> Server:
        checkout = {"PYTHONPATH": str(Path(__file__).parents[2])}
        options = ("--port", "0", *arguments)
        return DictServer("--config", configuration, *options, cwd=configuration.parent, environment=checkout)


DICT = DictWorld(
    "dict", "", {**LISTING.cannot, "folders as tables": "a folder is no table until it is registered"}
)


@pytest.fixture(scope="session", params=[DICT], ids=lambda world: world.name)
def world(request: pytest.FixtureRequest) -> World:
    chosen: World = request.param
    return chosen


@pytest.fixture(scope="module")
def bridge(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """Its own: one of another world may still be there for the session."""
    with world.start(tmp_path_factory.mktemp(world.name)) as started:
        yield started


@pytest.fixture
def place() -> tuple[str, ...]:
    return ROOT


def test_the_backend_is_small() -> None:
    texts = [file.read_text() for file in Path(dict_backend.__file__).parent.glob("*.py")]
    assert sum(1 for text in texts for line in text.splitlines() if line.strip()) <= LINES
