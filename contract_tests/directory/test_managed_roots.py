"""Roots that begin to manage versions, the fence around them, and what older writers left in them."""

import json
from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest

from contract_tests.directory.managed import (
    FLAG,
    MANAGED,
    WRITER_FLAGS,
    final_file,
    half_made,
    ids_of,
    make,
    manifest,
    open_managed,
    staged,
    version_rows,
)
from contract_tests.directory.native import Native, seen_by_native, seen_by_us
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
from contract_tests.directory.test_old_manifests import PRIMARY_KEY, manifest_schema
from contract_tests.directory.test_version_races import while_promoting
from irc_bridge.backends.directory.manifest_names import ManifestNames
from irc_bridge.backends.directory.manifest_versions import ManifestVersions
from irc_bridge.backends.directory.table_rows import TableRows
from irc_bridge.catalog.models import Levels, TableInfo, VersionRange
from irc_bridge.errors import (
    BrokenTable,
    InvalidInput,
    PermissionDenied,
    TableVersionAlreadyExists,
    Unsupported,
)
from irc_bridge.lance_catalog.names import ResolvedTable
from irc_bridge.lance_store.rows import RowTable

T: Levels = ("ns", "t")
S: Levels = ("ns", "s")
READER_FLAGS = "lance.namespace.manifest.reader_feature_flags"


@pytest.fixture(params=MANAGED)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def before(root: Path, mode: str) -> Directory:
    """Without version management: a table that is changed through its catalog only, and one that is not."""
    catalog = open_in(mode, root)
    catalog.create_namespace(("ns",), {})
    append(catalog.create_table(T, new_table(managed_by="IMPL")), 1)
    append(catalog.create_table(S, new_table()), 1)
    assert version_rows(root) == {}
    return catalog


