"""What V2 and compatibility mode do with namespaces, and with tables in them."""

from pathlib import Path

import lance
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
    set_properties,
    versions,
)
from irc_bridge.catalog.models import NewTable, PropertyChanges
from irc_bridge.errors import (
    BrokenTable,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
)

A, AB, ABT = ("a",), ("a", "b"), ("a", "b", "t")


def test_namespaces_of_any_depth(nested: Directory) -> None:
    deep: tuple[str, ...] = ()
    for level in range(12):
        deep += (f"n{level}",)
        nested.create_namespace(deep, {"level": str(level)})
    assert nested.load_namespace(deep) == {"level": "11"}
    assert nested.list_namespaces(deep[:-1]).items == ("n11",)
    assert nested.list_namespaces(()).items == ("n0",)
    info = nested.create_table((*deep, "t"), new_table())
    assert names(nested, deep) == ["t"]
    assert names(nested) == []
    assert path_of(info).endswith("_" + "$".join(deep) + "$t")


def test_the_errors_of_namespaces(nested: Directory) -> None:
    nested.create_namespace(A, {})
    nested.create_namespace(AB, {})
    nested.create_table(ABT, new_table())
    with pytest.raises(NamespaceAlreadyExists, match=r"^Namespace already exists: a\.b$"):
        nested.create_namespace(AB, {})
    with pytest.raises(NamespaceAlreadyExists):
        nested.create_namespace((), {})
    with pytest.raises(NamespaceNotFound, match=r"^Namespace does not exist: x$"):
        nested.create_namespace(("x", "y"), {})
    with pytest.raises(NamespaceNotEmpty, match=r"^Namespace a\.b is not empty: it holds t$"):
        nested.drop_namespace(AB)
    with pytest.raises(NamespaceNotEmpty, match=r"^Namespace a is not empty: it holds b$"):
        nested.drop_namespace(A)
    with pytest.raises(NamespaceNotFound):
        nested.drop_namespace(("x",))
    with pytest.raises(InvalidInput):
        nested.drop_namespace(())
    with pytest.raises(TableNotFound, match=r"^Table does not exist: a\.b\.x$"):
        nested.load_table((*AB, "x"))
    with pytest.raises(TableAlreadyExists, match=r"^Table already exists: a\.b\.t$"):
        nested.create_table(ABT, new_table())


def test_namespaces_and_tables_share_their_names(nested: Directory) -> None:
    nested.create_namespace(A, {})
    nested.create_table(("t",), new_table())
    with pytest.raises(TableAlreadyExists):
        nested.create_namespace(("t",), {})
    for new in (new_table(), declared()):
        with pytest.raises(NamespaceAlreadyExists):
            nested.create_table(A, new)
    with pytest.raises(NamespaceNotFound):
        nested.list_tables(("t",))
    with pytest.raises(TableNotFound):
        nested.load_table(A)


def test_an_empty_namespace_can_be_dropped(nested: Directory) -> None:
    nested.create_namespace(A, {})
    nested.create_namespace(AB, {})
    nested.create_table(ABT, new_table())
    nested.drop_table(ABT)
    nested.drop_namespace(AB)
    nested.drop_namespace(A)
    assert nested.list_namespaces(()).items == ()
    assert not nested.namespace_exists(A)
    assert nested.namespace_exists(())


def test_properties_of_a_namespace(nested: Directory) -> None:
    nested.create_namespace(A, {"keep": "1", "change": "2", "remove": "3"})
    changes = nested.update_namespace_properties(
        A, frozenset({"remove", "absent"}), {"change": "'quoted'", "add": "ü"}
    )
    assert changes == PropertyChanges(("change", "add"), ("remove",), ("absent",))
    assert nested.load_namespace(A) == {"keep": "1", "change": "'quoted'", "add": "ü"}
    with pytest.raises(NamespaceNotFound):
        nested.update_namespace_properties(("x",), frozenset(), {"a": "b"})
    nested.update_namespace_properties(A, frozenset({"keep", "change", "add"}), {})
    assert nested.load_namespace(A) == {}


def test_a_name_that_contains_the_delimiter_is_no_alias(nested: Directory) -> None:
    nested.create_namespace(A, {})
    nested.create_namespace(AB, {})
    nested.create_table(ABT, new_table())
    assert not nested.namespace_exists(("a$b",))
    assert not nested.table_exists(("a$b", "t"))
    assert not nested.table_exists(("a", "b$t"))
    with pytest.raises(NamespaceNotFound):
        nested.list_tables(("a$b",))
    with pytest.raises(InvalidInput, match=r"contains \$"):
        nested.create_namespace(("a$b",), {})


def test_names_with_quotes_stay_text(nested: Directory) -> None:
    odd = ("it's", "' OR 'a' = 'a")
    for name in odd:
        nested.create_namespace((name,), {"name": name})
        nested.create_table((name, name), new_table())
    nested.rename_table((odd[0], odd[0]), (odd[1], odd[0]))
    nested.update_namespace_properties((odd[1],), frozenset(), {"more": "'"})
    nested.drop_namespace((odd[0],))
    assert nested.list_namespaces(()).items == (odd[1],)
    assert names(nested, (odd[1],)) == sorted(odd)
    nested.drop_table((odd[1], odd[1]))
    assert names(nested, (odd[1],)) == [odd[0]]


def test_rename_keeps_the_files_and_the_history(nested: Directory) -> None:
    nested.create_namespace(A, {})
    info = nested.create_table(("t",), new_table(owner="ann"))
    append(info, 1)
    nested.rename_table(("t",), ("a", "u"))
    renamed = load(nested, ("a", "u"))
    assert (renamed.properties, versions(renamed)) == (info.properties, [1, 2])
    assert (names(nested), names(nested, A)) == ([], ["u"])
    with pytest.raises(TableNotFound):
        nested.load_table(("t",))
    again = nested.create_table(("t",), new_table())
    assert again.location != renamed.location
    assert names(nested) == ["t"]


