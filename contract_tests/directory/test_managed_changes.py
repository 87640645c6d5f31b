"""What removes and carries version rows, and manifests that got past them."""

import shutil
from pathlib import Path
from typing import Any

import lance
import pytest

from contract_tests.directory.managed import (
    FLAG,
    MANAGED,
    final_file,
    half_made,
    ids_of,
    make,
    numbers,
    open_managed,
    version_rows,
)
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
    set_properties,
    versions,
)
from contract_tests.directory.staging import stage, stage_first
from irc_bridge.catalog.models import Levels, TableInfo, VersionRange
from irc_bridge.errors import (
    ConcurrentModification,
    InvalidInput,
    TableNotFound,
    TableVersionAlreadyExists,
    TableVersionNotFound,
)
from irc_bridge.lance_store.version_files import VersionFiles
from irc_bridge.storage.local import LocalStorage

T: Levels = ("ns", "t")
U: Levels = ("ns", "u")


@pytest.fixture(params=MANAGED)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def catalog(root: Path, mode: str) -> Directory:
    catalog = open_managed(mode, root)
    catalog.create_namespace(("ns",), {})
    return catalog


@pytest.fixture
def table(catalog: Directory) -> TableInfo:
    return catalog.create_table(T, new_table(managed_by="impl"))


class TestDelete:
    def test_ranges(self, catalog: Directory, table: TableInfo, root: Path) -> None:
        for number in range(5):
            make(catalog, T, number)
        assert catalog.delete_table_versions(T, [VersionRange(1, 3), VersionRange(4, 5)], False) == 3
        assert set(version_rows(root)) == ids_of("ns$t", [3, 5, 6])
        assert versions(load(catalog, T)) == [3, 5, 6] == sorted(numbers(catalog, T))
        assert [final_file(table, each).exists() for each in range(1, 7)] == [
            False,
            False,
            True,
            False,
            True,
            True,
        ]
        with pytest.raises(TableVersionNotFound, match="4"):
            catalog.delete_table_versions(T, [VersionRange(3, 5)], ignore_missing=False)
        assert catalog.delete_table_versions(T, [VersionRange(1, 4)], ignore_missing=True) == 1
        assert versions(load(catalog, T)) == [5, 6]

    def test_the_latest(self, catalog: Directory, table: TableInfo, root: Path) -> None:
        """Which takes it back."""
        make(catalog, T, 1)
        catalog.delete_table_versions(T, [VersionRange(2, 3)], ignore_missing=False)
        other = open_in("v2", root)
        assert versions(load(catalog, T)) == versions(load(other, T)) == [1]
        make(other, T, 2)
        assert lance.dataset(path_of(table)).to_table()["id"].to_pylist() == [2]
        assert set(version_rows(root)) == {"ns$t$1", "ns$t$2"}

    def test_all(self, catalog: Directory, table: TableInfo, root: Path) -> None:
        make(catalog, T, 1)
        assert catalog.delete_table_versions(T, [VersionRange(0, -1)], ignore_missing=False) == 2
        assert version_rows(root) == {}
        assert names(catalog, ("ns",)) == ["t"]
        assert versions(load(catalog, T)) == []