class TestTurningOn:
    def test_opening_and_reading_write_nothing(self, before: Directory, root: Path, mode: str) -> None:
        tree = sorted(root.rglob("*"))
        catalog = open_managed(mode, root)
        assert names(catalog, ("ns",)) == ["s", "t"]
        assert versions(load(catalog, T)) == [1, 2]
        assert sorted(root.rglob("*")) == tree

    @pytest.mark.parametrize("operation", ["list", "describe", "create", "delete", "commit"])
    def test_an_operation_on_a_table_fills_in_its_rows(
        self, before: Directory, root: Path, mode: str, operation: str
    ) -> None:
        catalog = open_managed(mode, root)
        asked = stage(load(catalog, T).location, 2)
        kept = [1, 2]
        match operation:
            case "list":
                assert [each.version for each in catalog.list_table_versions(T).items] == [2, 1]
            case "describe":
                assert catalog.describe_table_version(T).version == 2
            case "create":
                catalog.create_table_versions([asked.entry(T)])
                kept = [1, 2, 3]
            case "delete":
                catalog.delete_table_versions(T, [VersionRange(1, 2)], ignore_missing=False)
                kept = [2]
            case "commit":
                set_properties(catalog, T, {"owner": "ann"})
                kept = [1, 2, 3]
        assert manifest(root).metadata[FLAG] == "true"
        assert set(version_rows(root)) == ids_of("ns$t", kept)
        assert versions(load(catalog, T)) == kept

    def test_once_on_a_look_is_enough(self, before: Directory, root: Path, mode: str) -> None:
        """Also by a server whose settings do not say so."""
        open_managed(mode, root).create_namespace(("other",), {})
        assert version_rows(root) == {}
        assert versions(load(before, T)) == [1, 2]
        assert set(version_rows(root)) == ids_of("ns$t", [1, 2])
        append(load(before, T), 7)
        assert versions(load(before, T)) == [1, 2]

    def test_tables_of_the_storage_are_not_touched(self, before: Directory, root: Path, mode: str) -> None:
        catalog = open_managed(mode, root)
        append(load(catalog, S), 2)
        catalog.create_table_versions([stage(load(catalog, S).location, 3).entry(S)])
        set_properties(catalog, S, {"owner": "ann"})
        append(load(catalog, S), 4)
        assert versions(load(catalog, S)) == [1, 2, 3, 4, 5, 6]
        assert version_rows(root) == {}
        assert final_file(load(catalog, S), 6).exists()

    def test_a_table_that_is_registered_or_renamed(self, before: Directory, root: Path, mode: str) -> None:
        location = load(before, T).location
        before.deregister_table(T)
        catalog = open_managed(mode, root)
        catalog.register_table(("r",), location)
        assert set(version_rows(root)) == {"r$1", "r$2"}

    def test_one_whose_files_may_not_be_written_is_read(
        self, before: Directory, root: Path, mode: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        open_managed(mode, root).create_namespace(("other",), {})

        def refuse(*_: object) -> None:
            raise PermissionDenied("Not allowed")

        monkeypatch.setattr(RowTable, "commit", refuse)
        assert versions(load(before, T)) == [1, 2]


class TestGoingOver:
    def test_to_and_fro(self, root: Path, mode: str) -> None:
        catalog = open_managed(mode, root)
        catalog.create_table(("t",), new_table())
        assert version_rows(root) == {}
        set_properties(catalog, ("t",), {"managed_by": "impl"})
        make(catalog, ("t",), 1)
        assert set(version_rows(root)) == ids_of("t", [1, 2, 3])
        info = set_properties(catalog, ("t",), {"managed_by": "storage"})
        assert version_rows(root) == {}
        append(info, 2)
        info = set_properties(catalog, ("t",), {"managed_by": "impl"})
        assert versions(info) == [1, 2, 3, 4, 5, 6]
        assert set(version_rows(root)) == ids_of("t", range(1, 7))
        info = set_properties(catalog, ("t",), remove_properties=frozenset({"managed_by"}))
        assert (info.managed_by, version_rows(root)) == ("storage", {})

    def test_of_a_declared_table(self, root: Path, mode: str) -> None:
        """Who dies before the row forgets what it kept leaves a row that says something else than the table."""
        catalog = open_managed(mode, root)
        info = catalog.create_table(("t",), declared(managed_by="impl"))
        catalog.create_table_versions([stage_first(info.location, 1).entry(("t",))])

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(TableRows, "keep", die)
            set_properties(catalog, ("t",), {"managed_by": "storage"})
        append(info, 2)
        assert versions(load(catalog, ("t",))) == [1, 2, 3]
        assert version_rows(root) == {}
        assert versions(load(open_in(mode, root), ("t",))) == [1, 2, 3]

    def test_of_a_table_that_is_only_declared(self, root: Path, mode: str) -> None:
        catalog = open_managed(mode, root)
        info = catalog.create_table(("t",), declared(managed_by="impl"))
        set_properties(catalog, ("t",), {"managed_by": "storage"})
        lance.write_dataset(rows(1), path_of(info))
        assert versions(load(catalog, ("t",))) == [1]
        assert version_rows(root) == {}

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_while_a_version_is_made_by_its_file(
        self, root: Path, mode: str, when: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        catalog, other = open_managed(mode, root), open_in(mode, root)
        info = catalog.create_table(("t",), new_table())
        asked = stage(info.location, 1)

        def go_over(catalog: Directory) -> None:
            set_properties(catalog, ("t",), {"managed_by": "impl"})

        while_promoting(monkeypatch, other, go_over, when)
        if when == "before":
            with pytest.raises(TableVersionAlreadyExists):
                catalog.create_table_versions([asked.entry(("t",))])
            expected = [1, 2]
        else:
            assert [each.version for each in catalog.create_table_versions([asked.entry(("t",))])] == [2]
            expected = [1, 2, 3]
        assert versions(load(other, ("t",))) == versions(load(catalog, ("t",))) == expected
        assert set(version_rows(root)) == ids_of("t", expected)
        make(other, ("t",), 5)
        assert versions(load(catalog, ("t",))) == [*expected, expected[-1] + 1]

    def test_a_release_while_a_version_is_made_by_its_row(self, root: Path, mode: str) -> None:
        """The answer comes from the file when the rows are gone."""
        catalog, other = open_managed(mode, root), open_in(mode, root)
        info = catalog.create_table(("t",), new_table(managed_by="impl"))
        asked = stage(info.location, 1)
        answer = ManifestVersions._answer

        def late(*args: Any) -> Any:
            monkeypatch.undo()
            set_properties(other, ("t",), {"managed_by": "storage"})
            return answer(*args)

        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(ManifestVersions, "_answer", late)
            [made] = catalog.create_table_versions([asked.entry(("t",))])
        assert made.version == 2
        assert versions(load(catalog, ("t",))) == [1, 2, 3]
        assert version_rows(root) == {}

    def test_a_half_made_version_is_finished_before_the_rows_go(
        self, root: Path, mode: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        catalog, other = open_managed(mode, root), open_in(mode, root)
        catalog.create_table(("t",), new_table(managed_by="impl"))
        move = ManifestNames.move_versions

        def late(names: ManifestNames, table: ResolvedTable, info: TableInfo) -> bool:
            monkeypatch.undo()
            half_made(other, ("t",), stage(info.location, 7))
            return move(names, table, info)

        monkeypatch.setattr(ManifestNames, "move_versions", late)
        set_properties(catalog, ("t",), {"managed_by": "storage"})
        info = load(open_in(mode, root), ("t",))
        assert (versions(info), version_rows(root), staged(info)) == ([1, 2, 3], {}, [])
        assert lance.dataset(info.location).to_table()["id"].to_pylist() == [7]


class TestFence:
    def test_native_lance_reads_and_does_not_change(self, root: Path, mode: str) -> None:
        catalog = open_managed(mode, root)
        catalog.create_namespace(("ns",), {"owner": "ann"})
        catalog.create_table(T, new_table(managed_by="impl"))
        make(catalog, T, 1)
        theirs = Native(mode, root)
        assert seen_by_native(theirs) == seen_by_us(catalog)
        assert theirs.location(T).endswith(Path(path_of(load(catalog, T))).name)
        state = (manifest(root).version, version_rows(root))
        for change in (
            lambda: theirs.create_namespace(("other",)),
            lambda: theirs.declare(("ns", "x")),
            lambda: theirs.drop(T),
            lambda: theirs.deregister(T),
        ):
            with pytest.raises(ln.errors.UnsupportedOperationError, match="writer feature flags"):
                change()
        assert (manifest(root).version, version_rows(root)) == state
        assert versions(load(catalog, T)) == [1, 2]

    def test_a_root_without_version_management_is_open_to_all(self, root: Path, mode: str) -> None:
        catalog = open_in(mode, root)
        catalog.create_namespace(("ns",), {})
        catalog.create_table(T, new_table(managed_by="impl"))
        Native(mode, root).create_namespace(("theirs",))
        assert catalog.list_namespaces(()).items == ("ns", "theirs")
        assert not {FLAG, WRITER_FLAGS} & manifest(root).metadata.keys()

    @pytest.mark.parametrize("key", [READER_FLAGS, WRITER_FLAGS])
    def test_flags_of_a_newer_program(self, root: Path, mode: str, key: str) -> None:
        open_in(mode, root).create_namespace(("ns",), {})
        manifest(root).update_metadata({key: "2"})
        catalog = open_in(mode, root)
        if key == READER_FLAGS:
            with pytest.raises(Unsupported, match=r"__manifest.*upgrade"):
                catalog.list_namespaces(())
        else:
            assert catalog.list_namespaces(()).items == ("ns",)
        with pytest.raises(Unsupported, match=r"__manifest.*upgrade"):
            catalog.create_namespace(("other",), {})

    def test_their_flag_beside_ours(self, root: Path, mode: str) -> None:
        catalog = open_managed(mode, root)
        catalog.create_namespace(("ns",), {})
        ours = int(manifest(root).metadata[WRITER_FLAGS])
        manifest(root).update_metadata({WRITER_FLAGS: str(ours | 1)})
        with pytest.raises(Unsupported):
            catalog.create_namespace(("other",), {})

    def test_a_flag_that_is_no_number(self, root: Path, mode: str) -> None:
        open_in(mode, root).create_namespace(("ns",), {})
        manifest(root).update_metadata({WRITER_FLAGS: "x"})
        with pytest.raises(BrokenTable, match="__manifest"):
            open_in(mode, root).create_namespace(("other",), {})

    def test_it_needs_a_manifest(self, root: Path) -> None:
        with pytest.raises(InvalidInput, match="manifest_enabled"):
            open_managed("v1", root)


def padded(number: int) -> str:
    return f"a$t${number:020}"


class TestOlderRows:
    """Lance 4 to 7 padded the numbers."""

    def write(self, root: Path, managed_by: str, count: int) -> None:
        info = open_in("v2", root)
        info.create_namespace(("a",), {})
        table = info.create_table(("a", "t"), new_table(managed_by=managed_by))
        append(table, 1)
        append(table, 2)
        objects = manifest(root).to_table().drop_columns("base_objects").to_pylist()
        for number in range(1, count + 1):
            path = f"{path_of(table)}/_versions/{final_file(table, number).name}".removeprefix("/")
            record = {"manifest_path": path, "manifest_size": 9, "e_tag": None, "naming_scheme": "V2"}
            objects.append(
                {
                    "object_id": padded(number),
                    "object_type": "table_version",
                    "location": None,
                    "metadata": json.dumps(record),
                }
            )
        data = pa.Table.from_pylist(objects, schema=manifest_schema(key=PRIMARY_KEY))
        lance.write_dataset(data, root / "__manifest", mode="overwrite")

    @pytest.mark.parametrize("count", [2, 3])
    def test_they_are_the_versions_of_an_impl_table(self, root: Path, count: int) -> None:
        self.write(root, "impl", count)
        catalog = open_managed("v2", root)
        assert [each.version for each in catalog.list_table_versions(("a", "t")).items] == [3, 2, 1]
        make(catalog, ("a", "t"), 3)
        assert versions(load(catalog, ("a", "t"))) == [1, 2, 3, 4]
        assert set(version_rows(root)) == ids_of("a$t", range(1, 5))

    def test_they_follow_the_files_of_other_tables(self, root: Path) -> None:
        self.write(root, "storage", 2)
        catalog = open_managed("v2", root)
        assert [each.version for each in catalog.list_table_versions(("a", "t")).items] == [3, 2, 1]
        append(load(catalog, ("a", "t")), 3)
        assert versions(load(catalog, ("a", "t"))) == [1, 2, 3, 4]
        catalog.drop_table(("a", "t"))
        assert version_rows(root) == {}
