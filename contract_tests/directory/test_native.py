"""pylance's own DirectoryNamespace on the same folder, in both directions."""

from pathlib import Path

import lance
import pytest
from lance_namespace.errors import TableAlreadyExistsError

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
from irc_bridge.catalog.models import Levels
from irc_bridge.errors import NamespaceAlreadyExists, NamespaceNotFound, TableAlreadyExists

A, AB = ("a",), ("a", "b")


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_native_lance_reads_what_we_write(mode: str, root: Path) -> None:
    ours = open_in(mode, root)
    ours.create_namespace(("a",), {"owner": "ann"})
    ours.create_namespace(("a", "b"), {})
    made = ours.create_table(("a", "t"), new_table())
    ours.create_table(("a", "said"), declared(team="x"))
    ours.create_table(("r",), new_table())
    ours.rename_table(("a", "t"), ("a", "u"))
    theirs = Native(mode, root)
    assert theirs.namespaces(A) == ["b"]
    assert theirs.properties(A) == {"owner": "ann"}
    assert theirs.tables(A) == ["said", "u"]
    assert theirs.tables(()) == ["r"]
    assert theirs.location(("a", "u")) == made.location
    assert theirs.table_properties(("a", "said"))["team"] == "x"


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_we_read_what_native_lance_writes(mode: str, root: Path) -> None:
    theirs = Native(mode, root)
    theirs.create_namespace(A, {"owner": "ann"})
    theirs.declare(("a", "said"), {"team": "x"})
    location = theirs.declare(("r",))
    lance.write_dataset(rows(1), location)
    ours = open_in(mode, root)
    assert ours.load_namespace(("a",)) == {"owner": "ann"}
    assert names(ours, ("a",)) == ["said"]
    assert load(ours, ("a", "said")).properties == {"team": "x"}
    assert load(ours, ("r",)).location == location
    assert versions(load(ours, ("r",))) == [1]


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_both_change_one_folder_in_turn(mode: str, root: Path) -> None:
    ours, theirs = open_in(mode, root), Native(mode, root)
    for number in range(6):
        ours.create_namespace((f"ours{number}",), {})
        theirs.create_namespace((f"theirs{number}",))
        with pytest.raises(NamespaceAlreadyExists):
            ours.create_namespace((f"theirs{number}",), {})
        theirs.declare((f"ours{number}", "t"))
        with pytest.raises(TableAlreadyExists):
            ours.create_table((f"ours{number}", "t"), new_table())
        ours.create_table((f"theirs{number}", "t"), new_table())
    theirs.drop(("theirs0", "t"))
    theirs.deregister(("ours0", "t"))
    ours.drop_table(("ours1", "t"))
    for number in range(6):
        for side in ("ours", "theirs"):
            expected = [] if (side, number) in {("theirs", 0), ("ours", 0), ("ours", 1)} else ["t"]
            assert names(ours, (f"{side}{number}",)) == expected
            assert theirs.tables((f"{side}{number}",)) == expected
    ours.drop_namespace(("theirs0",))
    found = theirs.namespaces(())
    assert "theirs0" not in found
    assert len(found) == 11


def test_v1_in_both_directions(root: Path) -> None:
    ours, theirs = open_in("v1", root), Native("v1", root)
    info = ours.create_table(("made",), new_table())
    ours.create_table(("said",), declared(owner="ann"))
    theirs.declare(("theirs",))
    assert theirs.tables(()) == names(ours) == ["made", "said", "theirs"]
    assert theirs.location(("made",)).removeprefix("file://") == path_of(info)
    theirs.deregister(("made",))
    ours.deregister_table(("said",))
    assert theirs.tables(()) == names(ours) == ["theirs"]
    assert versions(ours.register_table(("made",), info.location)) == [1]
    assert theirs.tables(()) == ["made", "theirs"]


def test_native_writers_commit_to_a_declared_table(nested: Directory, root: Path) -> None:
    nested.create_namespace(("a",), {})
    nested.create_table(("a", "t"), declared(owner="ann"))
    theirs = Native("v2", root)
    lance.write_dataset(rows(1), namespace_client=theirs.namespace, table_id=["a", "t"], mode="append")
    lance.write_dataset(rows(2), namespace_client=theirs.namespace, table_id=["a", "t"], mode="append")
    info = load(nested, ("a", "t"))
    assert versions(info) == [1, 2]
    assert info.properties["owner"] == "ann"


FOUR_PAIRS = [(ours, theirs) for ours in ("compat", "v2") for theirs in ("compat", "v2")]


