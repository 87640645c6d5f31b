"""Commits that reach a table under its old path while it leaves that folder."""

from pathlib import Path

import lance
import pytest

from contract_tests.directory.opened import (
    Directory,
    append,
    load,
    names,
    new_table,
    open_in,
    path_of,
    rows,
    set_properties,
    versions,
)
from irc_bridge.backends.directory.moving import Mover
from irc_bridge.catalog.models import TableInfo
from irc_bridge.catalog.ports import CanListDeregistered

T, U = ("t",), ("u",)


@pytest.fixture
def stopped(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Directory, TableInfo]:
    """A rename that a crash stopped after its row had moved, and the table as it was before."""
    catalog = open_in("compat", root)
    old = catalog.create_table(T, new_table())
    append(old, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Mover, "_leave", lambda *_: None)
        catalog.rename_table(T, U)
    assert names(catalog) == ["u"]
    return catalog, old


def finish(catalog: Directory) -> TableInfo:
    return set_properties(catalog, U, {"finished": "yes"})


def test_a_commit_to_the_old_path_is_carried_over(stopped: tuple[Directory, TableInfo]) -> None:
    catalog, old = stopped
    append(old, 2)
    info = finish(catalog)
    assert versions(info) == [1, 2, 3, 4]
    assert sorted(lance.dataset(path_of(info)).to_table()["id"].to_pylist()) == [1, 2]
    assert not Path(path_of(old)).exists()


def test_a_commit_to_the_new_path_is_kept(stopped: tuple[Directory, TableInfo]) -> None:
    catalog, old = stopped
    append(load(catalog, U), 3)
    info = finish(catalog)
    assert versions(info) == [1, 2, 3, 4]
    assert sorted(lance.dataset(path_of(info)).to_table()["id"].to_pylist()) == [1, 3]
    assert not Path(path_of(old)).exists()


def test_of_two_next_versions_neither_is_gone(stopped: tuple[Directory, TableInfo]) -> None:
    catalog, old = stopped
    append(old, 2)
    append(load(catalog, U), 3)
    info = finish(catalog)
    assert versions(info) == [1, 2, 3, 4]
    assert sorted(lance.dataset(path_of(info)).to_table()["id"].to_pylist()) == [1, 3]
    assert lance.dataset(path_of(old)).to_table().sort_by("id").equals(rows(1, 2))
    assert names(catalog) == ["u"]
    assert isinstance(catalog, CanListDeregistered)
    assert [each.location for each in catalog.deregistered()] == [old.location]
