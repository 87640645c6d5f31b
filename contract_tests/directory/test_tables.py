"""What every mode does with a table."""

import uuid
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from contract_tests.directory.opened import (
    SCHEMA,
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
from irc_bridge.backends.directory import open_directory
from irc_bridge.catalog.models import TABLE_UUID, History, NewTable
from irc_bridge.catalog.ports import CanChangeNamespaces, CanRenameTables
from irc_bridge.errors import (
    BrokenTable,
    InvalidInput,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
)

T = ("t",)


def test_the_abilities_follow_the_mode(root: Path) -> None:
    abilities = {
        mode: (
            isinstance(open_in(mode, root), CanChangeNamespaces),
            isinstance(open_in(mode, root), CanRenameTables),
        )
        for mode in ("v1", "v2", "compat")
    }
    assert abilities == {"v1": (False, False), "v2": (True, True), "compat": (True, True)}


def test_a_directory_needs_one_of_its_modes(root: Path) -> None:
    with pytest.raises(InvalidInput, match="manifest_enabled"):
        open_directory(str(root), manifest_enabled=False, dir_listing_enabled=False)


@pytest.mark.parametrize("bad_root", ["ftp://host/tables", "memory://x", "file://host/tables"])
def test_an_unknown_kind_of_root_is_refused(bad_root: str) -> None:
    with pytest.raises(InvalidInput):
        open_directory(bad_root)


def test_the_three_ways_to_name_a_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    locations = {
        open_directory(way).create_table((f"t{n}",), new_table()).location
        for n, way in enumerate([str(root), "./tables", "tables/", f"file://{root}"])
    }
    assert locations == {f"file://{root}/t{n}.lance" for n in range(4)}


def test_reading_a_root_writes_nothing(catalog: Directory, root: Path) -> None:
    assert names(catalog) == []
    assert not catalog.table_exists(T)
    catalog.check()
    assert list(root.iterdir()) == []


def test_create_makes_an_empty_lance_table_in_one_version(catalog: Directory) -> None:
    info = catalog.create_table(T, new_table(owner="ann", ключ="значение"))
    dataset = lance.dataset(path_of(info))
    assert dataset.schema == SCHEMA
    assert (dataset.version, dataset.count_rows()) == (1, 0)
    assert dataset.metadata == {
        "owner": "ann",
        "ключ": "значение",
        TABLE_UUID: dataset.metadata[TABLE_UUID],
    }
    assert uuid.UUID(dataset.metadata[TABLE_UUID]).version == 4
    assert info.properties == dataset.metadata
    assert names(catalog) == ["t"]
    assert append(info, 1, 2).metadata == dataset.metadata


def test_a_loaded_table_says_what_lance_says(catalog: Directory) -> None:
    info = catalog.create_table(T, new_table())
    dataset = append(info, 1, 2, 3)
    dataset.delete("id = 2")
    dataset.tags.create("first", 2)
    dataset.add_columns({"twice": "id * 2"})
    loaded = load(catalog, T)
    assert versions(loaded) == [1, 2, 3, 4]
    assert [each.operation for each in loaded.versions] == ["Overwrite", "Append", "Delete", "Merge"]
    assert [each.summary["total_rows"] for each in loaded.versions] == ["0", "3", "2", "2"]
    assert [[field.name for field in each.schema] for each in loaded.versions] == [["id", "name"]] * 3 + [
        ["id", "name", "twice"]
    ]
    assert [field.id for field in loaded.versions[-1].schema] == [0, 1, 2]
    assert loaded.versions[-1].max_field_id == 2
    assert loaded.tags == {"first": 2}
    for each in loaded.versions:
        assert Path(each.manifest.removeprefix("file://")).is_file()
    times: list[Any] = [each["timestamp"] for each in dataset.versions()]
    assert [each.timestamp_ms for each in loaded.versions] == pytest.approx(
        [each.timestamp() * 1000 for each in times], abs=1.5
    )
    assert loaded.updated_ms == loaded.versions[-1].timestamp_ms


def test_refs_lists_the_latest_and_the_tagged(catalog: Directory) -> None:
    info = catalog.create_table(T, new_table())
    for each in range(5):
        dataset = append(info, each)
    dataset.tags.create("third", 3)
    branch = dataset.create_branch("side", 2)
    branch.tags.create("on a branch".replace(" ", "-"), ("side", 2))
    assert versions(load(catalog, T, History.HEADS)) == [3, 6]
    assert load(catalog, T, History.HEADS).tags == {"third": 3}
    assert versions(load(catalog, T)) == [1, 2, 3, 4, 5, 6]


def test_nested_types_keep_their_ids_and_arrow_types(catalog: Directory) -> None:
    vector = pa.list_(pa.float32(), 4)
    struct = pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.list_(pa.string()))])
    schema = pa.schema([("v", vector), ("s", struct), pa.field("d", pa.dictionary(pa.int8(), pa.string()))])
    info = catalog.create_table(T, NewTable({}, schema=schema))
    assert info.latest is not None
    vectors, structs, words = info.latest.schema
    assert (vectors.id, vectors.type, vectors.children[0].id) == (0, vector, None)
    assert [(each.id, each.name, each.nullable) for each in structs.children] == [
        (2, "a", False),
        (3, "b", True),
    ]
    assert structs.children[1].children[0].id == 4
    assert (words.id, words.type, words.children) == (5, pa.dictionary(pa.int8(), pa.string()), ())


