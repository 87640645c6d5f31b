"""Manifests as other releases of Lance wrote them, made by hand: read, changed, still good for native Lance."""

import json
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import LanceNamespaceError

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
from irc_bridge.errors import NamespaceAlreadyExists, TableAlreadyExists

PRIMARY_KEY = {"lance-schema:unenforced-primary-key:position": "0"}
TABLE_FOLDER = "0a1b2c3d_a$t"
ROWS = [
    {"object_id": "a", "object_type": "namespace", "location": None, "metadata": '{"owner": "ann"}'},
    {"object_id": "a$t", "object_type": "table", "location": TABLE_FOLDER, "metadata": None},
    {"object_id": "r", "object_type": "table", "location": "r.lance", "metadata": None},
]


def manifest_schema(*more: pa.Field, key: dict[str, str] | None = None) -> pa.Schema:
    return pa.schema(
        [
            pa.field("object_id", pa.string(), False, metadata=key),
            pa.field("object_type", pa.string(), False),
            pa.field("location", pa.string()),
            pa.field("metadata", pa.string()),
            pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
            *more,
        ]
    )


def write(root: Path, schema: pa.Schema, more: list[dict[str, str | None]] | None = None) -> lance.LanceDataset:
    for folder in (TABLE_FOLDER, "r.lance"):
        lance.write_dataset(rows(1), root / folder)
        lance.write_dataset(rows(2), root / folder, mode="append")
    table = pa.Table.from_pylist([*ROWS, *(more or [])], schema=schema)
    return lance.write_dataset(table, root / "__manifest", data_storage_version="2.0")


def version_row(root: Path, number: int) -> dict[str, str | None]:
    """Paths are relative to the root of the object store."""
    path = f"{root}/{TABLE_FOLDER}/_versions/{2**64 - 1 - number:020}.manifest".removeprefix("/")
    record = {"manifest_path": path, "manifest_size": 1000, "e_tag": None, "naming_scheme": "V2"}
    return {"object_id": f"a$t${number:020}", "object_type": "table_version", "metadata": json.dumps(record)}


def without_primary_key(root: Path) -> None:
    """Lance 1 and 2."""
    write(root, manifest_schema())


def with_indexes(root: Path) -> None:
    """Lance with inline optimisation, the default before 12."""
    manifest = write(root, manifest_schema(key=PRIMARY_KEY))
    manifest.create_scalar_index("object_id", "BTREE", name="object_id_btree")
    manifest.create_scalar_index("object_type", "BITMAP", name="object_type_bitmap")
    manifest.create_scalar_index("base_objects", "LABEL_LIST", name="base_objects_label_list")


def with_more_columns(root: Path) -> None:
    write(root, manifest_schema(pa.field("newer", pa.string()), key=PRIMARY_KEY)).update_metadata({"newer": "x"})


def with_version_rows(root: Path) -> None:
    """Lance 4 to 7 with the storage of table versions."""
    version_rows = [version_row(root, number) for number in (1, 2)]
    manifest = write(root, manifest_schema(key=PRIMARY_KEY), version_rows)
    manifest.update_metadata({"table_version_storage_enabled": "true"})


WITHOUT_VERSION_ROWS = [without_primary_key, with_indexes, with_more_columns]
Make = Callable[[Path], None]


def object_ids(root: Path) -> list[str]:
    ids: list[str] = lance.dataset(root / "__manifest").to_table()["object_id"].to_pylist()
    return sorted(ids)


def change_everything(catalog: Directory) -> None:
    """Ends with a$b, a$b$u (which was a$t), a$said and no table in the root."""
    assert seen_by_us(catalog) == {("a",): {"owner": "ann"}, ("a", "t"): TABLE_FOLDER, ("r",): "r.lance"}
    with pytest.raises(NamespaceAlreadyExists):
        catalog.create_namespace(("a",), {})
    with pytest.raises(TableAlreadyExists):
        catalog.create_table(("a", "t"), new_table())
    catalog.create_namespace(("a", "b"), {"team": "x"})
    catalog.update_namespace_properties(("a",), frozenset(), {"color": "red"})
    catalog.create_table(("a", "said"), declared(owner="bob"))
    set_properties(catalog, ("a", "said"), {"owner": "cid"})
    catalog.create_table(("a", "made"), new_table())
    catalog.deregister_table(("a", "made"))
    catalog.rename_table(("a", "t"), ("a", "b", "u"))
    catalog.drop_table(("r",))
    assert names(catalog) == []
    assert names(catalog, ("a",)) == ["said"]
    assert load(catalog, ("a", "said")).properties["owner"] == "cid"
    append(load(catalog, ("a", "b", "u")), 3)
    assert versions(load(catalog, ("a", "b", "u"))) == [1, 2, 3]


