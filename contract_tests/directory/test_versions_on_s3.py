"""The version operations on a real S3 server."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import lance
import pytest

from contract_tests.directory.opened import (
    VERSIONED,
    Directory,
    declared,
    load,
    names,
    new_table,
    open_in,
    rows,
    versions,
)
from contract_tests.directory.staging import append_through, stage, stage_first
from contract_tests.worlds.s3 import S3
from irc_bridge.catalog.models import TableInfo, VersionRange
from irc_bridge.errors import (
    ConcurrentModification,
    InvalidInput,
    TableNotFound,
    TableVersionAlreadyExists,
    TableVersionNotFound,
)
from irc_bridge.storage.object_store import ObjectStorage

T, U = ("t",), ("u",)
WRITERS, COMMITS = 4, 3

pytestmark = pytest.mark.parametrize("mode", VERSIONED)


@pytest.fixture
def bucket(s3: S3) -> str:
    return s3.bucket("versions") + "/below/a b"


@pytest.fixture
def catalog(s3: S3, bucket: str, mode: str) -> Directory:
    return open_in(mode, bucket, **s3.options)


def ids(s3: S3, info: TableInfo) -> list[int]:
    found: list[int] = lance.dataset(info.location, storage_options=dict(s3.options)).to_table()["id"].to_pylist()
    return sorted(found)


def test_a_version_from_the_staged_manifest(catalog: Directory, s3: S3, table: TableInfo) -> None:
    asked = stage(table.location, 1, options=s3.options)
    entry = asked.entry(T, e_tag=asked.e_tag)
    [made] = catalog.create_table_versions([entry])
    assert made.manifest_path == f"{table.location}/_versions/{2**64 - 3:020}.manifest"
    assert (made.version, made.manifest_size) == (2, asked.manifest_size)
    assert ids(s3, table) == [1]
    assert catalog.describe_table_version(T).e_tag == made.e_tag
    assert catalog.list_table_versions(T, limit=1).items[0].e_tag == made.e_tag
    [again] = catalog.create_table_versions([entry])
    assert again.manifest_path == made.manifest_path
    [known_by_name] = catalog.create_table_versions([asked.entry(T)])
    assert known_by_name.manifest_path == made.manifest_path


def test_every_form_of_path(catalog: Directory, s3: S3, bucket: str, table: TableInfo) -> None:
    for number in range(4):
        asked = stage(table.location, number, options=s3.options)
        name = asked.manifest_path.rpartition("/")[2]
        forms = [
            f"{table.location}/_versions/{name}",
            f"/{asked.manifest_path}",
            asked.manifest_path,
            f"_versions/{name}",
        ]
        catalog.create_table_versions([asked.entry(T, staged_path=forms[number])])
    assert ids(s3, table) == [0, 1, 2, 3]
    for outside in (
        f"{bucket}/u.lance/x",
        table.location.replace("s3://", "s3://x") + "/x",
        "t.lance/x",
        "_versions/../../x",
    ):
        with pytest.raises(InvalidInput, match="does not lie inside"):
            catalog.create_table_versions([asked.entry(T, staged_path=outside)])


def test_one_version_is_won_once(catalog: Directory, s3: S3, table: TableInfo) -> None:
    asked = [stage(table.location, number, options=s3.options) for number in range(8)]

    def create(number: int) -> int | None:
        try:
            catalog.create_table_versions([asked[number].entry(T)])
        except TableVersionAlreadyExists:
            return None
        return number

    with ThreadPoolExecutor(8) as threads:
        won = [number for number in threads.map(create, range(8)) if number is not None]
    assert len(won) == 1
    assert ids(s3, table) == won


def append_all(mode: str, bucket: str, s3: S3, who: int) -> int:
    catalog = open_in(mode, bucket, **s3.options)
    for number in range(COMMITS):
        append_through(catalog, T, rows(who * 100 + number), s3.options)
    return COMMITS


def test_lance_writers_commit_through_the_catalog(catalog: Directory, s3: S3, bucket: str, mode: str) -> None:
    info = catalog.create_table(T, new_table())
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(WRITERS, mp_context=context) as processes:
        calls = [processes.submit(append_all, mode, bucket, s3, who) for who in range(WRITERS)]
        assert sum(call.result() for call in calls) == WRITERS * COMMITS
    assert versions(load(catalog, T)) == list(range(1, WRITERS * COMMITS + 2))
    assert ids(s3, info) == sorted(who * 100 + number for who in range(WRITERS) for number in range(COMMITS))


@pytest.mark.parametrize("v2_names", [True, False])
def test_both_naming_schemes(catalog: Directory, s3: S3, v2_names: bool) -> None:
    info = catalog.create_table(T, declared(owner="ann"))
    first = stage_first(info.location, 1, options=s3.options, v2_names=v2_names)
    catalog.create_table_versions([first.entry(T, naming_scheme=first.naming_scheme)])
    for number in range(2, 8):
        catalog.create_table_versions([stage(info.location, number, options=s3.options).entry(T)])
    listed = catalog.list_table_versions(T).items
    assert [each.version for each in listed] == [7, 6, 5, 4, 3, 2, 1]
    expected = [f"{2**64 - 1 - each}.manifest" if v2_names else f"{each}.manifest" for each in range(7, 0, -1)]
    assert [each.manifest_path.rpartition("/")[2] for each in listed] == expected
    assert ids(s3, info) == [1, 2, 3, 4, 5, 6, 7]
    assert load(catalog, T).properties["owner"] == "ann"


def test_versions_deleted_and_loaded(catalog: Directory, s3: S3, table: TableInfo) -> None:
    stale = stage(table.location, 0, options=s3.options)
    for number in range(1, 5):
        catalog.create_table_versions([stage(table.location, number, options=s3.options).entry(T)])
    assert catalog.delete_table_versions(T, [VersionRange(2, 4)], ignore_missing=False) == 2
    assert versions(load(catalog, T)) == [1, 4, 5]
    with pytest.raises(TableVersionAlreadyExists):
        catalog.create_table_versions([stale.entry(T)])
    assert versions(catalog.load_version(T, 4)) == [4]
    for version in (2, 6):
        with pytest.raises(TableVersionNotFound):
            catalog.load_version(T, version)


@pytest.mark.parametrize("again", [None, "declared", "created"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("first", [True, False])
def test_a_table_dropped_meanwhile(
    monkeypatch: pytest.MonkeyPatch, catalog: Directory, s3: S3, first: bool, when: str, again: str | None
) -> None:
    info = catalog.create_table(T, declared(owner="ann") if first else new_table(owner="ann"))
    asked = (stage_first if first else stage)(info.location, 1, options=s3.options)
    original = ObjectStorage.put_if_absent

    def drop() -> None:
        catalog.drop_table(T)
        if again is not None:
            catalog.create_table(T, declared(owner="bob") if again == "declared" else new_table(owner="bob"))

    def put(storage: ObjectStorage, path: str, data: bytes) -> bool:
        monkeypatch.setattr(ObjectStorage, "put_if_absent", original)
        if when == "before":
            drop()
        won = storage.put_if_absent(path, data)
        if when == "after":
            drop()
        return won

    monkeypatch.setattr(ObjectStorage, "put_if_absent", put)
    with pytest.raises((TableNotFound, ConcurrentModification)):
        catalog.create_table_versions([asked.entry(T)])
    if again is None:
        assert names(catalog) == []
    else:
        after = load(catalog, T)
        assert after.properties["owner"] == "bob"
        assert versions(after) == ([] if again == "declared" else [1])