def test_a_schema_that_lance_cannot_store_is_refused(catalog: Directory) -> None:
    schema = pa.schema([("u", pa.sparse_union([pa.field("a", pa.int32())]))])
    with pytest.raises(InvalidInput, match="Lance cannot store this schema"):
        catalog.create_table(T, NewTable({}, schema=schema))
    assert names(catalog) == []


def test_creating_a_taken_name_is_a_conflict(catalog: Directory) -> None:
    catalog.create_table(T, new_table(owner="ann"))
    for new in (new_table(), declared()):
        with pytest.raises(TableAlreadyExists, match="Table already exists: t"):
            catalog.create_table(T, new)
    assert load(catalog, T).properties["owner"] == "ann"


def test_a_missing_table(catalog: Directory) -> None:
    for call in (catalog.load_table, catalog.drop_table, catalog.deregister_table, catalog.storage_options):
        with pytest.raises(TableNotFound, match="Table does not exist: t"):
            call(T)
    with pytest.raises(TableNotFound):
        set_properties(catalog, T, {"a": "b"})
    with pytest.raises(NamespaceNotFound, match=r"Namespace does not exist: a\.b"):
        catalog.load_table(("a", "b", "t"))
    with pytest.raises(NamespaceNotFound):
        catalog.list_tables(("a",))
    with pytest.raises(NamespaceNotFound):
        catalog.create_table(("a", "t"), new_table())
    assert not catalog.table_exists(("a", "t"))


def test_a_declared_table_keeps_its_properties_past_the_first_version(catalog: Directory) -> None:
    info = catalog.create_table(T, declared(owner="ann", team="x"))
    assert (info.versions, info.tags) == ((), {})
    assert names(catalog) == ["t"]
    changed = set_properties(catalog, T, {"team": "y"}, frozenset({"absent"}))
    assert {**changed.properties, TABLE_UUID: ""} == {"owner": "ann", "team": "y", TABLE_UUID: ""}
    assert changed.versions == ()
    lance.write_dataset(rows(1), path_of(info))
    written = load(catalog, T)
    assert versions(written) == [1]
    assert written.properties == changed.properties
    moved = set_properties(catalog, T, {"color": "red"}, frozenset({"owner"}))
    assert moved.properties == {
        "team": "y",
        "color": "red",
        TABLE_UUID: info.properties[TABLE_UUID],
    }
    assert lance.dataset(path_of(info)).metadata == moved.properties
    assert "team" not in set_properties(catalog, T, {}, frozenset({"team"})).properties


def test_lance_metadata_wins_over_what_was_kept(catalog: Directory) -> None:
    info = catalog.create_table(T, declared(owner="ann"))
    lance.write_dataset(rows(1), path_of(info)).update_metadata({"owner": "bob"})
    assert load(catalog, T).properties["owner"] == "bob"


def test_a_property_commit_is_one_new_version(catalog: Directory) -> None:
    catalog.create_table(T, new_table(a="1", b="2"))
    info = set_properties(catalog, T, {"a": "3", "c": "4"}, frozenset({"b", "absent"}))
    assert {key: info.properties.get(key) for key in "abc"} == {"a": "3", "b": None, "c": "4"}
    assert versions(info) == [1, 2]
    assert versions(set_properties(catalog, T, {"a": "3"}, frozenset({"b"}))) == [1, 2]


