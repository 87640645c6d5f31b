"""What is listed, described, loaded and deleted by version."""

from pathlib import Path
from typing import Any

import lance
import pytest

from contract_tests.directory.opened import (
    VERSIONED,
    Directory,
    append,
    declared,
    load,
    open_in,
    path_of,
    rows,
    versions,
)
from contract_tests.directory.staging import stage
from irc_bridge.catalog.models import Page, TableInfo, VersionRange, VersionRecord
from irc_bridge.errors import (
    BrokenTable,
    ConcurrentModification,
    InvalidInput,
    TableNotFound,
    TableVersionAlreadyExists,
    TableVersionNotFound,
)

T, U = ("t",), ("u",)
ALL = VersionRange(0, -1)

pytestmark = pytest.mark.parametrize("mode", VERSIONED)


def numbers(page: Page[VersionRecord]) -> list[int]:
    return [each.version for each in page.items]


def manifest(info: TableInfo, version: int) -> Path:
    return Path(path_of(info), "_versions", f"{2**64 - 1 - version:020}.manifest")


@pytest.fixture
def five(table: TableInfo) -> TableInfo:
    """With the versions 1 to 5."""
    for number in range(2, 6):
        append(table, number)
    return table


class TestList:
    def test_the_latest_comes_first(self, catalog: Directory, five: TableInfo) -> None:
        page = catalog.list_table_versions(T)
        assert numbers(page) == [5, 4, 3, 2, 1]
        assert not page.more
        assert numbers(catalog.list_table_versions(T, descending=False)) == [1, 2, 3, 4, 5]

    @pytest.mark.parametrize("limit", [1, 2, 3, 5, 9])
    @pytest.mark.parametrize("descending", [True, False])
    def test_page_by_page(self, catalog: Directory, five: TableInfo, descending: bool, limit: int) -> None:
        seen: list[int] = []
        more = True
        while more:
            after = seen[-1] if seen else None
            page = catalog.list_table_versions(T, descending=descending, after=after, limit=limit)
            assert len(page.items) <= limit
            seen += numbers(page)
            more = page.more
        assert seen == sorted(range(1, 6), reverse=descending)

    def test_the_records_are_those_of_the_files(self, catalog: Directory, five: TableInfo) -> None:
        manifest(five, 3).write_bytes(b"no table is opened")
        for each in catalog.list_table_versions(T).items:
            stat = manifest(five, each.version).stat()
            assert each.manifest_path == f"{five.location}/_versions/{manifest(five, each.version).name}"
            assert each.manifest_size == stat.st_size
            assert each.timestamp_ms == stat.st_mtime_ns // 1_000_000

    def test_a_table_without_versions(self, catalog: Directory) -> None:
        catalog.create_table(U, declared())
        assert catalog.list_table_versions(U) == catalog.list_table_versions(U, limit=1) == Page(())
        with pytest.raises(TableNotFound):
            catalog.list_table_versions(("no",))

    def test_the_other_naming_scheme(self, catalog: Directory) -> None:
        location = catalog.create_table(U, declared()).location
        for mode in ("create", "append", "append"):
            lance.write_dataset(rows(1), location, mode=mode, enable_v2_manifest_paths=False)
        assert numbers(catalog.list_table_versions(U)) == [3, 2, 1]
        assert numbers(catalog.list_table_versions(U, limit=1)) == [3]
        assert catalog.list_table_versions(U, limit=1).items[0].manifest_path.endswith("/3.manifest")


