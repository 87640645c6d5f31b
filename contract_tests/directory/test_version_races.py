"""Many writers of one table, and tables that go away while a version is made."""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import lance
import pytest

from contract_tests.directory.opened import (
    VERSIONED,
    Directory,
    append,
    declared,
    load,
    names,
    new_table,
    open_in,
    path_of,
    rows,
    versions,
)
from contract_tests.directory.staging import Request, append_through, commit_all, stage, stage_first
from irc_bridge.catalog.models import NamingScheme, TableInfo, VersionRange
from irc_bridge.errors import (
    BridgeError,
    ConcurrentModification,
    NotFound,
    TableNotFound,
    TableVersionAlreadyExists,
)
from irc_bridge.storage.local import LocalStorage

WRITERS, COMMITS = 16, 4
T = ("t",)

pytestmark = pytest.mark.parametrize("mode", VERSIONED)


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(WRITERS, mp_context=context) as pool:
        yield pool


def manifests(info: TableInfo) -> list[str]:
    return sorted(path.name for path in Path(path_of(info), "_versions").iterdir() if "manifest" in path.name)


def test_sixteen_processes_commit_to_one_table(processes: Executor, root: Path, mode: str) -> None:
    catalog = open_in(mode, root)
    info = catalog.create_table(T, new_table())
    calls = [processes.submit(commit_all, mode, root, who, COMMITS) for who in range(WRITERS)]
    outcomes = sum((call.result() for call in calls), Counter[str]())
    latest = 1 + WRITERS * COMMITS
    assert {what: count for what, count in outcomes.items() if what.startswith("made")} == {
        f"made {version}": 1 for version in range(2, latest + 1)
    }
    assert outcomes.total() > WRITERS * COMMITS
    assert versions(load(catalog, T)) == list(range(1, latest + 1))
    table = lance.dataset(info.location).to_table()
    expected = [who * 100 + number for who in range(WRITERS) for number in range(COMMITS)]
    assert sorted(table["id"].to_pylist()) == expected


def append_all(mode: str, root: Path, who: int) -> int:
    catalog = open_in(mode, root)
    for number in range(COMMITS):
        append_through(catalog, T, rows(who * 100 + number))
    return COMMITS


@pytest.mark.parametrize("first", ["created", "declared"])
def test_lance_writers_commit_through_the_catalog(processes: Executor, root: Path, mode: str, first: str) -> None:
    catalog = open_in(mode, root)
    info = catalog.create_table(T, new_table() if first == "created" else declared(owner="ann"))
    if first == "declared":
        catalog.create_table_versions([stage_first(info.location).entry(T)])
    calls = [processes.submit(append_all, mode, root, who) for who in range(6)]
    assert sum(call.result() for call in calls) == 6 * COMMITS
    after = load(catalog, T)
    assert versions(after) == list(range(1, 6 * COMMITS + 2))
    table = lance.dataset(info.location).to_table()
    assert sorted(table["id"].to_pylist()) == [who * 100 + number for who in range(6) for number in range(COMMITS)]
    assert len(manifests(info)) == 6 * COMMITS + 1


def test_one_version_is_won_once(catalog: Directory, table: TableInfo) -> None:
    asked = [stage(table.location, number) for number in range(20)]

    def create(number: int) -> int | None:
        try:
            catalog.create_table_versions([asked[number].entry(T)])
        except TableVersionAlreadyExists:
            return None
        return number

    with ThreadPoolExecutor(20) as threads:
        won = [number for number in threads.map(create, range(20)) if number is not None]
    assert len(won) == 1
    assert lance.dataset(table.location).to_table()["id"].to_pylist() == won


def test_one_call_repeated_by_many_succeeds_for_all(catalog: Directory, table: TableInfo) -> None:
    for version in range(2, 12):
        asked = stage(table.location, version)
        entry = asked.entry(T, e_tag=asked.e_tag)
        with ThreadPoolExecutor(8) as threads:
            made = list(threads.map(lambda _, entry=entry: catalog.create_table_versions([entry]), range(8)))
        assert {(each.version, each.e_tag) for [each] in made} == {(version, asked.e_tag)}
    assert manifests(table) == sorted(f"{2**64 - 1 - version:020}.manifest" for version in range(1, 12))


def make_first(mode: str, root: Path, request: Request, scheme: NamingScheme) -> str:
    try:
        open_in(mode, root).create_table_versions([request.entry(T, naming_scheme=scheme)])
    except (TableVersionAlreadyExists, ConcurrentModification) as error:
        return type(error).__name__
    return "made"


def test_the_first_version_gets_one_name(processes: Executor, root: Path, mode: str) -> None:
    for _ in range(12):
        catalog = open_in(mode, root)
        info = catalog.create_table(T, declared())
        asked = [stage_first(info.location, number) for number in range(6)]
        calls = [
            processes.submit(make_first, mode, root, each, "V1" if number % 2 else "V2")
            for number, each in enumerate(asked)
        ]
        outcomes = [call.result() for call in calls]
        final = [name for name in manifests(info) if "-" not in name]
        assert outcomes.count("made") == len(final) <= 1
        if final:
            winner = outcomes.index("made")
            assert lance.dataset(info.location).to_table()["id"].to_pylist() == [winner]
        catalog.drop_table(T)