def test_drop_removes_the_files_and_the_name_can_come_again(catalog: Directory, root: Path) -> None:
    first = catalog.create_table(T, new_table())
    append(first, 1)
    catalog.drop_table(T)
    assert names(catalog) == []
    assert not Path(path_of(first)).exists()
    second = catalog.create_table(T, new_table())
    assert second.properties[TABLE_UUID] != first.properties[TABLE_UUID]
    assert versions(load(catalog, T)) == [1]


def test_a_deregistered_table_keeps_its_files_and_can_be_registered(catalog: Directory) -> None:
    info = catalog.create_table(T, new_table(owner="ann"))
    append(info, 1)
    catalog.deregister_table(T)
    assert names(catalog) == []
    with pytest.raises(TableNotFound):
        catalog.load_table(T)
    assert lance.dataset(path_of(info)).count_rows() == 1
    manifest = sorted(Path(path_of(info), "_versions").glob("*.manifest"))[0]
    assert catalog.register_table(T, f"file://{manifest}").properties == info.properties
    assert names(catalog) == ["t"]


def test_register_refuses_what_is_no_table_inside_the_root(catalog: Directory, root: Path) -> None:
    outside = root.parent / "outside.lance"
    lance.write_dataset(rows(1), outside)
    (root / "empty.lance").mkdir()
    for location in (outside, root / "t.lance", root / "empty.lance", root, root / "../outside.lance"):
        with pytest.raises(InvalidInput):
            catalog.register_table(T, f"file://{location}")
    catalog.create_table(T, new_table())
    with pytest.raises(TableAlreadyExists):
        catalog.register_table(T, f"file://{root}/t.lance")
    with pytest.raises(InvalidInput):
        catalog.register_table(("other",), load(catalog, T).location)


def test_a_broken_table_breaks_nothing_else(catalog: Directory) -> None:
    catalog.create_table(("whole",), new_table())
    info = catalog.create_table(T, new_table())
    append(info, 1)
    newest = min(Path(path_of(info), "_versions").glob("*.manifest"))
    for bytes_ in (b"", b"x", b"nonsense" * 100, newest.read_bytes()[:-30] + b"y" * 30):
        newest.write_bytes(bytes_)
        with pytest.raises(BrokenTable) as caught:
            load(catalog, T)
        assert info.location in caught.value.message
        assert "Only this table" in caught.value.message
        assert names(catalog) == ["t", "whole"]
    assert versions(load(catalog, ("whole",))) == [1]
    catalog.drop_table(T)
    assert names(catalog) == ["whole"]


@pytest.mark.parametrize("location", ["../x", "sub/../../x", "__manifest", "__manifest/x", ""])
def test_a_location_that_cannot_be_is_refused(catalog: Directory, root: Path, location: str) -> None:
    for place in (catalog.place_table, lambda t, at: catalog.create_table(t, NewTable({}, at, SCHEMA))):
        with pytest.raises(InvalidInput):
            place(T, f"file://{root}/{location}")
        with pytest.raises(InvalidInput):
            place(T, "s3://bucket/t.lance")
    assert names(catalog) == []


def test_place_table_names_the_location_that_create_uses(catalog: Directory, root: Path) -> None:
    location = catalog.place_table(T, None)
    assert catalog.create_table(T, NewTable({}, location, SCHEMA)).location == location
    with pytest.raises(TableAlreadyExists):
        catalog.place_table(T, None)


def test_names_with_letters_that_uris_treat_specially(catalog: Directory, root: Path) -> None:
    odd = [("a b",), ("a?b",), ("a#b",), ("a%41b",), ("ä.öü",), ("a+b&c",), ("a:b",), ("'quoted'",), ('"',)]
    for name in odd:
        info = catalog.create_table(name, new_table(name=name[0]))
        assert info.location.startswith(f"file://{root}/")
        assert lance.dataset(info.location).metadata["name"] == name[0]
    assert names(catalog) == sorted(name[0] for name in odd)
    for name in odd:
        assert load(catalog, name).properties["name"] == name[0]
        catalog.deregister_table(name)
    assert names(catalog) == []


def test_storage_options_are_handed_out(root: Path, mode: str) -> None:
    catalog = open_in(mode, root, region="us-west-2")
    catalog.create_table(T, new_table())
    assert catalog.storage_options(T) == {"region": "us-west-2"}


def test_a_root_may_be_made_later_but_must_be_a_folder(catalog: Directory, root: Path) -> None:
    catalog.check()
    root.rmdir()
    catalog.check()
    root.write_text("no folder")
    with pytest.raises(Exception, match=str(root)):
        catalog.check()
