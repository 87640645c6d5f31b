"""Versions that rows of the manifest make: what the seeds say of each operation."""

from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from contract_tests.directory.managed import (
    MANAGED,
    append_managed,
    catalog_over,
    final_file,
    half_made,
    ids_of,
    keeper_of,
    make,
    numbers,
    open_managed,
    staged,
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
from irc_bridge.catalog.models import History, Levels, TableInfo, VersionRange
from irc_bridge.errors import (
    BrokenTable,
    ConcurrentModification,
    InvalidInput,
    TableVersionAlreadyExists,
    TableVersionNotFound,
)
from irc_bridge.lance_catalog.versions import TableChange
from irc_bridge.lance_store.rows import RowTable
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


class TestCreate:
    def test_the_four_steps(
        self, catalog: Directory, table: TableInfo, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = stage(table.location, 1)
        [file] = staged(table)
        happened = []
        commit, promote = RowTable.commit, LocalStorage.promote

        def watch_commit(rows: RowTable, *args: object) -> object:
            done = commit(rows, *args)  # type: ignore[arg-type]
            happened.append(version_rows(root)["ns$t$2"]["manifest_path"])
            return done

        def watch_promote(storage: LocalStorage, source: str, target: str) -> bool:
            if "__manifest" not in target:
                happened.append(Path(target).name)
            return promote(storage, source, target)

        monkeypatch.setattr(RowTable, "commit", watch_commit)
        monkeypatch.setattr(LocalStorage, "promote", watch_promote)
        [made] = catalog.create_table_versions([asked.entry(T)])
        final = final_file(table, 2)
        assert happened == [f"_versions/{file.name}", final.name, f"_versions/{final.name}"]
        assert made.manifest_path == f"{table.location}/_versions/{final.name}"
        assert (made.version, made.manifest_size) == (2, asked.manifest_size)
        assert final.exists() and staged(table) == []
        assert lance.dataset(path_of(table)).to_table()["id"].to_pylist() == [1]

    def test_rows_have_the_ids_of_the_seeds(self, catalog: Directory, table: TableInfo, root: Path) -> None:
        for number in range(11):
            make(catalog, T, number)
        assert set(version_rows(root)) == ids_of("ns$t", range(1, 13))
        assert versions(load(catalog, T)) == list(range(1, 13))

    def test_a_table_of_the_root(self, catalog: Directory, root: Path) -> None:
        catalog.create_table(("r",), new_table(managed_by="impl"))
        make(catalog, ("r",), 1)
        assert set(version_rows(root)) == {"r$1", "r$2"}
        assert names(catalog) == ["r"]

    def test_a_staged_manifest_anywhere_in_the_table(
        self, catalog: Directory, table: TableInfo, root: Path
    ) -> None:
        asked = stage(table.location, 1)
        [file] = staged(table)
        elsewhere = Path(path_of(table), "staging", "x.manifest")
        elsewhere.parent.mkdir()
        file.rename(elsewhere)
        catalog.create_table_versions([asked.entry(T, staged_path=str(elsewhere))])
        assert versions(load(catalog, T)) == [1, 2]
        assert not elsewhere.exists()

    @pytest.mark.parametrize("later", [0, 2])
    def test_a_repeat_succeeds(self, catalog: Directory, table: TableInfo, root: Path, later: int) -> None:
        asked = stage(table.location, 1)
        [first] = catalog.create_table_versions([asked.entry(T)])
        for number in range(later):
            make(catalog, T, number)
        for each in (catalog, open_in("v2", root)):
            assert each.create_table_versions([asked.entry(T)]) == (first,)
        assert versions(load(catalog, T)) == list(range(1, later + 3))

    def test_a_repeat_across_the_turning_on_succeeds(self, root: Path, mode: str) -> None:
        """The first answer got lost, and the staged file was left."""
        before = open_in(mode, root)
        info = before.create_table(("t",), new_table(managed_by="impl"))
        asked = stage(info.location, 1)
        [file] = staged(info)
        final_file(info, 2).hardlink_to(file)
        [made] = open_managed(mode, root).create_table_versions([asked.entry(("t",))])
        assert (made.version, versions(load(before, ("t",)))) == (2, [1, 2])

    def test_another_staged_manifest_of_a_version(self, catalog: Directory, table: TableInfo) -> None:
        mine, theirs = stage(table.location, 1), stage(table.location, 2)
        catalog.create_table_versions([theirs.entry(T)])
        with pytest.raises(TableVersionAlreadyExists) as refused:
            catalog.create_table_versions([mine.entry(T)])
        assert refused.value.lance_code == 12
        assert versions(load(catalog, T)) == [1, 2]

    def test_a_gap(self, catalog: Directory, table: TableInfo, root: Path) -> None:
        append(table, 1)
        asked = stage(table.location, 2)
        final_file(table, 2).unlink()
        with pytest.raises(ConcurrentModification, match="latest version is 1") as refused:
            catalog.create_table_versions([asked.entry(T)])
        assert refused.value.lance_code == 14
        assert set(version_rows(root)) == {"ns$t$1"}

    def test_without_a_staged_manifest(self, catalog: Directory, table: TableInfo, root: Path) -> None:
        asked = stage(table.location, 1)
        [file] = staged(table)
        file.unlink()
        with pytest.raises(InvalidInput, match=file.name):
            catalog.create_table_versions([asked.entry(T)])
        assert set(version_rows(root)) == {"ns$t$1"}

    def test_a_first_version_of_a_declared_table(self, catalog: Directory, root: Path) -> None:
        info = catalog.create_table(T, declared(managed_by="impl", owner="ann"))
        assert catalog.list_table_versions(T).items == ()
        catalog.create_table_versions([stage_first(info.location, 1).entry(T)])
        assert set(version_rows(root)) == {"ns$t$1"}
        info = set_properties(catalog, T, {"color": "red"})
        assert versions(info) == [1, 2]
        kept = {key: info.properties[key] for key in ("managed_by", "owner", "color")}
        assert kept == {"managed_by": "impl", "owner": "ann", "color": "red"}

    def test_pylance_writes_through_it(self, catalog: Directory, table: TableInfo, root: Path) -> None:
        for number in range(3):
            append_managed(catalog, T, rows(number))
        set_properties(catalog, T, {"owner": "ann"})
        append_managed(catalog, T, rows(3))
        assert set(version_rows(root)) == ids_of("ns$t", range(1, 7))
        assert sorted(lance.dataset(path_of(table)).to_table()["id"].to_pylist()) == [0, 1, 2, 3]
        assert load(catalog, T).properties["owner"] == "ann"


class TestRead:
    def test_lists_and_pages(self, catalog: Directory, table: TableInfo) -> None:
        for number in range(4):
            make(catalog, T, number)
        assert numbers(catalog, T) == [5, 4, 3, 2, 1]
        assert numbers(catalog, T, descending=False) == [1, 2, 3, 4, 5]
        page = catalog.list_table_versions(T, limit=2)
        assert ([each.version for each in page.items], page.more) == ([5, 4], True)
        assert numbers(catalog, T, after=4, limit=2) == [3, 2]
        page = catalog.list_table_versions(T, after=2, limit=2)
        assert ([each.version for each in page.items], page.more) == ([1], False)
        assert numbers(catalog, T, after=3, descending=False) == [4, 5]

    def test_what_is_listed_is_what_is_described(self, catalog: Directory, table: TableInfo) -> None:
        make(catalog, T, 1)
        for listed in catalog.list_table_versions(T).items:
            described = catalog.describe_table_version(T, listed.version)
            final = final_file(table, listed.version)
            assert listed.manifest_path == described.manifest_path == f"{table.location}/_versions/{final.name}"
            assert listed.manifest_size == described.manifest_size == final.stat().st_size
            assert abs(listed.timestamp_ms - described.timestamp_ms) < 60_000
        assert catalog.describe_table_version(T).version == 2
        assert versions(catalog.load_version(T, 1)) == [1]

    @pytest.mark.parametrize("version", [3, 99])
    def test_a_version_that_is_not_there(self, catalog: Directory, table: TableInfo, version: int) -> None:
        make(catalog, T, 1)
        for ask in (catalog.describe_table_version, catalog.load_version):
            with pytest.raises(TableVersionNotFound, match=str(version)):
                ask(T, version)

    def test_a_half_made_version_is_finished_by_whoever_looks(
        self, catalog: Directory, table: TableInfo, root: Path, mode: str
    ) -> None:
        looks: list[Callable[[Directory], object]] = [
            lambda catalog: versions(load(catalog, T)),
            lambda catalog: versions(load(catalog, T, History.HEADS)),
            lambda catalog: catalog.describe_table_version(T).version,
            lambda catalog: numbers(catalog, T),
            lambda catalog: catalog.load_version(T, load_latest(root)),
        ]
        for number, look in enumerate(looks, start=2):
            half_made(catalog, T, stage(table.location, number))
            assert version_rows(root)[f"ns$t${number}"]["manifest_path"].endswith(staged(table)[0].name)
            look(open_in(mode, root))
            final = final_file(table, number)
            assert final.exists() and staged(table) == []
            assert version_rows(root)[f"ns$t${number}"]["manifest_path"] == f"_versions/{final.name}"

    def test_the_next_version_waits_until_it_is_finished(
        self, catalog: Directory, table: TableInfo, root: Path, mode: str
    ) -> None:
        second = stage(table.location, 2)
        [file] = staged(table)
        final_file(table, 2).hardlink_to(file)
        third = stage(table.location, 3)
        final_file(table, 2).unlink()
        half_made(catalog, T, second)
        names = keeper_of(mode, root)
        names.versions.make([TableChange(names.resolve(T), third.entry(T))])
        assert versions(load(catalog, T)) == [1, 2, 3]
        assert staged(table) == []

    def test_many_finish_it_at_once(self, catalog: Directory, table: TableInfo, root: Path, mode: str) -> None:
        """Who comes late finds a row that moved."""
        half_made(catalog, T, stage(table.location, 1))
        late = keeper_of(mode, root)
        before = late.resolve(T)
        load(catalog, T)
        assert late.versions.finish_pending(before)
        assert versions(load(catalog_over(late), T)) == [1, 2]
        assert staged(table) == []


def load_latest(root: Path) -> int:
    return max(int(each.rpartition("$")[2]) for each in version_rows(root))


class TestBroken:
    """A half-made version whose staged file is lost."""

    @pytest.fixture
    def lost(self, catalog: Directory, table: TableInfo, root: Path) -> Path:
        half_made(catalog, T, stage(table.location, 1))
        [file] = staged(table)
        file.unlink()
        return file

    def test_it_is_said(self, catalog: Directory, lost: Path) -> None:
        with pytest.raises(BrokenTable, match=lost.name):
            catalog.load_table(T)
        with pytest.raises(BrokenTable, match=lost.name):
            catalog.list_table_versions(T)
        assert names(catalog, ("ns",)) == ["t"]

    def test_it_can_be_deleted(self, catalog: Directory, lost: Path) -> None:
        assert catalog.delete_table_versions(T, [VersionRange(2, 3)], ignore_missing=False) == 1
        assert versions(load(catalog, T)) == [1]
        make(catalog, T, 7)
        assert versions(load(catalog, T)) == [1, 2]

    def test_the_table_can_be_dropped(self, catalog: Directory, lost: Path, root: Path) -> None:
        catalog.drop_table(T)
        assert names(catalog, ("ns",)) == []
        assert version_rows(root) == {}
