"""kill -9 at every step of a purge, of the removal of the files, and of the registration that brings them back."""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import lance
import pytest

from contract_tests.directory.crashing import Change, finishes
from contract_tests.directory.opened import (
    Directory,
    append,
    load,
    names,
    new_table,
    open_in,
    path_of,
    rows,
    versions,
)
from contract_tests.directory.test_s3_crashes import finishes as finishes_on_s3
from contract_tests.worlds.disks import folder_in_memory
from contract_tests.worlds.roots import S3Root
from contract_tests.worlds.s3 import S3
from irc_bridge.catalog.models import TABLE_UUID
from irc_bridge.catalog.ports import CanKeepPurged, CanListDeregistered
from irc_bridge.errors import BridgeError
from irc_bridge.storage.local_trees import STAGED

T = ("t",)
HOUR_MS = 3_600_000


@pytest.fixture
def root() -> Iterator[Path]:
    with folder_in_memory() as folder:
        yield folder


def purge(catalog: Directory) -> None:
    catalog.purge_table(T, HOUR_MS)


def drop(catalog: Directory) -> None:
    catalog.drop_table(T)


def remove(catalog: Directory) -> None:
    assert isinstance(catalog, CanKeepPurged)
    for each in catalog.purges():
        catalog.remove_purged(each)


def register(catalog: Directory) -> None:
    assert isinstance(catalog, CanListDeregistered)
    (found,) = catalog.deregistered()
    catalog.register_table(T, found.location)


def make(catalog: Directory) -> None:
    info = catalog.create_table(T, new_table())
    append(info, 1).tags.create("tagged", 1)


def make_purged(catalog: Directory) -> None:
    make(catalog)
    purge(catalog)


def killed(change: Change, mode: str, root: Path, prepare: Change) -> list[Path]:
    """One root for each step at which the change was killed."""
    prepared = root / "prepared"
    prepared.mkdir()
    prepare(open_in(mode, prepared))
    left: list[Path] = []
    for allowed in itertools.count():
        folder = root / f"killed-at-{allowed}"
        shutil.copytree(prepared, folder)
        if finishes(change, mode, folder, allowed):
            return left
        left.append(folder)
    raise AssertionError


def folder_of(root: Path) -> Path | None:
    """That of the table, if it is there with all its versions."""
    for each in root.iterdir():
        if each.name == "t.lance" or each.name.endswith("_t"):
            dataset = lance.dataset(str(each))
            assert (dataset.version, dataset.to_table()["id"].to_pylist()) == (2, [1])
            assert dataset.checkout_version("tagged").version == 1
            return each
    return None


def assert_nothing_left(root: Path) -> None:
    """But what a process that died was moving away, or writing."""
    left = [each for each in root.rglob("*") if each.is_file() and "__manifest" not in each.parts]
    kept = [each for each in left if ".irc-bridge-dropped" not in each.parts and not each.name.startswith(STAGED)]
    assert kept == []


def assert_back(catalog: Directory, uuid: str) -> None:
    assert names(catalog) == ["t"]
    info = load(catalog, T)
    assert (versions(info), info.tags, info.properties[TABLE_UUID]) == ([1, 2], {"tagged": 1}, uuid)
    assert lance.dataset(path_of(info)).to_table()["id"].to_pylist() == [1]


def uuid_in(root: Path) -> str:
    folder = folder_of(root)
    return str(lance.dataset(str(folder)).metadata[TABLE_UUID])


def test_a_purge_leaves_the_table_or_all_its_files(root: Path, mode: str) -> None:
    left = killed(purge, mode, root, make)
    assert len(left) >= 4
    for folder in left:
        catalog, uuid = open_in(mode, folder), uuid_in(folder)
        if not names(catalog):
            register(catalog)
        assert_back(catalog, uuid)
        # whatever the purge left: a table that is only deregistered keeps its files
        catalog.deregister_table(T)
        remove(catalog)
        assert folder_of(folder) is not None
        register(catalog)
        purge(catalog)
        remove(catalog)
        assert_nothing_left(folder)


def test_what_a_drop_leaves_is_removed_by_the_next_look(root: Path, mode: str) -> None:
    left = killed(drop, mode, root, make)
    assert len(left) >= 6
    finished = 0
    for folder in left:
        catalog = open_in(mode, folder)
        if names(catalog):
            assert folder_of(folder) is not None
            catalog.drop_table(T)
        remove(catalog)
        if folder_of(folder) is not None:
            # killed before the note: deregistered, and whole
            register(catalog)
            catalog.drop_table(T)
        else:
            finished += 1
        assert_nothing_left(folder)
    assert finished


def test_a_removal_is_taken_up_where_it_was_left(root: Path, mode: str) -> None:
    left = killed(remove, mode, root, make_purged)
    assert len(left) >= 4
    for folder in left:
        other = folder.with_name(f"{folder.name}-registered")
        shutil.copytree(folder, other)
        remove(open_in(mode, folder))
        assert_nothing_left(folder)
        assert names(open_in(mode, folder)) == []
        assert versions(open_in(mode, folder).create_table(T, new_table())) == [1]
        assert_registered_whole_or_refused(open_in(mode, other), other)


def assert_registered_whole_or_refused(catalog: Directory, root: Path) -> None:
    assert isinstance(catalog, CanListDeregistered)
    for each in catalog.deregistered():
        try:
            catalog.register_table(T, each.location)
        except BridgeError as error:
            assert error.status in (400, 409), error.message
            assert names(catalog) == []
            continue
        assert_back(catalog, uuid_in(root))
        remove(catalog)
        assert_back(catalog, uuid_in(root))


def test_a_registration_leaves_a_purged_table_or_the_table(root: Path, mode: str) -> None:
    left = killed(register, mode, root, make_purged)
    assert len(left) >= 3
    for folder in left:
        catalog, uuid = open_in(mode, folder), uuid_in(folder)
        if not names(catalog):
            register(catalog)
        assert_back(catalog, uuid)
        remove(catalog)
        assert_back(catalog, uuid)
        catalog.deregister_table(T)
        remove(catalog)
        assert folder_of(folder) is not None


def test_a_removal_on_s3(s3: S3, mode: str) -> None:
    """There a folder goes file by file."""
    for allowed in range(100):
        root = S3Root(s3.bucket("purge-crash"), s3.options)
        catalog = open_in(mode, root.uri, **root.options)
        location = catalog.create_table(T, new_table()).location
        for _ in range(2):
            root.write(location, rows(1), mode="append")
        purge(catalog)
        if finishes_on_s3(remove, mode, root, allowed):
            break
        again = open_in(mode, root.uri, **root.options)
        assert names(again) == []
        remove(again)
        assert not root.files(location)
        assert versions(again.create_table(T, new_table())) == [1]
    assert allowed >= 4