class TestDescribe:
    def test_it_says_what_lance_says(self, catalog: Directory, five: TableInfo) -> None:
        dataset = lance.dataset(five.location)
        stored: dict[int, Any] = {int(each["version"]): each for each in dataset.versions()}
        for version in range(1, 6):
            found = catalog.describe_table_version(T, version)
            assert found.version == version
            assert found.manifest_size == manifest(five, version).stat().st_size
            assert found.timestamp_ms == int(stored[version]["timestamp"].timestamp() * 1000)
            assert found.metadata == stored[version]["metadata"]
        assert catalog.describe_table_version(T) == catalog.describe_table_version(T, 5)

    def test_what_is_not_there(self, catalog: Directory, five: TableInfo) -> None:
        for version in (0, 6, 2**63):
            with pytest.raises(TableVersionNotFound, match=f"no version {version}"):
                catalog.describe_table_version(T, version)
        catalog.create_table(U, declared())
        with pytest.raises(TableVersionNotFound, match="no version yet"):
            catalog.describe_table_version(U)
        with pytest.raises(TableNotFound):
            catalog.describe_table_version(("no",), 1)

    def test_a_broken_one(self, catalog: Directory, five: TableInfo) -> None:
        manifest(five, 3).write_bytes(b"nothing")
        with pytest.raises(BrokenTable):
            catalog.describe_table_version(T, 3)
        assert catalog.describe_table_version(T, 4).version == 4


class TestLoad:
    def test_the_table_as_it_was(self, catalog: Directory, five: TableInfo) -> None:
        dataset = lance.dataset(five.location)
        dataset.update_metadata({"owner": "bob"})
        dataset.tags.create("then", 5)
        latest = load(catalog, T)
        then = catalog.load_version(T, 5)
        assert then.versions == (latest.versions[4],)
        assert (then.location, then.tags, then.updated_ms) == (
            latest.location,
            {"then": 5},
            latest.versions[4].timestamp_ms,
        )
        assert (then.properties["owner"], latest.properties["owner"]) == ("ann", "bob")
        now = catalog.load_version(T, 6)
        assert (now.versions, now.properties, now.tags) == (latest.versions[5:], latest.properties, {})

    def test_what_is_not_there(self, catalog: Directory, table: TableInfo) -> None:
        catalog.create_table(U, declared())
        for name, version in ((T, 2), (T, 0), (U, 1)):
            with pytest.raises(TableVersionNotFound):
                catalog.load_version(name, version)
        with pytest.raises(TableNotFound):
            catalog.load_version(("no",), 1)