class TestStrangers:
    """Writers that opened a table before the catalog decided about it commit past it, and are told it worked."""

    def test_their_version_counts(self, catalog: Directory, table: TableInfo, root: Path) -> None:
        make(catalog, T, 1)
        asked = stage(table.location, 2)
        append(table, 3)
        with pytest.raises(TableVersionAlreadyExists):
            catalog.create_table_versions([asked.entry(T)])
        assert not catalog.was_made(asked.entry(T))
        assert versions(load(catalog, T)) == numbers(catalog, T)[::-1] == [1, 2, 3]
        assert set(version_rows(root)) == {"ns$t$1", "ns$t$2", "ns$t$3"}
        append(table, 4)
        append(table, 5)
        info = set_properties(catalog, T, {"owner": "ann"})
        assert (versions(info), info.properties["owner"]) == ([1, 2, 3, 4, 5, 6], "ann")
        assert lance.dataset(path_of(table)).to_table()["id"].to_pylist() == [1, 3, 4, 5]

    def test_before_the_first_version(self, catalog: Directory, root: Path) -> None:
        info = catalog.create_table(T, declared(managed_by="impl"))
        asked = stage_first(info.location, 1)
        lance.write_dataset(rows(9), path_of(info))
        with pytest.raises(TableVersionAlreadyExists):
            catalog.create_table_versions([asked.entry(T)])
        assert versions(load(catalog, T)) == [1]
        assert lance.dataset(path_of(info)).to_table()["id"].to_pylist() == [9]

    def test_in_the_place_of_a_version_that_was_made(
        self, catalog: Directory, table: TableInfo, root: Path
    ) -> None:
        """By a row whose maker died before it was told, and before anybody saw it."""
        asked = stage(table.location, 1)
        half_made(catalog, T, asked)
        append(table, 9)
        assert versions(load(catalog, T)) == [1, 2]
        assert not catalog.was_made(asked.entry(T))
        with pytest.raises(TableVersionAlreadyExists):
            catalog.create_table_versions([asked.entry(T)])
        make(catalog, T, 3)
        assert versions(load(catalog, T)) == [1, 2, 3]
        assert lance.dataset(path_of(table)).to_table()["id"].to_pylist() == [9, 3]

    def test_while_the_row_is_on_its_way(self, catalog: Directory, table: TableInfo) -> None:
        """The maker is alive, and hears of it."""
        asked = stage(table.location, 1)
        original = VersionFiles.promote

        def late(*args: Any) -> bool:
            if lance.dataset(path_of(table)).version == 1:
                append(table, 9)
            return original(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(VersionFiles, "promote", late)
            with pytest.raises(TableVersionAlreadyExists):
                catalog.create_table_versions([asked.entry(T)])
        assert versions(load(catalog, T)) == [1, 2]
        assert lance.dataset(path_of(table)).to_table()["id"].to_pylist() == [9]


class TestNames:
    def test_drop_and_deregister_remove_the_rows(self, catalog: Directory, table: TableInfo, root: Path) -> None:
        catalog.create_table(U, new_table(managed_by="impl"))
        for each in (T, U):
            make(catalog, each, 1)
        location = load(catalog, T).location
        catalog.deregister_table(T)
        assert set(version_rows(root)) == {"ns$u$1", "ns$u$2"}
        catalog.drop_table(U)
        assert version_rows(root) == {}
        assert versions(catalog.register_table(T, location)) == [1, 2]
        assert set(version_rows(root)) == {"ns$t$1", "ns$t$2"}
        assert versions(load(catalog, T)) == [1, 2]

    def test_rename_carries_them(self, catalog: Directory, table: TableInfo, root: Path) -> None:
        make(catalog, T, 1)
        before = manifest_version(root)
        catalog.rename_table(T, U)
        assert manifest_version(root) == before + 1
        assert set(version_rows(root)) == {"ns$u$1", "ns$u$2"}
        make(catalog, U, 2)
        assert versions(load(catalog, U)) == [1, 2, 3]

    def test_rename_out_of_its_folder(self, catalog: Directory, root: Path, mode: str) -> None:
        info = catalog.create_table(("r",), new_table(managed_by="impl"))
        for number in range(4):
            make(catalog, ("r",), number)
        catalog.rename_table(("r",), ("s",))
        assert set(version_rows(root)) == ids_of("s", range(1, 6))
        after = load(catalog, ("s",))
        assert versions(after) == [1, 2, 3, 4, 5]
        assert lance.dataset(path_of(after)).to_table()["id"].to_pylist() == [0, 1, 2, 3]
        assert (after.location == info.location) == (mode == "v2")
        make(catalog, ("s",), 4)
        assert versions(load(catalog, ("s",))) == [1, 2, 3, 4, 5, 6]

    @pytest.mark.parametrize("half", [True, False])
    def test_a_version_that_comes_while_the_files_move(
        self, root: Path, half: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        catalog, other = open_managed("compat", root), open_in("compat", root)
        info = catalog.create_table(("r",), new_table(managed_by="impl"))
        asked = stage(info.location, 1)
        copy = LocalStorage.copy_tree

        def interrupted(storage: LocalStorage, source: str, target: str) -> None:
            monkeypatch.undo()
            copy(storage, source, target)
            if half:
                half_made(other, ("r",), asked)
            else:
                other.create_table_versions([asked.entry(("r",))])

        monkeypatch.setattr(LocalStorage, "copy_tree", interrupted)
        with pytest.raises(ConcurrentModification, match="while it was renamed"):
            catalog.rename_table(("r",), ("s",))
        assert names(catalog) == ["r"]
        assert versions(load(catalog, ("r",))) == [1, 2]
        assert {path.name for path in root.iterdir()} == {"__manifest", "r.lance"}
        catalog.rename_table(("r",), ("s",))
        assert versions(load(catalog, ("s",))) == [1, 2]

    def test_a_writer_of_a_renamed_table_is_told(self, catalog: Directory, table: TableInfo, root: Path) -> None:
        asked = stage(table.location, 1)
        catalog.rename_table(T, U)
        with pytest.raises(TableNotFound):
            catalog.create_table_versions([asked.entry(T)])
        assert set(version_rows(root)) == {"ns$u$1"}

    def test_a_table_made_anew_gets_no_version_of_the_old(self, root: Path) -> None:
        """Under one name, in one folder: the row is decided on while the table goes and comes."""
        catalog, other = open_managed("compat", root), open_in("compat", root)
        info = catalog.create_table(("t",), new_table(managed_by="impl"))
        asked = stage(info.location, 1)
        original = VersionFiles.final_name

        def replaced(*args: Any) -> str:
            other.drop_table(("t",))
            other.create_table(("t",), new_table(managed_by="impl", owner="bob"))
            return original(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(VersionFiles, "final_name", replaced)
            with pytest.raises(InvalidInput, match="belongs to another table"):
                catalog.create_table_versions([asked.entry(("t",))])
        assert set(version_rows(root)) == {"t$1"}
        after = load(catalog, ("t",))
        assert (after.properties["owner"], versions(after)) == ("bob", [1])


def manifest_version(root: Path) -> int:
    version: int = lance.dataset(root / "__manifest").version
    return version


def test_the_manifest_is_taken_away_and_made_again(catalog: Directory, table: TableInfo, root: Path) -> None:
    shutil.rmtree(root / "__manifest")
    catalog.create_namespace(("other",), {})
    catalog.create_table(("other", "x"), new_table(managed_by="impl"))
    assert lance.dataset(root / "__manifest").metadata[FLAG] == "true"
    assert set(version_rows(root)) == {"other$x$1"}