def test_rename_refuses_what_cannot_be(nested: Directory) -> None:
    nested.create_namespace(A, {})
    nested.create_table(("t",), new_table())
    nested.create_table(("u",), new_table())
    with pytest.raises(TableAlreadyExists):
        nested.rename_table(("t",), ("u",))
    with pytest.raises(NamespaceAlreadyExists):
        nested.rename_table(("t",), A)
    with pytest.raises(NamespaceNotFound):
        nested.rename_table(("t",), ("x", "t"))
    with pytest.raises(TableNotFound):
        nested.rename_table(("x",), ("y",))
    with pytest.raises(InvalidInput):
        nested.rename_table(("t",), ("a$b",))
    assert names(nested) == ["t", "u"]


def test_a_declared_table_keeps_its_properties_over_a_rename(nested: Directory) -> None:
    nested.create_table(("t",), declared(owner="ann"))
    nested.rename_table(("t",), ("u",))
    assert load(nested, ("u",)).properties["owner"] == "ann"
    assert set_properties(nested, ("u",), {"a": "b"}).properties["a"] == "b"


def test_a_location_inside_the_root_is_kept(nested: Directory, root: Path) -> None:
    info = nested.create_table(("t",), NewTable({}, f"file://{root}/deep/in/here", SCHEMA))
    assert info.location == f"file://{root}/deep/in/here"
    declaration = nested.create_table(("u",), NewTable({}, str(root / "plain")))
    assert declaration.location == f"file://{root}/plain"
    for taken in ("deep/in/here", "deep/in", "deep", "deep/in/here/below", "plain", "plain/data"):
        with pytest.raises(InvalidInput, match="overlaps"):
            nested.create_table(("v",), NewTable({}, f"file://{root}/{taken}", SCHEMA))
    (root / "mine").mkdir()
    (root / "mine" / "notes.txt").write_text("not a table")
    with pytest.raises(InvalidInput, match="not empty"):
        nested.create_table(("v",), NewTable({}, f"file://{root}/mine", SCHEMA))
    assert names(nested) == ["t", "u"]


def test_a_folder_that_is_no_table_is_never_deleted(nested: Directory, root: Path) -> None:
    info = nested.create_table(("t",), declared())
    Path(path_of(info), ".lance-reserved").unlink()
    Path(path_of(info)).rmdir() if Path(path_of(info)).exists() else None
    Path(path_of(info)).mkdir()
    Path(path_of(info), "notes.txt").write_text("mine")
    with pytest.raises(BrokenTable):
        load(nested, ("t",))
    with pytest.raises(InvalidInput, match="does not look like a Lance table"):
        nested.drop_table(("t",))
    assert Path(path_of(info), "notes.txt").read_text() == "mine"
    nested.deregister_table(("t",))
    assert names(nested) == []


@pytest.mark.parametrize("location", ["../outside", "/etc", "", "__manifest", "a/../../b"])
def test_a_row_that_leads_out_of_the_root_is_not_followed(nested: Directory, root: Path, location: str) -> None:
    nested.create_table(("t",), new_table())
    lance.dataset(root / "__manifest").update({"location": f"'{location}'"})
    with pytest.raises(BrokenTable):
        load(nested, ("t",))
    with pytest.raises(BrokenTable):
        nested.drop_table(("t",))
    assert names(nested) == ["t"]
    assert (root / "__manifest").is_dir()


def test_columns_and_metadata_of_newer_writers_stay(nested: Directory, root: Path) -> None:
    nested.create_namespace(A, {"mine": "1"})
    nested.create_table(("a", "t"), declared(owner="ann"))
    manifest = lance.dataset(root / "__manifest")
    manifest.add_columns({"newer": "concat('for ', object_id)"})
    manifest.update({"metadata": """'{"created_at": "2026-01-01", "count": 7, "mine": "1"}'"""}, "object_id = 'a'")
    manifest.update_metadata({"newer.flag": "x"})
    assert nested.load_namespace(A) == {"mine": "1"}
    nested.update_namespace_properties(A, frozenset({"mine"}), {"yours": "2"})
    nested.rename_table(("a", "t"), ("a", "u"))
    nested.create_namespace(AB, {})
    manifest = lance.dataset(root / "__manifest")
    rows = {row["object_id"]: row for row in manifest.to_table().to_pylist()}
    assert rows["a"]["newer"] == "for a"
    assert rows["a"]["metadata"] == '{"created_at": "2026-01-01", "count": 7, "yours": "2"}'
    assert rows["a$u"]["newer"] == "for a$t"
    assert rows["a$b"]["newer"] is None
    assert manifest.metadata == {"newer.flag": "x"}


def test_many_changes_keep_the_manifest_in_few_pieces(nested: Directory, root: Path) -> None:
    expected = [f"n{number:03}" for number in range(80)]
    for name in expected:
        nested.create_namespace((name,), {})
    assert list(nested.list_namespaces(()).items) == expected
    assert len(lance.dataset(root / "__manifest").get_fragments()) <= 33


def test_two_catalogs_see_each_other_at_once(root: Path) -> None:
    one, other = open_in("compat", root), open_in("v2", root)
    for number in range(5):
        one.create_namespace((f"n{number}",), {})
        assert other.namespace_exists((f"n{number}",))
        other.create_table((f"n{number}", "t"), new_table())
        assert names(one, (f"n{number}",)) == ["t"]