@pytest.mark.parametrize("mode", ["compat", "v2"])
@pytest.mark.parametrize("make", WITHOUT_VERSION_ROWS)
def test_a_manifest_of_another_release_is_read_and_changed(root: Path, mode: str, make: Make) -> None:
    make(root)
    ours, theirs = open_in(mode, root), Native(mode, root)
    assert seen_by_us(ours) == seen_by_native(theirs)
    change_everything(ours)
    assert object_ids(root) == ["a", "a$b", "a$b$u", "a$said"]
    said = Path(path_of(load(ours, ("a", "said")))).name
    expected = {
        ("a",): {"owner": "ann", "color": "red"},
        ("a", "said"): said,
        ("a", "b"): {"team": "x"},
        ("a", "b", "u"): TABLE_FOLDER,
    }
    assert seen_by_us(ours) == seen_by_native(theirs) == expected
    theirs.create_namespace(("c",))
    theirs.drop(("a", "said"))
    ours.create_table(("c", "mine"), new_table())
    theirs.drop(("c", "mine"))
    ours.drop_namespace(("c",))
    del expected["a", "said"]
    assert seen_by_us(ours) == seen_by_native(theirs) == expected
    assert object_ids(root) == ["a", "a$b", "a$b$u"]


@pytest.mark.parametrize("make", WITHOUT_VERSION_ROWS)
def test_native_lance_changes_it_first(root: Path, make: Make) -> None:
    make(root)
    ours, theirs = open_in("compat", root), Native("compat", root)
    theirs.create_namespace(("c",), {"owner": "them"})
    theirs.declare(("c", "said"), {"team": "y"})
    assert ours.load_namespace(("c",)) == {"owner": "them"}
    assert load(ours, ("c", "said")).properties == {"team": "y"}
    ours.drop_table(("c", "said"))
    theirs.drop_namespace(("c",))
    change_everything(ours)
    assert object_ids(root) == ["a", "a$b", "a$b$u", "a$said"]


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_indexes_find_what_the_rows_say(root: Path, mode: str) -> None:
    with_indexes(root)
    change_everything(open_in(mode, root))
    manifest = lance.dataset(root / "__manifest")
    indexes = {index.name for index in manifest.describe_indices()}
    assert indexes == {"object_id_btree", "object_type_bitmap", "base_objects_label_list"}
    for key in ("a", "a$t", "a$b", "a$b$u", "a$said", "a$made", "r"):
        found = manifest.to_table(filter=f"object_id = '{key}'").num_rows
        assert found == (key in ("a", "a$b", "a$b$u", "a$said"))
    tables = manifest.to_table(filter="object_type = 'table'")["object_id"].to_pylist()
    assert sorted(tables) == ["a$b$u", "a$said"]


def test_columns_and_metadata_that_we_do_not_know_stay(root: Path) -> None:
    with_more_columns(root)
    ours = open_in("v2", root)
    change_everything(ours)
    manifest = lance.dataset(root / "__manifest")
    assert "newer" in manifest.schema.names
    assert manifest.metadata["newer"] == "x"


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_version_rows_of_lance_4_to_7_are_no_tables(root: Path, mode: str) -> None:
    with_version_rows(root)
    ours = open_in(mode, root)
    change_everything(ours)
    rows_of_objects = [each for each in object_ids(root) if not each[-1].isdigit()]
    assert rows_of_objects == ["a", "a$b", "a$b$u", "a$said"]
    ours.drop_table(("a", "b", "u"))
    ours.drop_namespace(("a", "b"))
    assert ours.list_namespaces(("a",)).items == ()


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_version_rows_go_with_their_table(root: Path, mode: str) -> None:
    with_version_rows(root)
    ours = open_in(mode, root)
    ours.rename_table(("a", "t"), ("a", "u"))
    versions_of_u = [each for each in object_ids(root) if each.startswith("a$u$")]
    assert [int(each.rpartition("$")[2]) for each in versions_of_u] == [1, 2]
    assert object_ids(root) == sorted(["a", "a$u", "r", *versions_of_u])
    ours.drop_table(("a", "u"))
    assert object_ids(root) == ["a", "r"]


def test_native_lance_reads_version_rows_and_cannot_change_beside_them(root: Path) -> None:
    """Which is why a catalog of ours that has such rows is fenced off."""
    with_version_rows(root)
    theirs = Native("v2", root)
    assert seen_by_native(theirs) == seen_by_us(open_in("v2", root))
    with pytest.raises(LanceNamespaceError, match="object type"):
        theirs.create_namespace(("c",))
