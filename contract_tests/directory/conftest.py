import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract_tests.directory.opened import MODES, Directory, new_table, open_in
from irc_bridge.catalog.models import TableInfo


@pytest.fixture(params=sorted(MODES))
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    return folder


@pytest.fixture
def open_root() -> Iterator[Path]:
    """A root that others can reach, unlike pytest's own folders."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def catalog(root: Path, mode: str) -> Directory:
    """Each mode in turn."""
    return open_in(mode, root)


@pytest.fixture(params=["compat", "v2"])
def nested(request: pytest.FixtureRequest, root: Path) -> Directory:
    """The modes that have a manifest."""
    return open_in(request.param, root)


@pytest.fixture
def table(catalog: Directory) -> TableInfo:
    """Made by us, without rows."""
    return catalog.create_table(("t",), new_table(owner="ann"))
