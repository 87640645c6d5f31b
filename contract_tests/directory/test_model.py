"""Random sequences of operations against a model of the seeds, compared after every step."""

import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import lance
import pytest
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from contract_tests.directory.model import Loaded, Model, Refused
from contract_tests.directory.opened import MODES, SCHEMA, Directory, open_in, rows
from irc_bridge.catalog.models import Commit, Levels, NewTable, TableInfo, Unchanged
from irc_bridge.errors import BridgeError

T = TypeVar("T")

UNHURRIED = settings(
    max_examples=80,
    stateful_step_count=30,
    deadline=None,  # each step changes a disk that others use too
    phases=[Phase.generate],  # for the same reason the first example that fails is shown as it is
    derandomize=True,  # each kind of operation must have succeeded at the end
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

COMMON = ["a", "b", "t"]
ODD = ["ü ö", "a.b", "a$b", "", "x" * 200]
NAMES = st.sampled_from(COMMON * 4 + ODD)
LEVELS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
V1_FOLDERS = st.sampled_from([f"{name}.lance" for name in (*COMMON, "ü ö", "x" * 200)])
PLACES = st.one_of(st.none(), st.none(), V1_FOLDERS, st.sampled_from(["spot", "spot/below"]))
PROPERTIES = st.dictionaries(st.sampled_from("pqr"), st.sampled_from(["1", "'2'", "ü"]), max_size=2)
REMOVALS = st.frozensets(st.sampled_from("stu"), max_size=2)
UPDATES = st.dictionaries(st.sampled_from("pqr"), st.sampled_from(["1", "'2'", "ü"]), max_size=2)

has_manifest = precondition(lambda machine: machine.model.manifest)
has_namespaces = precondition(lambda machine: machine.model.namespaces)
has_tables = precondition(lambda machine: machine.model.all_tables())
has_folders = precondition(lambda machine: machine.model.folders)
has_hidden = precondition(lambda machine: machine.model.hidden_folders())


class Machine(RuleBasedStateMachine):
    """Two catalogs on one root take turns, so that each must see what the other did."""

    def __init__(self, mode: str, seen: Counter[str]) -> None:
        super().__init__()
        flags = MODES[mode]
        self.model = Model(manifest=flags["manifest_enabled"], listing=flags["dir_listing_enabled"])
        self.seen = seen
        self.temporary = tempfile.TemporaryDirectory()
        self.root = Path(self.temporary.name)
        self.catalogs = [open_in(mode, self.root) for _ in range(2)]
        self.turns = itertools.cycle(self.catalogs)
        self.broken: set[Levels] = set()
        self.known: dict[tuple[Directory, Levels], TableInfo] = {}

    @initialize()
    def begin(self) -> None:
        """With one of each kind, so that no sequence has nothing to work on."""
        lance.write_dataset(rows(1), self.root / "spot")
        self.model.write("spot")
        if self.model.manifest:
            self.catalogs[0].create_namespace(("a",), {})
            self.model.create_namespace(("a",), {})

    def teardown(self) -> None:
        self.temporary.cleanup()

    @has_manifest
    @rule(data=st.data(), properties=PROPERTIES)
    def create_namespace(self, data: st.DataObject, properties: dict[str, str]) -> None:
        namespace = self.new_name(data)
        catalog = next(self.turns)
        self.attempt(
            "create namespace",
            lambda: catalog.create_namespace(namespace, properties),
            lambda _: self.model.create_namespace(namespace, properties),
        )

    @has_namespaces
    @rule(data=st.data())
    def drop_namespace(self, data: st.DataObject) -> None:
        namespace = self.a_namespace(data)
        catalog = next(self.turns)
        self.attempt(
            "drop namespace",
            lambda: catalog.drop_namespace(namespace),
            lambda _: self.model.drop_namespace(namespace),
        )

    @has_namespaces
    @rule(data=st.data(), removals=REMOVALS, updates=UPDATES)
    def set_namespace_properties(
        self, data: st.DataObject, removals: frozenset[str], updates: dict[str, str]
    ) -> None:
        namespace = self.a_namespace(data)
        catalog = next(self.turns)
        self.attempt(
            "set namespace properties",
            lambda: catalog.update_namespace_properties(namespace, removals, updates),
            lambda _: self.model.update_properties(namespace, removals, updates),
        )

    @rule(data=st.data(), declared=st.booleans(), place=PLACES, properties=PROPERTIES)
    def create(self, data: st.DataObject, declared: bool, place: str | None, properties: dict[str, str]) -> None:
        table = self.new_name(data)
        new = NewTable(properties, place and str(self.root / place), None if declared else SCHEMA)
        catalog = next(self.turns)
        self.attempt(
            "declare" if declared else "create",
            lambda: catalog.create_table(table, new),
            lambda made: self.model.create(table, properties, place, declared, made, self.folder_in),
            self.loaded,
        )

    @has_folders
    @rule(data=st.data())
    def register(self, data: st.DataObject) -> None:
        table = self.new_name(data)
        folder = draw(data, "folder", V1_FOLDERS, self.model.loose_folders())
        catalog = next(self.turns)
        self.attempt(
            "register",
            lambda: catalog.register_table(table, str(self.root / folder)),
            lambda _: self.model.register(table, folder),
            self.loaded,
        )

    @has_hidden
    @rule(data=st.data())
    def register_again(self, data: st.DataObject) -> None:
        """What was deregistered in the folder of its name."""
        folder = draw(data, "folder", V1_FOLDERS, self.model.hidden_folders())
        table = (folder.removesuffix(".lance"),)
        catalog = next(self.turns)
        self.attempt(
            "register again",
            lambda: catalog.register_table(table, str(self.root / folder)),
            lambda _: self.model.register(table, folder),
            self.loaded,
        )

    @has_tables
    @rule(data=st.data())
    def deregister(self, data: st.DataObject) -> None:
        table = self.a_table(data)
        catalog = next(self.turns)
        self.attempt("deregister", lambda: catalog.deregister_table(table), lambda _: self.model.deregister(table))

    @has_tables
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        table = self.a_table(data)
        catalog = next(self.turns)
        self.attempt("drop", lambda: catalog.drop_table(table), lambda _: self.model.drop(table))

    @has_tables
    @has_manifest
    @rule(data=st.data())
    def rename(self, data: st.DataObject) -> None:
        source, destination = self.a_table(data), self.new_name(data)
        # the seeds do not say where the files of a table go that has none
        assume(not self.model.is_broken(source))
        catalog = next(self.turns)
        self.attempt(
            "rename",
            lambda: catalog.rename_table(source, destination),
            lambda _: self.model.rename(
                source, destination, lambda: self.folder_in(self.load(catalog, destination))
            ),
        )

    @has_tables
    @rule(data=st.data(), removals=REMOVALS, updates=UPDATES)
    def commit(self, data: st.DataObject, removals: frozenset[str], updates: dict[str, str]) -> None:
        table = self.a_table(data)
        catalog = next(self.turns)
        self.attempt(
            "commit",
            lambda: catalog.commit(table, Commit(updates, removals)),
            lambda _: self.model.commit(table, removals, updates),
            self.loaded,
        )

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        """A Lance writer commits to a table without asking the catalog."""
        folder = draw(data, "folder", V1_FOLDERS, self.model.folders)
        known = self.model.folders.get(folder)
        mode = "append" if known and known.versions else "create"
        lance.write_dataset(rows(1), self.root / folder, mode=mode)
        self.model.write(folder)

    @rule(folder=V1_FOLDERS)
    def remove_folder(self, folder: str) -> None:
        """Somebody removes a folder without asking the catalog."""
        shutil.rmtree(self.root / folder, ignore_errors=True)
        self.model.remove_folder(folder)

    @invariant()
    def every_catalog_shows_what_the_model_holds(self) -> None:
        for catalog in self.catalogs:
            for namespace in ((), *self.model.namespaces):
                self.compare_namespace(catalog, namespace)
        # a load of a broken table waits for whoever may be dropping it: once is enough
        self.broken = {table for table in self.model.all_tables() if self.model.is_broken(table)}

    @invariant()
    def the_root_holds_the_folders_of_the_model(self) -> None:
        parents = [self.root, self.root / "spot"]
        inside = [folder for parent in parents if parent.is_dir() for folder in parent.iterdir()]
        marks = ("_versions", ".lance-reserved", ".lance-deregistered")
        tables = {folder for folder in inside if any((folder / mark).exists() for mark in marks)}
        names = {str(folder.relative_to(self.root)) for folder in tables} - {"__manifest"}
        assert names == self.model.folders.keys()

    def compare_namespace(self, catalog: Directory, namespace: Levels) -> None:
        assert catalog.namespace_exists(namespace)
        assert list(catalog.list_namespaces(namespace).items) == self.model.child_namespaces(namespace)
        assert catalog.load_namespace(namespace) == self.model.properties(namespace)
        tables = self.model.tables(namespace)
        assert list(catalog.list_tables(namespace).items) == tables
        for name in (*COMMON, *ODD):
            below = (*namespace, name)
            assert catalog.namespace_exists(below) == self.model.has_namespace(below)
            assert catalog.table_exists(below) == (name in tables)
        for name in tables:
            if (*namespace, name) not in self.broken:
                self.compare_table(catalog, (*namespace, name))

    def compare_table(self, catalog: Directory, table: Levels) -> None:
        self.attempt("load", lambda: self.load(catalog, table), lambda _: self.model.load(table), self.loaded)

    def attempt(
        self,
        kind: str,
        real: Callable[[], T],
        modelled: Callable[[Callable[[], T]], object],
        shown: Callable[[T], object] = lambda result: result,
    ) -> None:
        """The same outcome in the catalog and in the model: an error that applies, or the same answer."""
        results: list[T] = []
        failure: BridgeError | None = None
        try:
            results.append(real())
        except BridgeError as error:
            failure = error

        def result() -> T:
            if failure is not None:
                raise AssertionError(f"{kind} must succeed") from failure
            return results[0]

        try:
            expected = modelled(result)
        except Refused as refused:
            assert isinstance(failure, refused.errors), f"{kind} must be refused: {refused}, not {failure!r}"
            self.seen[f"{kind}: {type(failure).__name__}"] += 1
        else:
            assert shown(result()) == expected
            self.seen[kind] += 1

    def load(self, catalog: Directory, table: Levels) -> TableInfo:
        """As a warm server does: with the token of the last answer."""
        old = self.known.get((catalog, table))
        current = old is not None and catalog.is_current(old.token)
        answer = catalog.load_table(table, known=old and old.token)
        assert isinstance(answer, Unchanged) or not current
        if isinstance(answer, Unchanged):
            assert old is not None
            answer = replace(old, token=answer.token)
        self.known[catalog, table] = answer
        return answer

    def loaded(self, info: TableInfo) -> Loaded:
        return Loaded(self.folder_in(info), dict(info.properties), [each.version for each in info.versions])

    def folder_in(self, info: TableInfo) -> str:
        return info.location.removeprefix(f"file://{self.root}/").replace("%20", " ")

    def new_name(self, data: st.DataObject) -> Levels:
        """Mostly in a namespace that exists."""
        parents = st.sampled_from([(), *self.model.namespaces])
        there = st.builds(lambda parent, name: (*parent, name), parents, NAMES)
        return data.draw(st.one_of(there, there, there, there, LEVELS), "new name")

    def a_namespace(self, data: st.DataObject) -> Levels:
        return draw(data, "namespace", LEVELS, [*self.model.namespaces] or [()])

    def a_table(self, data: st.DataObject) -> Levels:
        return draw(data, "table", LEVELS, self.model.all_tables())


def draw(data: st.DataObject, label: str, anything: st.SearchStrategy[T], there: Collection[T]) -> T:
    """Mostly one of those that are there."""
    some = [st.sampled_from([*there])] * 4 if there else []
    drawn: T = data.draw(st.one_of(*some, anything), label)
    return drawn


WITHOUT_MANIFEST = {"create", "declare", "load", "deregister", "drop", "commit"}
IN_MANIFEST = {"create namespace", "drop namespace", "set namespace properties", "register", "rename"}


@pytest.mark.parametrize(
    ("mode", "operations"),
    [
        ("compat", WITHOUT_MANIFEST | IN_MANIFEST),
        ("v1", WITHOUT_MANIFEST),
        ("v2", WITHOUT_MANIFEST | IN_MANIFEST),
    ],
    ids=["compat", "v1", "v2"],
)
def test_any_sequence_of_operations_ends_as_the_seeds_say(mode: str, operations: set[str]) -> None:
    seen: Counter[str] = Counter()

    class MachineInMode(Machine):
        def __init__(self) -> None:
            super().__init__(mode, seen)

    run_state_machine_as_test(MachineInMode, settings=UNHURRIED)
    assert operations <= seen.keys()
