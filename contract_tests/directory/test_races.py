"""Many processes on one folder at once: storage decides."""

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import lance
import pytest

from contract_tests.directory.opened import (
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
from irc_bridge.catalog.models import Levels
from irc_bridge.errors import (
    BridgeError,
    ConcurrentModification,
    InvalidInput,
    NamespaceNotEmpty,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
)

PROCESSES = 8


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        yield pool


def create_all(mode: str, root: Path, tables: list[Levels], who: int, kinds: str) -> list[str]:
    catalog = open_in(mode, root)
    outcomes = []
    for number, table in enumerate(tables):
        new = declared if kinds == "both" and (number + who) % 2 else new_table
        try:
            catalog.create_table(table, new(who=str(who)))
            outcomes.append("made")
        except BridgeError as error:
            outcomes.append(type(error).__name__)
    return outcomes


@pytest.mark.parametrize("kinds", ["created", "both"])
def test_eight_processes_make_fifty_names(processes: Executor, root: Path, mode: str, kinds: str) -> None:
    catalog = open_in(mode, root)
    tables: list[Levels] = [(f"t{number:02}",) for number in range(50)]
    if mode != "v1":
        catalog.create_namespace(("a",), {})
        tables[25:] = [("a", *table) for table in tables[25:]]
    calls = [processes.submit(create_all, mode, root, tables, who, kinds) for who in range(PROCESSES)]
    outcomes = [call.result() for call in calls]
    counts = Counter(outcome for each in outcomes for outcome in each)
    losses = counts[TableAlreadyExists.__name__] + counts[ConcurrentModification.__name__]
    assert (counts["made"], losses, counts.total()) == (50, 350, 400)
    for number, table in enumerate(tables):
        winners = [who for who, each in enumerate(outcomes) if each[number] == "made"]
        assert len(winners) == 1
        assert load(catalog, table).properties["who"] == str(winners[0])
    listed: list[Levels] = [(name,) for name in names(catalog)]
    if mode != "v1":
        listed += [("a", name) for name in names(catalog, ("a",))]
        ids = lance.dataset(root / "__manifest").to_table()["object_id"].to_pylist()
        assert sorted(ids) == sorted(["a", *("$".join(table) for table in tables)])
    assert sorted(listed) == sorted(tables)
    left = {path.name for path in root.iterdir()} - {"__manifest"}
    assert left == {Path(path_of(load(catalog, table))).name for table in tables}


def test_fifty_threads_make_one_name(catalog: Directory) -> None:
    def create(who: int) -> str:
        try:
            catalog.create_table(("t",), new_table(who=str(who)))
        except TableAlreadyExists:
            return "exists"
        return "made"

    with ThreadPoolExecutor(50) as threads:
        assert Counter(threads.map(create, range(50))) == {"made": 1, "exists": 49}
    assert versions(load(catalog, ("t",))) == [1]


def make_namespaces(mode: str, root: Path, who: int) -> int:
    catalog = open_in(mode, root)
    made = 0
    for number in range(20):
        try:
            catalog.create_namespace((f"n{number}",), {"who": str(who)})
            made += 1
        except BridgeError as error:
            assert type(error).__name__ == "NamespaceAlreadyExists"
    return made


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_the_manifest_itself_is_made_by_many(processes: Executor, root: Path, mode: str) -> None:
    calls = [processes.submit(make_namespaces, mode, root, who) for who in range(PROCESSES)]
    assert sum(call.result() for call in calls) == 20
    assert len(open_in(mode, root).list_namespaces(()).items) == 20


def rename_all(mode: str, root: Path, who: int) -> list[str]:
    catalog = open_in(mode, root)
    won = []
    for number in range(10):
        try:
            catalog.rename_table((f"t{number}",), (f"t{number}-{who}",))
            won.append(f"t{number}-{who}")
        except TableNotFound:
            pass
    return won


@pytest.mark.parametrize("found_by", ["row", "folder"])
def test_one_table_is_renamed_once(processes: Executor, root: Path, found_by: str) -> None:
    made_in = open_in("compat" if found_by == "row" else "v1", root)
    for number in range(10):
        made_in.create_table((f"t{number}",), new_table())
    calls = [processes.submit(rename_all, "compat", root, who) for who in range(PROCESSES)]
    won = sorted(name for call in calls for name in call.result())
    assert len(won) == 10
    assert names(open_in("compat", root)) == won


def change_properties(mode: str, root: Path, who: int) -> int:
    catalog = open_in(mode, root)
    for number in range(5):
        set_properties(catalog, ("t",), {f"{who}-{number}": "x", "last": str(who)})
    return 5


def test_property_commits_are_not_lost(processes: Executor, root: Path, mode: str) -> None:
    catalog = open_in(mode, root)
    append(catalog.create_table(("t",), new_table()), 1)
    calls = [processes.submit(change_properties, mode, root, who) for who in range(4)]
    assert sum(call.result() for call in calls) == 20
    info = load(catalog, ("t",))
    assert {f"{who}-{number}" for who in range(4) for number in range(5)} <= info.properties.keys()
    assert versions(info) == list(range(1, 23))


def fill_or_drop(mode: str, root: Path, who: int) -> list[str]:
    catalog = open_in(mode, root)
    outcomes = []
    for number in range(12):
        try:
            if who % 2:
                catalog.create_table((f"n{number}", f"t{who}"), declared())
            else:
                catalog.drop_namespace((f"n{number}",))
            outcomes.append("done")
        except (NamespaceNotFound, NamespaceNotEmpty) as error:
            outcomes.append(type(error).__name__)
    return outcomes


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_no_table_is_left_in_a_namespace_that_is_gone(processes: Executor, root: Path, mode: str) -> None:
    catalog = open_in(mode, root)
    for number in range(12):
        catalog.create_namespace((f"n{number}",), {"keep": "me"})
    calls = [processes.submit(fill_or_drop, mode, root, who) for who in range(PROCESSES)]
    outcomes = [call.result() for call in calls]
    rows = lance.dataset(root / "__manifest").to_table().to_pylist()
    spaces = {row["object_id"] for row in rows if row["object_type"] == "namespace"}
    for row in rows:
        if row["object_type"] == "table":
            assert row["object_id"].split("$")[0] in spaces
    for number in range(12):
        made = {f"t{who}" for who in range(1, PROCESSES, 2) if outcomes[who][number] == "done"}
        if f"n{number}" in spaces:
            assert set(names(catalog, (f"n{number}",))) == made
            assert catalog.load_namespace((f"n{number}",)) == {"keep": "me"}
        else:
            assert made == set()


def register(mode: str, root: Path, who: int) -> str:
    try:
        open_in(mode, root).register_table((f"t{who}",), str(root / "x_t"))
    except (InvalidInput, TableAlreadyExists, ConcurrentModification):
        return "refused"
    return "registered"


def test_one_folder_is_registered_at_most_once(processes: Executor, root: Path) -> None:
    catalog = open_in("v2", root)
    made = open_in("v1", root).create_table(("x",), new_table())
    Path(path_of(made)).rename(root / "x_t")
    calls = [processes.submit(register, "v2", root, who) for who in range(PROCESSES)]
    outcomes = Counter(call.result() for call in calls)
    assert outcomes["registered"] == len(names(catalog)) <= 1


def create_and_drop(mode: str, root: Path, who: int) -> Counter[str]:
    catalog = open_in(mode, root)
    outcomes: Counter[str] = Counter()
    for _ in range(15):
        for change in (lambda: catalog.create_table(("t",), new_table()), lambda: catalog.drop_table(("t",))):
            try:
                change()
                outcomes["done"] += 1
            except (TableAlreadyExists, TableNotFound, ConcurrentModification) as error:
                outcomes[type(error).__name__] += 1
    return outcomes


def test_a_name_made_and_dropped_by_many_ends_whole(processes: Executor, root: Path, mode: str) -> None:
    calls = [processes.submit(create_and_drop, mode, root, who) for who in range(4)]
    outcomes = sum((call.result() for call in calls), Counter[str]())
    assert outcomes["done"] >= 2
    catalog = open_in(mode, root)
    if names(catalog):
        assert versions(load(catalog, ("t",))) == [1]
        catalog.drop_table(("t",))
    assert names(catalog) == []