@pytest.mark.parametrize(("our_mode", "their_mode"), FOUR_PAIRS)
def test_every_kind_of_change_in_turn(our_mode: str, their_mode: str, root: Path) -> None:
    """Below the root, where each of them has all changes and no folder counts without its row."""
    ours, theirs = open_in(our_mode, root), Native(their_mode, root)
    expected: dict[Levels, object] = {}

    def both_see(changes: dict[Levels, object], gone: tuple[Levels, ...] = ()) -> None:
        expected.update(changes)
        for each in gone:
            del expected[each]
        assert seen_by_us(ours) == expected
        assert seen_by_native(theirs) == expected

    theirs.create_namespace(A, {"owner": "ann"})
    both_see({A: {"owner": "ann"}})
    ours.create_namespace(AB, {"team": "x"})
    both_see({AB: {"team": "x"}})
    said = theirs.declare(("a", "said"), {"team": "y"})
    both_see({("a", "said"): Path(said).name})
    made = path_of(ours.create_table(("a", "b", "made"), new_table(owner="bob")))
    both_see({("a", "b", "made"): Path(made).name})
    held = theirs.create(("a", "held"))
    both_see({("a", "held"): Path(held).name})
    ours.update_namespace_properties(A, frozenset({"owner"}), {"color": "red"})
    both_see({A: {"color": "red"}})
    mine = path_of(ours.create_table(("a", "mine"), declared(owner="ann")))
    both_see({("a", "mine"): Path(mine).name})
    theirs.deregister(("a", "held"))
    both_see({}, gone=(("a", "held"),))
    ours.register_table(("a", "b", "back"), held)
    both_see({("a", "b", "back"): Path(held).name})
    ours.rename_table(("a", "b", "back"), ("a", "again"))
    both_see({("a", "again"): Path(held).name}, gone=(("a", "b", "back"),))
    set_properties(ours, ("a", "said"), {"color": "blue"}, frozenset({"team"}))
    assert theirs.table_properties(("a", "said")) == {"color": "blue"}
    ours.deregister_table(("a", "b", "made"))
    both_see({}, gone=(("a", "b", "made"),))
    theirs.register(("a", "b", "theirs"), Path(made).name)
    both_see({("a", "b", "theirs"): Path(made).name})
    assert load(ours, ("a", "b", "theirs")).properties["owner"] == "bob"
    theirs.drop(("a", "again"))
    ours.drop_table(("a", "said"))
    both_see({}, gone=(("a", "again"), ("a", "said")))
    theirs.drop(("a", "mine"))
    ours.drop_table(("a", "b", "theirs"))
    theirs.drop_namespace(AB)
    both_see({}, gone=(("a", "mine"), ("a", "b", "theirs"), AB))
    ours.drop_namespace(A)
    both_see({}, gone=(A,))
    assert [path.name for path in root.iterdir()] == ["__manifest"]


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_tables_of_the_root_in_turn(mode: str, root: Path) -> None:
    ours, theirs = open_in(mode, root), Native(mode, root)
    locations = {
        "said": theirs.declare(("said",)),
        "held": theirs.create(("held",)),
        "made": path_of(ours.create_table(("made",), new_table())),
        "mine": path_of(ours.create_table(("mine",), declared())),
    }
    expected = {(name,): Path(location).name for name, location in locations.items()}
    assert seen_by_us(ours) == seen_by_native(theirs) == expected
    theirs.drop(("made",))
    ours.drop_table(("said",))
    ours.deregister_table(("held",))
    assert seen_by_us(ours) == seen_by_native(theirs) == {("mine",): expected["mine",]}
    theirs.drop(("mine",))
    ours.register_table(("held",), locations["held"])
    assert seen_by_us(ours) == seen_by_native(theirs) == {("held",): expected["held",]}
    theirs.drop(("held",))
    assert seen_by_us(ours) == seen_by_native(theirs) == {}
    assert [path.name for path in root.iterdir()] == ["__manifest"]


def test_a_renamed_root_table_is_for_native_lance_one_of_v2(root: Path) -> None:
    """In its default mode native Lance finds tables of the root by their folders only."""
    ours = open_in("compat", root)
    append(ours.create_table(("t",), new_table()), 1)
    ours.rename_table(("t",), ("u",))
    assert versions(load(ours, ("u",))) == [1, 2]
    assert Native("v2", root).tables(()) == ["u"]
    assert Native("compat", root).tables(()) == []
    with pytest.raises(TableAlreadyExistsError):
        Native("compat", root).create(("u",))
    assert names(ours) == ["u"]


def test_what_native_lance_deregisters_in_the_root_is_still_in_its_folder(root: Path) -> None:
    """It removes the row only, so that listing finds the folder, for native Lance and for us."""
    ours, theirs = open_in("compat", root), Native("compat", root)
    ours.create_table(("t",), new_table(owner="ann"))
    theirs.deregister(("t",))
    assert names(ours) == theirs.tables(()) == ["t"]
    assert load(ours, ("t",)).properties["owner"] == "ann"
    ours.deregister_table(("t",))
    assert names(ours) == theirs.tables(()) == []
    ours.drop_table(("t",))
    assert not (root / "t.lance").exists()


def test_a_table_that_native_lance_makes_in_no_namespace_is_not_lost(nested: Directory, root: Path) -> None:
    """It does not ask whether the namespace is there."""
    theirs = Native("v2", root)
    theirs.create(("late", "t"))
    with pytest.raises(NamespaceNotFound):
        nested.list_tables(("late",))
    nested.create_namespace(("late",), {})
    assert names(nested, ("late",)) == ["t"]
    assert versions(load(nested, ("late", "t"))) == [1]
