from pathlib import Path

import pytest

from contract_tests.directory.opened import MODES, Directory, open_in


@pytest.fixture(params=sorted(MODES))
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    return folder


@pytest.fixture
def catalog(root: Path, mode: str) -> Directory:
    """Each mode in turn."""
    return open_in(mode, root)


@pytest.fixture(params=["compat", "v2"])
def nested(request: pytest.FixtureRequest, root: Path) -> Directory:
    """The modes that have a manifest."""
    return open_in(request.param, root)
