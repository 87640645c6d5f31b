"""kill -9 at every step of what changes version rows, of the move that a rename may be, and of the migration."""

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

import lance
import pytest

from contract_tests.directory.crashing import finishes
from contract_tests.directory.managed import (
    FLAG,
    ids_of,
    make,
    manifest,
    open_managed,
    rows_of,
    staged,
    version_rows,
)
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
from contract_tests.directory.staging import stage
from irc_bridge.backends.directory import open_migration
from irc_bridge.catalog.models import Levels, Migrated, NewVersion, TableInfo, VersionRange
from irc_bridge.catalog.ports import CanListDeregistered

T: Levels = ("t",)
U: Levels = ("u",)
TRASH = ".irc-bridge-dropped"
"""What is being deleted. Others empty it later."""

Prepare = Callable[[Path], object]


def killed(change: Callable[[Directory], object], root: Path, prepare: Prepare) -> list[Path]:
    """One root for each step at which the change was killed. The process that dies knows of the version management
    from the manifest only."""
    left: list[Path] = []
    for allowed in itertools.count():
        folder = root / f"killed-at-{allowed:02}"
        folder.mkdir()
        prepare(folder)
        if finishes(change, "compat", folder, allowed):
            return left
        left.append(folder)
    raise AssertionError


def managed_table(root: Path, table: Levels = T) -> Directory:
    catalog = open_managed("compat", root)
    make_one = catalog.create_table(table, new_table(managed_by="impl", owner="ann"))
    assert versions(make_one) == [1]
    make(catalog, table, 1)
    return catalog


def with_staged(root: Path) -> None:
    stage(load(managed_table(root), T).location, 2)


def create(catalog: Directory) -> None:
    [path] = staged(load(catalog, T))
    catalog.create_table_versions([NewVersion(T, 3, str(path))])


def test_killed_while_a_version_is_made(root: Path) -> None:
    reached = set()
    for folder in killed(create, root, with_staged):
        left = staged(load(open_in("v2", folder), T))
        catalog = open_in("compat", folder)
        made = versions(load(catalog, T))
        assert made == sorted(each.version for each in catalog.list_table_versions(T).items)
        assert set(version_rows(folder)) == ids_of("t", made)
        reached.add(len(made))
        if len(made) == 2:
            assert len(left) == 1
            catalog.create_table_versions([NewVersion(T, 3, str(left[0]))])
        info = load(catalog, T)
        assert versions(info) == [1, 2, 3]
        assert staged(info) == []
        assert lance.dataset(info.location).to_table()["id"].to_pylist() == [1, 2]
        make(catalog, T, 3)
        assert set(version_rows(folder)) == ids_of("t", range(1, 5))
    assert reached == {2, 3}


def two_staged(root: Path) -> None:
    with_staged(root)
    stage(load(managed_table(root, U), U).location, 2)


def create_both(catalog: Directory) -> None:
    entries = [NewVersion(each, 3, str(path)) for each in (T, U) for path in staged(load(catalog, each))]
    catalog.create_table_versions(entries)


def test_killed_while_a_batch_is_made(root: Path) -> None:
    reached = set()
    for folder in killed(create_both, root, two_staged):
        catalog = open_in("compat", folder)
        made = {tuple(versions(load(catalog, each))) for each in (T, U)}
        assert len(made) == 1, "all or none"
        reached |= made
        if made == {(1, 2)}:
            create_both(catalog)
        for each in (T, U):
            assert versions(load(catalog, each)) == [1, 2, 3]
            assert staged(load(catalog, each)) == []
    assert reached == {(1, 2), (1, 2, 3)}


def delete(catalog: Directory) -> None:
    catalog.delete_table_versions(T, [VersionRange(1, 3)], ignore_missing=True)


def three_versions(root: Path) -> None:
    make(managed_table(root), T, 2)


def test_killed_while_versions_are_deleted(root: Path) -> None:
    folders = killed(delete, root, three_versions)
    assert len(folders) >= 3
    for folder in folders:
        catalog = open_in("compat", folder)
        assert versions(load(catalog, T))[-1] == 3
        delete(catalog)
        assert versions(load(catalog, T)) == [3]
        assert set(version_rows(folder)) == {"t$3"}


@pytest.mark.parametrize("kind", ["storage", "impl"])
def test_killed_while_a_table_goes_over(root: Path, kind: str) -> None:
    def prepare(folder: Path) -> None:
        catalog = managed_table(folder)
        if kind == "impl":
            set_properties(catalog, T, {"managed_by": "storage"})

    before = 2 if kind == "storage" else 3
    reached = set()
    for folder in killed(partial(go_over, kind), root, prepare):
        catalog = open_in("compat", folder)
        info = load(catalog, T)
        reached.add(info.managed_by)
        if info.managed_by != kind:
            info = set_properties(catalog, T, {"managed_by": kind})
        assert versions(info) == list(range(1, before + 2))
        if kind == "storage":
            assert version_rows(folder) == {}
            append(info, 7)
        else:
            assert set(version_rows(folder)) == ids_of("t", range(1, before + 2))
            make(catalog, T, 7)
        assert versions(load(catalog, T)) == list(range(1, before + 3))
    assert kind in reached


def go_over(kind: str, catalog: Directory) -> None:
    set_properties(catalog, T, {"managed_by": kind})


def turn_on(folder: Path, _: Directory) -> None:
    open_managed("compat", folder).list_table_versions(T)


