"""Folders that are found by listing: V1 and compatibility mode, seed 002."""

import shutil
from pathlib import Path

import lance
import pytest

from contract_tests.directory.opened import (
    SCHEMA,
    Directory,
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
from irc_bridge.catalog.models import NewTable
from irc_bridge.errors import BrokenTable, InvalidInput, TableAlreadyExists, TableNotFound

T = ("t",)


@pytest.fixture(params=["v1", "compat"])
def listing(request: pytest.FixtureRequest, root: Path) -> Directory:
    return open_in(request.param, root)


def test_a_lance_folder_is_a_table(listing: Directory, root: Path) -> None:
    lance.write_dataset(rows(1, 2), root / "t.lance").update_metadata({"owner": "ann"})
    lance.write_dataset(rows(1), root / "not_listed")
    (root / "file.lance").write_text("a file")
    assert names(listing) == ["t"]
    assert versions(load(listing, T)) == [1, 2]
    assert load(listing, T).properties == {"owner": "ann"}
    assert versions(set_properties(listing, T, {"a": "b"})) == [1, 2, 3]
    assert not (root / "__manifest").exists()


@pytest.mark.parametrize(
    "leftover",
    [
        [],
        ["_transactions/1.txn"],
        ["data/x.lance"],
        ["_versions/"],
        ["_versions/5.manifest-ab12"],
        ["_iceberg/data/x.parquet", "_iceberg/versions/1-0123456789abcdef.avro"],
    ],
)
def test_what_an_interrupted_create_leaves_is_nothing(listing: Directory, root: Path, leftover: list[str]) -> None:
    (root / "t.lance").mkdir()
    for each in leftover:
        path = root / "t.lance" / each
        (path if each.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not each.endswith("/"):
            path.write_bytes(b"half")
    assert names(listing) == []
    assert not listing.table_exists(T)
    listing.create_table(T, new_table())
    assert versions(load(listing, T)) == [1]


def test_a_folder_with_something_else_is_a_broken_table(listing: Directory, root: Path) -> None:
    (root / "t.lance").mkdir()
    (root / "t.lance" / "notes.txt").write_text("mine")
    listing.create_table(("whole",), new_table())
    assert names(listing) == ["t", "whole"]
    with pytest.raises(BrokenTable, match="Only this table"):
        load(listing, T)
    with pytest.raises(InvalidInput, match="does not look like"):
        listing.drop_table(T)
    assert (root / "t.lance" / "notes.txt").exists()


def test_markers_of_native_lance(listing: Directory, root: Path) -> None:
    (root / "t.lance").mkdir()
    (root / "t.lance" / ".lance-reserved").write_bytes(b"reserved")
    assert names(listing) == ["t"]
    assert (load(listing, T).versions, load(listing, T).properties) == ((), {})
    (root / "t.lance" / ".lance-deregistered").write_bytes(b"reserved")
    assert names(listing) == []
    with pytest.raises(TableNotFound):
        load(listing, T)
    listing.drop_table(T)
    assert not (root / "t.lance").exists()


def test_deregistering_a_folder_writes_the_marker(listing: Directory, root: Path) -> None:
    lance.write_dataset(rows(1), root / "t.lance")
    listing.deregister_table(T)
    assert (root / "t.lance" / ".lance-deregistered").exists()
    assert names(listing) == []
    with pytest.raises(TableNotFound):
        listing.deregister_table(T)
    listing.register_table(T, str(root / "t.lance"))
    assert not (root / "t.lance" / ".lance-deregistered").exists()
    assert names(listing) == ["t"]


def test_a_deregistered_name_made_again(root: Path) -> None:
    lance.write_dataset(rows(1), root / "t.lance")
    compat = open_in("compat", root)
    compat.deregister_table(T)
    with pytest.raises(TableAlreadyExists, match="deregistered"):
        open_in("v1", root).create_table(T, new_table())
    info = compat.create_table(T, new_table())
    assert path_of(info).endswith("_t")
    assert names(compat) == ["t"]
    assert lance.dataset(root / "t.lance").count_rows() == 1


def test_v1_keeps_a_table_in_the_folder_of_its_name(root: Path) -> None:
    v1 = open_in("v1", root)
    with pytest.raises(InvalidInput, match=f"file://{root}/t.lance"):
        v1.create_table(T, NewTable({}, f"file://{root}/elsewhere", SCHEMA))
    lance.write_dataset(rows(1), root / "elsewhere")
    with pytest.raises(InvalidInput, match="folder of its name"):
        v1.register_table(T, str(root / "elsewhere"))


def test_v1_declares_in_the_marker(root: Path) -> None:
    v1 = open_in("v1", root)
    v1.create_table(T, declared(owner="ann"))
    assert '"owner": "ann"' in (root / "t.lance" / ".lance-reserved").read_text()


def test_compatibility_mode_registers_root_tables_under_their_v1_folder(root: Path) -> None:
    compat, v1, v2 = (open_in(mode, root) for mode in ("compat", "v1", "v2"))
    compat.create_table(("made",), new_table())
    compat.create_table(("said",), declared())
    lance.write_dataset(rows(1), root / "found.lance")
    assert sorted(path.name for path in root.iterdir()) == [
        "__manifest",
        "found.lance",
        "made.lance",
        "said.lance",
    ]
    assert names(compat) == ["found", "made", "said"]
    assert names(v1) == ["found", "made", "said"]
    assert names(v2) == ["made", "said"]


def test_the_manifest_goes_first_and_locations_are_listed_once(root: Path) -> None:
    compat = open_in("compat", root)
    compat.create_namespace(("a",), {})
    lance.write_dataset(rows(1), root / "t.lance")
    compat.rename_table(T, ("u",))
    assert names(compat) == ["u"]
    left = load(compat, ("u",)).location
    assert left.startswith(f"file://{root}/") and left.endswith("_u")
    assert not (root / "t.lance").exists()
    with pytest.raises(TableNotFound):
        load(compat, T)
    compat.rename_table(("u",), ("a", "u"))
    assert (names(compat), names(compat, ("a",))) == ([], ["u"])
    assert load(compat, ("a", "u")).location == left
    assert path_of(compat.create_table(T, new_table())).endswith("/t.lance")
    compat.deregister_table(("a", "u"))
    assert names(compat) == ["t"]
    assert compat.register_table(("back",), left).location == left
    assert names(compat) == ["back", "t"]


def test_a_root_table_that_is_dropped_is_gone_from_listing_too(root: Path) -> None:
    compat, v1 = open_in("compat", root), open_in("v1", root)
    compat.create_table(T, new_table())
    compat.deregister_table(T)
    assert (names(compat), names(v1)) == ([], [])
    assert (root / "t.lance" / "_versions").exists()
    compat.drop_table(T)
    assert not (root / "t.lance").exists()


def test_a_folder_table_of_a_namespaces_name_is_hidden(root: Path) -> None:
    compat = open_in("compat", root)
    compat.create_namespace(("a",), {})
    lance.write_dataset(rows(1), root / "a.lance")
    assert names(compat) == []
    assert not compat.table_exists(("a",))
    shutil.rmtree(root / "a.lance")
    lance.write_dataset(rows(1), root / "b.lance")
    with pytest.raises(TableAlreadyExists):
        compat.create_namespace(("b",), {})


def test_a_folder_that_cannot_be_a_name_is_not_listed(listing: Directory, root: Path) -> None:
    for folder in ("a$b.lance", ".lance", "a\nb.lance"):
        (root / folder).mkdir()
        (root / folder / ".lance-reserved").write_bytes(b"reserved")
    assert names(listing) == []


def test_a_link_to_a_table_elsewhere_is_removed_without_its_files(listing: Directory, root: Path) -> None:
    elsewhere = root.parent / "elsewhere"
    lance.write_dataset(rows(1), elsewhere)
    (root / "t.lance").symlink_to(elsewhere)
    assert names(listing) == ["t"]
    listing.drop_table(T)
    assert names(listing) == []
    assert lance.dataset(elsewhere).count_rows() == 1
