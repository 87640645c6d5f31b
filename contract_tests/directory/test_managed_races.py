"""Many writers of tables whose versions are rows."""

import multiprocessing
import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pytest

from contract_tests.directory.managed import (
    append_managed,
    ids_of,
    make,
    open_managed,
    staged,
    version_rows,
)
from contract_tests.directory.opened import (
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
from contract_tests.directory.staging import commit_all, stage
from irc_bridge.backends.directory.manifest_versions import ManifestVersions
from irc_bridge.catalog.models import Levels, NewVersion
from irc_bridge.errors import (
    ConcurrentModification,
    Conflict,
    TableNotFound,
    TableVersionAlreadyExists,
)

WRITERS, COMMITS = 16, 4
T: Levels = ("t",)


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(WRITERS, mp_context=context) as pool:
        yield pool


@pytest.fixture
def catalog(root: Path) -> Directory:
    return open_managed("compat", root)


def managed_table(catalog: Directory, table: Levels = T) -> str:
    return catalog.create_table(table, new_table(managed_by="impl")).location


def ids_in(location: str) -> list[int]:
    ids: list[int] = lance.dataset(location).to_table()["id"].to_pylist()
    return sorted(ids)


def test_sixteen_processes_commit_to_one_table(processes: Executor, catalog: Directory, root: Path) -> None:
    location = managed_table(catalog)
    calls = [processes.submit(commit_all, "compat", root, who, COMMITS) for who in range(WRITERS)]
    outcomes = sum((call.result() for call in calls), Counter[str]())
    latest = 1 + WRITERS * COMMITS
    assert {what: count for what, count in outcomes.items() if what.startswith("made")} == {
        f"made {version}": 1 for version in range(2, latest + 1)
    }
    info = load(catalog, T)
    assert versions(info) == list(range(1, latest + 1))
    assert set(version_rows(root)) == ids_of("t", range(1, latest + 1))
    assert ids_in(location) == [who * 100 + number for who in range(WRITERS) for number in range(COMMITS)]


def append_all(root: Path, who: int) -> None:
    catalog = open_in("compat", root)
    for number in range(3):
        append_managed(catalog, T, rows(who * 100 + number))


def test_lance_writers(processes: Executor, catalog: Directory, root: Path) -> None:
    location = managed_table(catalog)
    for call in [processes.submit(append_all, root, who) for who in range(4)]:
        call.result()
    assert versions(load(catalog, T)) == list(range(1, 14))
    assert set(version_rows(root)) == ids_of("t", range(1, 14))
    assert ids_in(location) == [who * 100 + number for who in range(4) for number in range(3)]


def test_one_version_is_won_once(catalog: Directory) -> None:
    location = managed_table(catalog)
    asked = [stage(location, number) for number in range(20)]

    def create(number: int) -> int | None:
        try:
            catalog.create_table_versions([asked[number].entry(T)])
        except TableVersionAlreadyExists:
            return None
        return number

    with ThreadPoolExecutor(20) as threads:
        won = [number for number in threads.map(create, range(20)) if number is not None]
    assert len(won) == 1
    assert ids_in(location) == won


def test_one_call_repeated_by_many_succeeds_for_all(catalog: Directory, root: Path) -> None:
    location = managed_table(catalog)
    for version in range(2, 8):
        entry = stage(location, version).entry(T)
        catalogs = [catalog, *(open_in("compat", root) for _ in range(5))]
        with ThreadPoolExecutor(6) as threads:
            made = list(threads.map(lambda each, entry=entry: each.create_table_versions([entry]), catalogs))
        assert {each.version for [each] in made} == {version}
    assert set(version_rows(root)) == ids_of("t", range(1, 8))
    assert staged(load(catalog, T)) == []


def test_one_call_that_another_finishes_right_before_it_looks_at_the_staged_manifest(
    catalog: Directory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then there is none any more, and the rows that it has read tell nothing of that."""
    entry = stage(managed_table(catalog), 2).entry(T)
    original = ManifestVersions._new_row

    def late(self: ManifestVersions, wanted: Any) -> Any:
        monkeypatch.setattr(ManifestVersions, "_new_row", original)
        [first] = open_in("compat", root).create_table_versions([entry])
        assert first.version == 2
        assert staged(load(catalog, T)) == []
        return original(self, wanted)

    monkeypatch.setattr(ManifestVersions, "_new_row", late)
    [again] = catalog.create_table_versions([entry])
    assert again.version == 2
    assert set(version_rows(root)) == ids_of("t", [1, 2])


def test_properties_beside_writers(processes: Executor, catalog: Directory, root: Path) -> None:
    location = managed_table(catalog)
    calls = [processes.submit(commit_all, "compat", root, who, 3) for who in range(4)]
    for number in range(6):
        set_properties(catalog, T, {f"key{number}": "x"})
    for call in calls:
        call.result()
    info = load(catalog, T)
    assert {f"key{number}" for number in range(6)} <= info.properties.keys()
    assert versions(info) == list(range(1, 1 + 12 + 6 + 1))
    assert len(ids_in(location)) == 12


class TestBatches:
    TABLES: list[Levels] = [("ns", f"t{number}") for number in range(4)]  # noqa: RUF012

    @pytest.fixture(autouse=True)
    def tables(self, catalog: Directory) -> None:
        catalog.create_namespace(("ns",), {})
        for table in self.TABLES:
            managed_table(catalog, table)

    def entries(self, catalog: Directory, tables: list[Levels], who: int) -> list[NewVersion]:
        return [stage(load(catalog, table).location, who).entry(table) for table in tables]

    def test_one_merge_makes_all(self, catalog: Directory, root: Path) -> None:
        entries = self.entries(catalog, self.TABLES, 7)
        before = lance.dataset(root / "__manifest").version
        made = catalog.create_table_versions(entries)
        assert [each.version for each in made] == [2, 2, 2, 2]
        seen = lance.dataset(root / "__manifest", version=before + 1).to_table().to_pylist()
        ids = {row["object_id"] for row in seen if row["object_type"] == "table_version"}
        assert ids == {f"ns$t{number}${version}" for number in range(4) for version in (1, 2)}
        assert catalog.create_table_versions(entries) == made

    @pytest.mark.parametrize("failing", range(4))
    @pytest.mark.parametrize("why", ["lost", "no table", "gap", "twice"])
    def test_all_or_none(self, catalog: Directory, root: Path, failing: int, why: str) -> None:
        entries = self.entries(catalog, self.TABLES, 7)
        if why == "lost":
            make(catalog, self.TABLES[failing], 9)
        elif why == "no table":
            catalog.drop_table(self.TABLES[failing])
        elif why == "gap":
            make(catalog, self.TABLES[failing], 9)
            late = stage(load(catalog, self.TABLES[failing]).location, 8)
            entries[failing] = NewVersion(self.TABLES[failing], late.version + 1, late.manifest_path)
        else:
            entries.append(entries[failing])
        before = self.state(root)
        with pytest.raises(Exception) as refused:
            catalog.create_table_versions(entries)
        expected = {"lost": 12, "no table": 4, "gap": 13, "twice": 13}[why]
        assert refused.value.lance_code == expected  # type: ignore[attr-defined]
        assert self.state(root) == before

    @staticmethod
    def state(root: Path) -> tuple[object, ...]:
        files = sorted(
            str(path.relative_to(root))
            for path in root.rglob("*")
            if path.is_file() and "__manifest" not in path.parts
        )
        return files, version_rows(root)

    def test_overlapping_batches_of_many_processes(
        self, processes: Executor, catalog: Directory, root: Path
    ) -> None:
        calls = [processes.submit(batches, root, self.TABLES, who) for who in range(6)]
        won = [call.result() for call in calls]
        for table in self.TABLES:
            made = sorted(who for each in won for tables, who in each if table in tables)
            info = load(catalog, table)
            assert versions(info) == list(range(1, len(made) + 2))
            assert ids_in(info.location) == made
            assert staged_rows(root, table) == []


def staged_rows(root: Path, table: Levels) -> list[str]:
    prefix = "$".join(table) + "$"
    return [
        key for key, row in version_rows(root).items() if key.startswith(prefix) and "-" in row["manifest_path"]
    ]


def batches(root: Path, tables: list[Levels], who: int) -> list[tuple[list[Levels], int]]:
    """The batches that won, each with the number in its rows."""
    catalog = open_in("compat", root)
    choice = random.Random(who)
    won = []
    for number in range(6):
        chosen = choice.sample(tables, 2)
        mark = who * 100 + number
        entries = [stage(load(catalog, table).location, mark).entry(table) for table in chosen]
        try:
            catalog.create_table_versions(entries)
            won.append((chosen, mark))
        except Conflict:
            pass
    return won


def switch(root: Path, times: int) -> int:
    """To and fro; ends where the versions are rows."""
    catalog = open_in("compat", root)
    for _ in range(times):
        for kind in ("storage", "impl"):
            done = False
            while not done:
                try:
                    set_properties(catalog, T, {"managed_by": kind})
                    done = True
                except Conflict:
                    pass
    return 2 * times


def append_until_done(root: Path, who: int, count: int) -> None:
    catalog = open_in("compat", root)
    for number in range(count):
        append_managed(catalog, T, rows(who * 100 + number))


def test_switching_to_and_fro_beside_writers_loses_nothing(
    processes: Executor, catalog: Directory, root: Path
) -> None:
    location = managed_table(catalog)
    writers = [processes.submit(commit_all, "compat", root, who, 6) for who in range(4)]
    switched = processes.submit(switch, root, 6).result()
    made = sum((call.result() for call in writers), Counter[str]())
    info = load(catalog, T)
    assert ids_in(location) == [who * 100 + number for who in range(4) for number in range(6)]
    numbers = [int(what.split()[1]) for what in made if what.startswith("made")]
    assert len(numbers) == 24 == sum(made[f"made {number}"] for number in numbers)
    assert versions(info) == list(range(1, 1 + switched + 24 + 1))
    assert set(version_rows(root)) == ids_of("t", range(1, 1 + switched + 24 + 1))


def test_renamed_beside_writers(processes: Executor, root: Path) -> None:
    """Out of its folder: refused when a version came in between, never losing one."""
    catalog = open_managed("compat", root)
    managed_table(catalog)
    calls = [processes.submit(commit_until_gone, root, who) for who in range(3)]
    while len(versions(load(catalog, T))) < 4:
        pass
    renamed = False
    while not renamed:
        try:
            catalog.rename_table(T, ("u",))
            renamed = True
        except ConcurrentModification:
            pass
    made = sum(call.result() for call in calls)
    info = load(catalog, ("u",))
    assert versions(info) == list(range(1, len(ids_in(info.location)) + 2))
    assert len(ids_in(info.location)) >= made
    assert set(version_rows(root)) == ids_of("u", [each.version for each in info.versions])
    assert names(catalog) == ["u"]
    # who wrote to the old folder without asking may have left data there, but nothing of the rename is left
    assert {path.name for path in root.iterdir()} <= {"__manifest", "t.lance", Path(path_of(info)).name}
    assert not list(root.glob("*/.irc-bridge-moving"))


def commit_until_gone(root: Path, who: int) -> int:
    catalog = open_in("compat", root)
    made = 0
    try:
        location = load(catalog, T).location
        for number in range(40):
            try:
                catalog.create_table_versions([stage(location, who * 100 + number).entry(T)])
                made += 1
            except Conflict:
                pass
    except (TableNotFound, OSError, ValueError):
        # pylance says of a folder that is gone what it likes
        pass
    return made


class TestGroupCommit:
    def test_threads_share_commits(self, root: Path) -> None:
        catalog = open_in("v2", root)
        catalog.create_namespace(("ns",), {})
        catalog.create_table(("ns", "taken"), new_table())
        before = lance.dataset(root / "__manifest").version
        together = threading.Barrier(64)

        def create(number: int) -> str:
            together.wait()
            try:
                name = "taken" if number % 8 == 0 else f"t{number}"
                info = catalog.create_table(("ns", name), new_table(who=str(number)))
            except Conflict as error:
                return type(error).__name__
            return info.properties["who"]

        with ThreadPoolExecutor(64) as threads:
            answers = list(threads.map(create, range(64)))
        assert answers == ["TableAlreadyExists" if number % 8 == 0 else str(number) for number in range(64)]
        made = [f"t{number}" for number in range(64) if number % 8]
        assert sorted([*made, "taken"]) == list(catalog.list_tables(("ns",)).items)
        assert lance.dataset(root / "__manifest").version - before < len(made) // 2

    def test_upkeep_beside_many_creates(self, processes: Executor, root: Path) -> None:
        catalog = open_in("v2", root)
        catalog.create_namespace(("ns",), {})
        calls = [processes.submit(declare_many, root, who, 60) for who in range(4)]
        made = sorted(name for call in calls for name in call.result())
        assert len(made) == 240
        manifest = lance.dataset(root / "__manifest")
        assert len(manifest.get_fragments()) < 80
        indexes = {index.name for index in manifest.describe_indices()}
        assert indexes == {"object_id_btree", "object_type_bitmap", "base_objects_label_list"}
        assert sorted(manifest.to_table()["object_id"].to_pylist()) == sorted(
            ["ns", *(f"ns${name}" for name in made)]
        )
        for name in (made[0], made[-1]):
            assert manifest.to_table(filter=f"object_id = 'ns${name}'").num_rows == 1
        assert list(catalog.list_tables(("ns",)).items) == made


def declare_many(root: Path, who: int, count: int) -> list[str]:
    catalog = open_in("v2", root)
    for number in range(count):
        catalog.create_table(("ns", f"t{who}-{number:03}"), declared())
    return [f"t{who}-{number:03}" for number in range(count)]