def unmanaged(folder: Path) -> None:
    catalog = open_in("compat", folder)
    append(catalog.create_table(T, new_table(managed_by="impl")), 1)
    append(catalog.create_table(U, new_table()), 1)


def folders_after_crashes(
    root: Path, prepare: Callable[[Path], object], change: Callable[[Path, Directory], object]
) -> list[Path]:
    """One for each step at which the change was killed."""
    folders = []
    for allowed in itertools.count():
        folder = root / f"killed-at-{allowed:02}"
        folder.mkdir()
        prepare(folder)
        if finishes(partial(change, folder), "compat", folder, allowed):
            break
        folders.append(folder)
    assert len(folders) >= 2
    return folders


def test_killed_while_it_is_turned_on(root: Path) -> None:
    folders = folders_after_crashes(root, unmanaged, turn_on)
    for folder in folders:
        catalog = open_managed("compat", folder)
        assert versions(load(catalog, T)) == versions(load(catalog, U)) == [1, 2]
        make(catalog, T, 2)
        assert manifest(folder).metadata[FLAG] == "true"
        assert set(version_rows(folder)) == ids_of("t", range(1, 4))


def drop(catalog: Directory) -> None:
    catalog.drop_table(T)


def test_killed_while_dropping(root: Path) -> None:
    folders = killed(drop, root, three_versions)
    assert len(folders) >= 3
    for folder in folders:
        catalog = open_in("compat", folder)
        if names(catalog) == ["t"]:
            assert versions(load(catalog, T)) == [1, 2, 3]
            assert set(version_rows(folder)) == ids_of("t", range(1, 4))
            catalog.drop_table(T)
        elif (folder / "t.lance" / ".lance-deregistered").exists():
            catalog.drop_table(T)
        assert names(catalog) == []
        assert version_rows(folder) == rows_of(folder, "table") == {}
        assert versions(catalog.create_table(T, new_table(managed_by="impl"))) == [1]
        assert set(version_rows(folder)) == {"t$1"}


def deregister(catalog: Directory) -> None:
    catalog.deregister_table(T)


def test_killed_while_deregistering(root: Path) -> None:
    for folder in killed(deregister, root, three_versions):
        catalog = open_in("compat", folder)
        if names(catalog) == ["t"]:
            catalog.deregister_table(T)
        assert version_rows(folder) == {}
        assert isinstance(catalog, CanListDeregistered)
        [found] = catalog.deregistered()
        assert found.table == T
        assert versions(catalog.register_table(T, found.location)) == [1, 2, 3]
        assert set(version_rows(folder)) == ids_of("t", range(1, 4))


def rename(catalog: Directory) -> None:
    catalog.rename_table(T, U)


def with_row(root: Path) -> None:
    for number in range(2):
        append(load_or_make(root), number)


def load_or_make(root: Path) -> TableInfo:
    catalog = open_in("compat", root)
    return load(catalog, T) if names(catalog) else catalog.create_table(T, new_table())


def by_folder(root: Path) -> None:
    for number in range(3):
        lance.write_dataset(rows(number), root / "t.lance", mode="append")


@pytest.mark.parametrize(
    ("prepare", "ids"), [(three_versions, [1, 2]), (with_row, [0, 1]), (by_folder, [0, 1, 2])]
)
def test_killed_while_a_table_leaves_its_folder(root: Path, prepare: Prepare, ids: list[int]) -> None:
    folders = killed(rename, root, prepare)
    assert len(folders) >= 10
    for folder in folders:
        catalog = open_in("compat", folder)
        visible = names(catalog)
        assert visible in (["t"], ["u"])
        info = load(catalog, (visible[0],))
        assert versions(info) == [1, 2, 3]
        assert isinstance(catalog, CanListDeregistered)
        assert list(catalog.deregistered()) == []
        if visible == ["t"] or "moved-from" in str(rows_of(folder, "table")):
            rename(catalog)
        assert names(catalog) == ["u"]
        after = load(catalog, U)
        assert versions(after) == [1, 2, 3]
        assert lance.dataset(after.location).to_table()["id"].to_pylist() == ids
        assert set(rows_of(folder, "table")) == {"u"}
        assert set(version_rows(folder)) == (ids_of("u", range(1, 4)) if prepare is three_versions else set())
        left = {path.name for path in folder.iterdir()} - {TRASH}
        assert left == {"__manifest", Path(path_of(after)).name}
        assert not list(folder.glob("*/.irc-bridge-moving"))
        assert "moved-from" not in str(rows_of(folder, "table"))


def tables_in_folders(root: Path) -> None:
    open_in("v2", root).create_namespace(("ns",), {})
    for number in range(3):
        lance.write_dataset(rows(number), root / f"t{number}.lance")


def migrated(folder: Path) -> list[Migrated]:
    migration = open_migration(str(folder))
    return list(migration.run(migration.names(), dry_run=False))


def migrate(folder: Path, _: Directory) -> None:
    migrated(folder)


def test_killed_while_migrating(root: Path) -> None:
    folders = folders_after_crashes(root, tables_in_folders, migrate)
    for folder in folders:
        assert names(open_in("compat", folder)) == ["t0", "t1", "t2"]
        done = migrated(folder)
        assert {each.skipped for each in done} <= {None, "is in the manifest already"}
        assert names(open_in("v2", folder)) == ["t0", "t1", "t2"]
        assert set(rows_of(folder, "table")) == {"t0", "t1", "t2"}
