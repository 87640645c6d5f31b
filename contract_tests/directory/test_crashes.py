"""A process may die at any line: kill -9 at every step of every change."""

import itertools
import shutil
from pathlib import Path

import lance
import pytest

from contract_tests.directory.crashing import Change, finishes
from contract_tests.directory.opened import (
    Directory,
    append,
    declared,
    load,
    names,
    new_table,
    open_in,
    path_of,
    rows,
    versions,
)

T, U, A = ("t",), ("u",), ("a",)


def create(catalog: Directory) -> None:
    catalog.create_table(T, new_table(owner="ann"))


def declare(catalog: Directory) -> None:
    catalog.create_table(T, declared(owner="ann"))


def drop(catalog: Directory) -> None:
    catalog.drop_table(T)


def deregister(catalog: Directory) -> None:
    catalog.deregister_table(T)


def rename(catalog: Directory) -> None:
    catalog.rename_table(T, U)


def create_namespace(catalog: Directory) -> None:
    catalog.create_namespace(A, {"owner": "ann"})


def roots_after_crashes(change: Change, mode: str, root: Path, prepare: Change) -> list[Path]:
    """One root for each step at which the change was killed."""
    left: list[Path] = []
    for allowed in itertools.count():
        folder = root / f"killed-at-{allowed}"
        folder.mkdir()
        prepare(open_in(mode, folder))
        if finishes(change, mode, folder, allowed):
            return left
        left.append(folder)
    raise AssertionError


def nothing(_: Directory) -> None:
    pass


@pytest.mark.parametrize("change", [create, declare])
def test_killed_while_creating(root: Path, mode: str, change: Change) -> None:
    killed = roots_after_crashes(change, mode, root, nothing)
    assert len(killed) >= 3
    for folder in killed:
        catalog = open_in(mode, folder)
        if names(catalog) == ["t"]:
            assert load(catalog, T).properties.get("owner", "ann") == "ann"
            catalog.drop_table(T)
        assert names(catalog) == []
        info = catalog.create_table(T, new_table(owner="bob"))
        append(info, 1)
        assert versions(load(catalog, T)) == [1, 2]
        assert names(catalog) == ["t"]


def test_killed_while_dropping(root: Path, mode: str) -> None:
    def prepare(catalog: Directory) -> None:
        append(catalog.create_table(T, new_table(owner="ann")), 1)

    killed = roots_after_crashes(drop, mode, root, prepare)
    assert len(killed) >= 3
    for folder in killed:
        catalog = open_in(mode, folder)
        if names(catalog) == ["t"]:
            assert versions(load(catalog, T)) == [1, 2]
            catalog.drop_table(T)
        elif mode != "v2" and (folder / "t.lance" / ".lance-deregistered").exists():
            catalog.drop_table(T)
        assert names(catalog) == []
        assert not (folder / "t.lance" / "_versions").exists()
        assert versions(catalog.create_table(T, new_table())) == [1]


def test_killed_while_deregistering(root: Path, mode: str) -> None:
    locations = {}

    def prepare(catalog: Directory) -> None:
        info = catalog.create_table(T, new_table(owner="ann"))
        append(info, 1)
        locations[str(Path(path_of(info)).parent)] = info.location

    for folder in roots_after_crashes(deregister, mode, root, prepare):
        catalog = open_in(mode, folder)
        location = locations[str(folder)]
        if names(catalog) == ["t"]:
            assert versions(load(catalog, T)) == [1, 2]
            catalog.deregister_table(T)
        assert names(catalog) == []
        assert lance.dataset(location).version == 2
        assert versions(catalog.register_table(T, location)) == [1, 2]
        assert names(catalog) == ["t"]


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_killed_while_renaming(root: Path, mode: str) -> None:
    def prepare(catalog: Directory) -> None:
        append(catalog.create_table(T, new_table(owner="ann")), 1)

    killed = roots_after_crashes(rename, mode, root, prepare)
    assert len(killed) >= 1
    for folder in killed:
        catalog = open_in(mode, folder)
        visible = names(catalog)
        assert visible in (["t"], ["u"])
        if visible == ["t"]:
            catalog.rename_table(T, U)
        assert names(catalog) == ["u"]
        assert versions(load(catalog, U)) == [1, 2]


def test_killed_while_renaming_a_table_found_by_its_folder(root: Path) -> None:
    def prepare(catalog: Directory) -> None:
        lance.write_dataset(rows(1), catalog.place_table(T, None))

    for folder in roots_after_crashes(rename, "compat", root, prepare):
        catalog = open_in("compat", folder)
        visible = names(catalog)
        assert visible in (["t"], ["u"])
        assert versions(load(catalog, (visible[0],))) == [1]
        if visible == ["t"]:
            catalog.rename_table(T, U)
        assert names(catalog) == ["u"]


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_killed_while_making_the_first_namespace(root: Path, mode: str) -> None:
    killed = roots_after_crashes(create_namespace, mode, root, nothing)
    assert len(killed) >= 3
    for folder in killed:
        catalog = open_in(mode, folder)
        if not catalog.namespace_exists(A):
            catalog.create_namespace(A, {})
        assert catalog.list_namespaces(()).items == ("a",)


def test_nothing_is_left_beside_a_dropped_table(root: Path, mode: str) -> None:
    catalog = open_in(mode, root)
    create(catalog)
    drop(catalog)
    shutil.rmtree(root / "__manifest", ignore_errors=True)
    assert list(root.iterdir()) == []