class TestDelete:
    @pytest.mark.parametrize(
        ("ranges", "left"),
        [
            ([(2, 4)], [1, 4, 5]),
            ([(1, 2), (4, 5)], [2, 3, 5]),
            ([(1, 4), (2, 5), (3, 4)], [5]),
            ([(0, 3)], [3, 4, 5]),
            ([(4, -1)], [1, 2, 3]),
            ([], [1, 2, 3, 4, 5]),
        ],
    )
    def test_the_ranges_go(
        self, catalog: Directory, five: TableInfo, ranges: list[tuple[int, int]], left: list[int]
    ) -> None:
        data = sorted(Path(path_of(five), "data").iterdir())
        asked = [VersionRange(*each) for each in ranges]
        assert catalog.delete_table_versions(T, asked, ignore_missing=False) == 5 - len(left)
        assert versions(load(catalog, T)) == left
        assert [each["version"] for each in lance.dataset(five.location).versions()] == left
        assert sorted(Path(path_of(five), "data").iterdir()) == data

    def test_all_of_them(self, catalog: Directory, five: TableInfo) -> None:
        assert catalog.delete_table_versions(T, [ALL], ignore_missing=False) == 5
        assert catalog.list_table_versions(T) == Page(())
        assert list(Path(path_of(five), "data").iterdir())
        assert versions(load(catalog, T)) == []
        lance.write_dataset(rows(9), five.location, mode="create")
        assert versions(load(catalog, T)) == [1]

    @pytest.mark.parametrize(
        ("asked", "missing"), [((3, 7), 6), ((6, 7), 6), ((1, 6), 2), ((0, 6), 2), ((2, 3), 2), ((9, 99**9), 9)]
    )
    def test_a_missing_version(
        self, catalog: Directory, five: TableInfo, asked: tuple[int, int], missing: int
    ) -> None:
        catalog.delete_table_versions(T, [VersionRange(2, 3)], ignore_missing=False)
        with pytest.raises(TableVersionNotFound, match=f"no version {missing}$"):
            catalog.delete_table_versions(T, [VersionRange(4, 5), VersionRange(*asked)], ignore_missing=False)
        assert versions(load(catalog, T)) == [1, 3, 4, 5]
        inside = {each for each in (1, 3, 4, 5) if each == 4 or asked[0] <= each < asked[1]}
        deleted = catalog.delete_table_versions(T, [VersionRange(4, 5), VersionRange(*asked)], ignore_missing=True)
        assert deleted == len(inside)

    def test_the_first_there_is(self, catalog: Directory, five: TableInfo) -> None:
        catalog.delete_table_versions(T, [VersionRange(1, 3)], ignore_missing=False)
        assert catalog.delete_table_versions(T, [VersionRange(0, 4)], ignore_missing=False) == 1
        assert versions(load(catalog, T)) == [4, 5]

    @pytest.mark.parametrize("asked", [(3, 3), (4, 3), (-1, 3), (0, 0), (2, -2), (-5, -1)])
    @pytest.mark.parametrize("ignore_missing", [True, False])
    def test_what_is_no_range(
        self, catalog: Directory, five: TableInfo, asked: tuple[int, int], ignore_missing: bool
    ) -> None:
        with pytest.raises(InvalidInput, match=rf"\[{asked[0]}, {asked[1]}\)"):
            catalog.delete_table_versions(T, [VersionRange(1, 2), VersionRange(*asked)], ignore_missing)
        assert versions(load(catalog, T)) == [1, 2, 3, 4, 5]

    def test_both_names_of_a_version_go(self, catalog: Directory, five: TableInfo) -> None:
        manifest(five, 2).rename(manifest(five, 2).with_name("2.manifest"))
        assert catalog.delete_table_versions(T, [VersionRange(2, 4)], ignore_missing=False) == 2
        assert versions(load(catalog, T)) == [1, 4, 5]


def test_a_gap_is_not_filled(catalog: Directory, table: TableInfo, root: Path, mode: str) -> None:
    """Whoever knew the version below the gap as the latest learns of those above it."""
    others = [open_in(mode, root) for _ in range(3)]
    stale = stage(table.location, 1)
    assert [numbers(each.list_table_versions(T, limit=1)) for each in others] == [[1]] * 3
    create = others[0].create_table_versions
    create([stage(table.location, 2).entry(T)])
    create([stage(table.location, 3).entry(T)])
    create([stage(table.location, 4).entry(T)])
    Path(path_of(table), "_versions", "latest_version_hint.json").unlink()
    catalog.delete_table_versions(T, [VersionRange(2, 4)], ignore_missing=False)
    for each in [catalog, *others]:
        with pytest.raises(TableVersionAlreadyExists):
            each.create_table_versions([stale.entry(T)])
        assert numbers(each.list_table_versions(T, limit=1)) == [4]
        assert load(each, T).latest == load(catalog, T).latest
        with pytest.raises(ConcurrentModification, match="latest version is 4"):
            each.create_table_versions([stale.entry(T, version=9, staged_path=_nine(table))])
    made = create([stage(table.location, 5).entry(T)])
    assert made[0].version == 5
    assert versions(load(catalog, T)) == [1, 4, 5]


def _nine(table: TableInfo) -> str:
    """A staged manifest of version 9, made from one of version 4."""
    content = manifest(table, 4).read_bytes()
    assert content.count(b"\x18\x04") == 1
    staged = manifest(table, 9).with_name(manifest(table, 9).name + "-" + "0" * 32)
    staged.write_bytes(content.replace(b"\x18\x04", b"\x18\x09"))
    return str(staged)
