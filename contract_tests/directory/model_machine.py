"""Operations drawn at random, done by two catalogs and by the model, and compared after each."""

import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import lance
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from contract_tests.directory.managed import open_managed
from contract_tests.directory.model_rules import Loaded, Refused, listed_name
from contract_tests.directory.opened import MODES, SCHEMA, Directory, open_in, rows, set_properties
from contract_tests.directory.versions_model import Recorded, VersionsModel
from irc_bridge.catalog.models import MANAGED_BY, Levels, NewTable, TableInfo, Unchanged, VersionRecord
from irc_bridge.errors import BridgeError

T = TypeVar("T")

COMMON = ["a", "b", "t"]
ODD = ["ü ö", "a.b", "a$b", "", "x" * 200]
NAMES = st.sampled_from(COMMON * 4 + ODD)
LEVELS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
V1_FOLDERS = st.sampled_from([f"{name}.lance" for name in (*COMMON, "ü ö", "x" * 200)])
PLACES = st.one_of(st.none(), st.none(), V1_FOLDERS, st.sampled_from(["spot", "spot/below"]))
PROPERTIES = st.dictionaries(st.sampled_from("pqr"), st.sampled_from(["1", "'2'", "ü"]), max_size=2)
REMOVALS = st.frozensets(st.sampled_from("stu"), max_size=2)
UPDATES = PROPERTIES
OWNED = st.builds(dict.__or__, PROPERTIES, st.sampled_from([{}, {MANAGED_BY: "impl"}]))
"""Of tables: half of them are changed through the catalog only."""
OWNERS = st.sampled_from([None, None, "impl", "impl", "storage", "nobody"])

ODDLY = st.sampled_from([False] * 7 + [True] + [False] * 7)
"""Seldom true; hypothesis prefers the ends."""

has_manifest = precondition(lambda machine: machine.model.manifest)
has_namespaces = precondition(lambda machine: machine.model.namespaces)
has_tables = precondition(lambda machine: machine.model.all_tables())
has_folders = precondition(lambda machine: machine.model.folders)
has_hidden = precondition(lambda machine: machine.model.hidden_folders())


class Machine(RuleBasedStateMachine):
    """Two catalogs on one root take turns, so that each must see what the other did."""

    def __init__(self, mode: str, managing: bool, seen: Counter[str]) -> None:
        super().__init__()
        flags = MODES[mode]
        self.model = VersionsModel(
            manifest=flags["manifest_enabled"], listing=flags["dir_listing_enabled"], managing=managing
        )
        self.seen = seen
        self.temporary = tempfile.TemporaryDirectory()
        self.root = Path(self.temporary.name)
        self.catalogs = [(open_managed if managing else open_in)(mode, self.root) for _ in range(2)]
        self.turns = itertools.cycle(self.catalogs)
        self.broken: set[Levels] = set()
        self.contents: dict[str, bytes] = {}
        """Of staged manifests."""
        self.known: dict[tuple[Directory, Levels], TableInfo] = {}

    @initialize(declared=st.booleans(), properties=OWNED)
    def begin(self, declared: bool, properties: dict[str, str]) -> None:
        """With one of each kind, so that no sequence has nothing to work on."""
        lance.write_dataset(rows(1), self.root / "spot")
        self.model.write("spot")
        if self.model.manifest:
            self.catalogs[0].create_namespace(("a",), {})
            self.model.create_namespace(("a",), {})
        self.create_table(("t",), properties, None, declared)

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

    @rule(data=st.data(), declared=st.booleans(), place=PLACES, properties=OWNED)
    def create(self, data: st.DataObject, declared: bool, place: str | None, properties: dict[str, str]) -> None:
        self.create_table(self.new_name(data), properties, place, declared)

    def create_table(self, table: Levels, properties: dict[str, str], place: str | None, declared: bool) -> None:
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
    @rule(data=st.data(), removals=REMOVALS, updates=UPDATES, owner=OWNERS)
    def commit(
        self, data: st.DataObject, removals: frozenset[str], updates: dict[str, str], owner: str | None
    ) -> None:
        """`owner` says who changes the table from now on."""
        if owner == "nobody":
            removals |= {MANAGED_BY}
        elif owner is not None:
            updates = updates | {MANAGED_BY: owner}
        table = self.a_table(data)
        catalog = next(self.turns)
        self.attempt(
            "commit",
            lambda: set_properties(catalog, table, updates, removals),
            lambda _: self.model.commit(table, removals, updates),
            self.loaded,
        )

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        """A Lance writer commits to a table without asking the catalog."""
        folder = draw(data, "folder", V1_FOLDERS, self.model.folders)
        # what becomes of versions that are written past the rows is told by other tests
        assume(not self.model.is_governed_folder(folder))
        known = self.model.folders.get(folder)
        mode = "append" if known and known.versions else "create"
        lance.write_dataset(rows(1), self.root / folder, mode=mode)
        self.model.write(folder)

    @has_folders
    @rule(data=st.data())
    def remove_folder(self, data: st.DataObject) -> None:
        """Somebody removes a folder without asking the catalog."""
        folder = data.draw(st.sampled_from([*self.model.folders]), "folder")
        assume(listed_name(folder) is not None)
        shutil.rmtree(self.root / folder)
        self.model.remove_folder(folder)

    @invariant()
    def every_catalog_shows_what_the_model_holds(self) -> None:
        self.model.settle()
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
        if self.model.is_broken(table):
            return
        versions = self.model.load(table).versions
        recorded = [self.model.recorded(table, each) for each in versions]
        listed = catalog.list_table_versions(table, descending=False).items
        assert [self.recorded(each) for each in listed] == recorded
        if versions:
            assert self.recorded(catalog.describe_table_version(table)) == recorded[-1]

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
            outcome = shown(result())
            assert outcome == expected, f"{kind}: {outcome} instead of {expected}"
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

    def recorded(self, record: VersionRecord) -> Recorded:
        prefix, path = f"file://{self.root}/", unquote(record.manifest_path)
        assert path.startswith(prefix)
        assert record.manifest_size == Path(path.removeprefix("file://")).stat().st_size
        return record.version, path.removeprefix(prefix)

    def folder_in(self, info: TableInfo) -> str:
        return info.location.removeprefix(f"file://{self.root}/").replace("%20", " ")

    def new_name(self, data: st.DataObject) -> Levels:
        """Mostly in a namespace that exists."""
        parents = st.sampled_from([(), *self.model.namespaces])
        there = st.builds(lambda parent, name: (*parent, name), parents, NAMES)
        return data.draw(LEVELS if data.draw(ODDLY) else there, "new name")

    def a_namespace(self, data: st.DataObject) -> Levels:
        return draw(data, "namespace", LEVELS, [*self.model.namespaces] or [()])

    def a_table(self, data: st.DataObject) -> Levels:
        return draw(data, "table", LEVELS, self.model.all_tables())


def draw(data: st.DataObject, label: str, anything: st.SearchStrategy[T], there: Collection[T]) -> T:
    """Mostly one of those that are there."""
    drawn: T = data.draw(anything if not there or data.draw(ODDLY) else st.sampled_from([*there]), label)
    return drawn
