"""kill -9 at every step of what makes a client's rows a table's content."""

import itertools
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from contract_tests.directory.crashing import Change, finishes
from contract_tests.directory.opened import MODES, Directory, load, names, open_in, path_of, versions
from irc_bridge.catalog.models import NewTable
from irc_bridge.catalog.ports import CanWriteRows

T = ("t",)
OLD, NEW = pa.table({"id": [1, 2, 3]}), pa.table({"x": ["a"]})


@pytest.fixture(params=sorted(MODES))
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def create(catalog: Directory) -> None:
    catalog.create_table(T, NewTable({"owner": "ann"}, schema=OLD.schema, rows=OLD))


def overwrite(catalog: Directory) -> None:
    assert isinstance(catalog, CanWriteRows)
    catalog.write_rows(T, NEW, {"owner": "bob"}, overwrite=True)


def killed_at_each_step(root: Path, mode: str, change: Change, prepare: Change | None = None) -> list[Path]:
    left: list[Path] = []
    for allowed in itertools.count():
        folder = root / f"killed-at-{allowed}"
        folder.mkdir()
        if prepare:
            prepare(open_in(mode, folder))
        if finishes(change, mode, folder, allowed):
            return left
        left.append(folder)
    raise AssertionError


def content(catalog: Directory) -> tuple[list[int], pa.Table, str | None]:
    info = load(catalog, T)
    return versions(info), lance.dataset(path_of(info)).to_table(), info.properties.get("owner")


def test_killed_while_creating(tmp_path: Path, mode: str) -> None:
    killed = killed_at_each_step(tmp_path, mode, create)
    assert len(killed) >= 3
    for folder in killed:
        catalog = open_in(mode, folder)
        if names(catalog) == ["t"]:
            assert content(catalog) == ([1], OLD, "ann")
            catalog.drop_table(T)
        assert names(catalog) == []
        create(catalog)
        assert content(catalog) == ([1], OLD, "ann")


def test_killed_while_overwriting(tmp_path: Path, mode: str) -> None:
    killed = killed_at_each_step(tmp_path, mode, overwrite, prepare=create)
    assert len(killed) >= 2
    seen = set()
    for folder in killed:
        catalog = open_in(mode, folder)
        made, rows, owner = content(catalog)
        seen.add(tuple(made))
        assert (rows, owner) == ((OLD, "ann") if made == [1] else (NEW, "bob"))
        overwrite(catalog)
        assert content(catalog) == ([*made, made[-1] + 1], NEW, "bob")
    assert (1,) in seen