Change = Callable[[Directory], object]


def drop(catalog: Directory) -> None:
    catalog.drop_table(T)


def deregister(catalog: Directory) -> None:
    catalog.deregister_table(T)


def make_again(catalog: Directory) -> None:
    catalog.drop_table(T)
    catalog.create_table(T, new_table(owner="bob"))


def declare_again(catalog: Directory) -> None:
    catalog.drop_table(T)
    catalog.create_table(T, declared(owner="bob"))


@pytest.fixture(params=["before", "after"])
def when(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def while_promoting(monkeypatch: pytest.MonkeyPatch, catalog: Directory, change: Change, when: str) -> None:
    """Another server changes the table right before or after the manifest gets its name."""
    original = LocalStorage.promote

    def promote(storage: LocalStorage, staged: str, final: str) -> bool:
        monkeypatch.setattr(LocalStorage, "promote", original)
        if when == "before":
            change(catalog)
            return storage.promote(staged, final)
        won = storage.promote(staged, final)
        change(catalog)
        return won

    monkeypatch.setattr(LocalStorage, "promote", promote)


@pytest.mark.parametrize("change", [drop, deregister, make_again, declare_again])
@pytest.mark.parametrize("first", [True, False])
def test_a_table_that_goes_away_meanwhile(
    monkeypatch: pytest.MonkeyPatch, root: Path, mode: str, first: bool, change: Change, when: str
) -> None:
    catalog, other = open_in(mode, root), open_in(mode, root)
    info = catalog.create_table(T, declared(owner="ann") if first else new_table(owner="ann"))
    asked = stage_first(info.location, 1) if first else stage(info.location, 1)
    while_promoting(monkeypatch, other, change, when)
    with pytest.raises(BridgeError) as refused:
        catalog.create_table_versions([asked.entry(T)])
    assert isinstance(refused.value, NotFound | ConcurrentModification)
    if change is drop:
        assert isinstance(refused.value, TableNotFound)
        assert names(catalog) == []
        assert not Path(path_of(info), "_versions").exists()
    elif change is deregister:
        assert isinstance(refused.value, TableNotFound)
        assert names(catalog) == []
        left = [] if first else [f"{2**64 - 2:020}.manifest"]
        assert [name for name in manifests(info) if "-" not in name] == left
    else:
        after = load(catalog, T)
        assert after.properties["owner"] == "bob"
        assert versions(after) == ([] if change is declare_again else [1])


def test_a_first_version_under_the_other_name(
    monkeypatch: pytest.MonkeyPatch, catalog: Directory, root: Path, mode: str
) -> None:
    info = catalog.create_table(T, declared())
    mine, theirs = stage_first(info.location, 1), stage_first(info.location, 2)
    other = open_in(mode, root)

    def make(faster: Directory) -> None:
        faster.create_table_versions([theirs.entry(T, naming_scheme="V1")])

    while_promoting(monkeypatch, other, make, "before")
    with pytest.raises(ConcurrentModification):
        catalog.create_table_versions([mine.entry(T, naming_scheme="V2")])
    assert [name for name in manifests(info) if "-" not in name] == ["1.manifest"]
    assert lance.dataset(info.location).to_table()["id"].to_pylist() == [2]


def test_an_answer_of_the_disk_that_was_lost(
    monkeypatch: pytest.MonkeyPatch, catalog: Directory, table: TableInfo
) -> None:
    """The name is there already, and it is ours."""
    asked = stage(table.location, 1)
    staged = Path("/", asked.manifest_path)
    final = staged.with_name(staged.name.partition("-")[0])
    while_promoting(monkeypatch, catalog, lambda _: final.hardlink_to(staged), "before")
    [made] = catalog.create_table_versions([asked.entry(T)])
    assert (made.version, made.e_tag) == (2, asked.e_tag)
    assert manifests(table) == [final.name, f"{2**64 - 2:020}.manifest"]


def test_new_versions_are_found_without_a_list(
    monkeypatch: pytest.MonkeyPatch, catalog: Directory, table: TableInfo
) -> None:
    listed: list[str] = []
    original = LocalStorage.names

    def names_of(storage: LocalStorage, path: str) -> list[str]:
        listed.append(path)
        return original(storage, path)

    assert catalog.describe_table_version(T).version == 1
    monkeypatch.setattr(LocalStorage, "names", names_of)
    for version in range(2, 8):
        append(table, version)
        assert catalog.describe_table_version(T).version == version
    assert f"{Path(path_of(table)).name}/_versions" not in listed


def test_old_versions_removed_meanwhile_harm_nothing(
    monkeypatch: pytest.MonkeyPatch, catalog: Directory, table: TableInfo, root: Path, mode: str, when: str
) -> None:
    asked = stage(table.location, 1)
    other = open_in(mode, root)

    def clean(catalog: Directory) -> None:
        catalog.delete_table_versions(T, [VersionRange(1, 2)], ignore_missing=False)

    while_promoting(monkeypatch, other, clean, when)
    [made] = catalog.create_table_versions([asked.entry(T)])
    assert made.version == 2
    assert versions(load(other, T)) == [2]
    assert lance.dataset(table.location).to_table()["id"].to_pylist() == [1]
