"""pylance's own DirectoryNamespace on the same folder, in both directions."""

from pathlib import Path

import lance
import lance_namespace as ln
import pytest
from lance.namespace import DirectoryNamespace

from contract_tests.directory.opened import (
    MODES,
    Directory,
    declared,
    load,
    names,
    new_table,
    open_in,
    path_of,
    rows,
    versions,
)
from irc_bridge.errors import NamespaceAlreadyExists, TableAlreadyExists


def native(mode: str, root: Path) -> DirectoryNamespace:
    return DirectoryNamespace(root=str(root), **{key: str(value).lower() for key, value in MODES[mode].items()})


def native_tables(namespace: DirectoryNamespace, *levels: str) -> list[str]:
    return sorted(namespace.list_tables(ln.ListTablesRequest(id=list(levels))).tables)


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_native_lance_reads_what_we_write(mode: str, root: Path) -> None:
    ours = open_in(mode, root)
    ours.create_namespace(("a",), {"owner": "ann"})
    ours.create_namespace(("a", "b"), {})
    made = ours.create_table(("a", "t"), new_table())
    ours.create_table(("a", "said"), declared(team="x"))
    ours.create_table(("r",), new_table())
    ours.rename_table(("a", "t"), ("a", "u"))
    theirs = native(mode, root)
    assert theirs.list_namespaces(ln.ListNamespacesRequest(id=["a"])).namespaces == ["b"]
    assert theirs.describe_namespace(ln.DescribeNamespaceRequest(id=["a"])).properties == {"owner": "ann"}
    assert native_tables(theirs, "a") == ["said", "u"]
    assert native_tables(theirs) == ["r"]
    described = theirs.describe_table(ln.DescribeTableRequest(id=["a", "u"]))
    assert described.location == made.location
    said = theirs.describe_table(ln.DescribeTableRequest(id=["a", "said"])).properties
    assert said is not None
    assert said["team"] == "x"


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_we_read_what_native_lance_writes(mode: str, root: Path) -> None:
    theirs = native(mode, root)
    theirs.create_namespace(ln.CreateNamespaceRequest(id=["a"], properties={"owner": "ann"}))
    theirs.declare_table(ln.DeclareTableRequest(id=["a", "said"], properties={"team": "x"}))
    location = theirs.declare_table(ln.DeclareTableRequest(id=["r"])).location
    assert location is not None
    lance.write_dataset(rows(1), location)
    ours = open_in(mode, root)
    assert ours.load_namespace(("a",)) == {"owner": "ann"}
    assert names(ours, ("a",)) == ["said"]
    assert load(ours, ("a", "said")).properties == {"team": "x"}
    assert load(ours, ("r",)).location == location
    assert versions(load(ours, ("r",))) == [1]


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_both_change_one_folder_in_turn(mode: str, root: Path) -> None:
    ours, theirs = open_in(mode, root), native(mode, root)
    for number in range(6):
        ours.create_namespace((f"ours{number}",), {})
        theirs.create_namespace(ln.CreateNamespaceRequest(id=[f"theirs{number}"]))
        with pytest.raises(NamespaceAlreadyExists):
            ours.create_namespace((f"theirs{number}",), {})
        theirs.declare_table(ln.DeclareTableRequest(id=[f"ours{number}", "t"]))
        with pytest.raises(TableAlreadyExists):
            ours.create_table((f"ours{number}", "t"), new_table())
        ours.create_table((f"theirs{number}", "t"), new_table())
    theirs.drop_table(ln.DropTableRequest(id=["theirs0", "t"]))
    theirs.deregister_table(ln.DeregisterTableRequest(id=["ours0", "t"]))
    ours.drop_table(("ours1", "t"))
    for number in range(6):
        for side in ("ours", "theirs"):
            expected = [] if (side, number) in {("theirs", 0), ("ours", 0), ("ours", 1)} else ["t"]
            assert names(ours, (f"{side}{number}",)) == expected
            assert native_tables(theirs, f"{side}{number}") == expected
    ours.drop_namespace(("theirs0",))
    found = theirs.list_namespaces(ln.ListNamespacesRequest(id=[])).namespaces
    assert "theirs0" not in found
    assert len(found) == 11


def test_v1_in_both_directions(root: Path) -> None:
    ours, theirs = open_in("v1", root), native("v1", root)
    info = ours.create_table(("made",), new_table())
    ours.create_table(("said",), declared(owner="ann"))
    theirs.declare_table(ln.DeclareTableRequest(id=["theirs"]))
    assert native_tables(theirs) == names(ours) == ["made", "said", "theirs"]
    described = theirs.describe_table(ln.DescribeTableRequest(id=["made"]))
    assert described.location is not None
    assert described.location.removeprefix("file://") == path_of(info)
    theirs.deregister_table(ln.DeregisterTableRequest(id=["made"]))
    ours.deregister_table(("said",))
    assert native_tables(theirs) == names(ours) == ["theirs"]
    assert versions(ours.register_table(("made",), info.location)) == [1]
    assert native_tables(theirs) == ["made", "theirs"]


def test_native_writers_commit_to_a_declared_table(nested: Directory, root: Path) -> None:
    nested.create_namespace(("a",), {})
    nested.create_table(("a", "t"), declared(owner="ann"))
    theirs = native("v2", root)
    lance.write_dataset(rows(1), namespace_client=theirs, table_id=["a", "t"], mode="append")
    lance.write_dataset(rows(2), namespace_client=theirs, table_id=["a", "t"], mode="append")
    info = load(nested, ("a", "t"))
    assert versions(info) == [1, 2]
    assert info.properties["owner"] == "ann"
