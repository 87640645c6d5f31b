"""How much is opened to answer for a table with a long history."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from contract_tests.directory.opened import Directory, append, load, new_table, open_in, path_of, versions
from irc_bridge.catalog.models import Field, History, TableVersion
from irc_bridge.lance_store.history import HistoryCache, Newest
from irc_bridge.lance_store.mirror_layout import list_name
from irc_bridge.storage.base import FileEntry
from irc_bridge.storage.layout import name_of

T = ("t",)


class Opened(list[int | None]):
    """The versions that Lance was asked to open."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    calls = Opened()
    original = lance.dataset

    def counted(uri: Any, version: Any = None, **options: Any) -> lance.LanceDataset:
        if not str(uri).endswith("__manifest"):
            calls.append(version)
        return original(uri, version, **options)

    monkeypatch.setattr(lance, "dataset", counted)
    yield calls


def test_one_more_version_opens_one_manifest(catalog: Directory, opened: Opened) -> None:
    info = catalog.create_table(T, new_table())
    for each in range(30):
        append(info, each)
    assert versions(load(catalog, T)) == list(range(1, 32))
    opened.clear()
    append(info, 99)
    opened.clear()
    assert versions(load(catalog, T)) == list(range(1, 33))
    assert opened == [32]


def test_refs_open_the_latest_and_the_tagged_only(catalog: Directory, opened: Opened) -> None:
    info = catalog.create_table(T, new_table())
    for each in range(30):
        dataset = append(info, each)
    dataset.tags.create("x", 7)
    opened.clear()
    assert versions(load(catalog, T, History.HEADS)) == [7, 31]
    assert sorted(opened, key=str) == [31, 7]
    opened.clear()
    assert versions(load(catalog, T, History.HEADS)) == [7, 31]
    assert opened == [31]


def test_refs_open_the_latest_that_has_a_parquet_copy(
    catalog: Directory, root: Path, mode: str, opened: Opened
) -> None:
    info = catalog.create_table(T, new_table())
    for each in range(30):
        append(info, each)
    lists = Path(path_of(info), "_iceberg", "versions")
    lists.mkdir(parents=True)
    made = {each.version: each.timestamp_ms for each in load(catalog, T).versions}
    for number in (3, 12):
        (lists / list_name(info.location, number, made[number])).touch()
    for number in (5, 20, 99):
        (lists / list_name(info.location, number, 1)).touch()
    (lists / "30.avro").touch()
    assert sorted(load(catalog, T).mirrored) == [3, 12]
    fresh = open_in(mode, root)
    opened.clear()
    loaded = load(fresh, T, History.HEADS)
    assert (versions(loaded), [*loaded.mirrored]) == ([12, 31], [12])
    assert opened == [31, 20, 12]
    opened.clear()
    assert versions(load(catalog, T, History.HEADS)) == [12, 31]
    assert opened == [31]


def test_equal_schemas_are_held_once(catalog: Directory) -> None:
    info = catalog.create_table(T, new_table())
    append(info, 1).add_columns({"more": "id"})
    loaded = load(catalog, T)
    schemas = [each.schema for each in loaded.versions]
    assert schemas[0] is schemas[1]
    assert schemas[1] != schemas[2]


def test_both_naming_schemes_and_what_is_no_version(catalog: Directory) -> None:
    info = catalog.create_table(T, new_table())
    for each in range(3):
        append(info, each)
    folder = Path(path_of(info), "_versions")
    (folder / "17.manifest-6e8bc2f4").write_bytes(b"staged")
    (folder / f"{name_of(9)}-6e8bc2f4").write_bytes(b"staged")
    (folder / "d9223372036854775900.manifest").write_bytes(b"detached")
    (folder / f"{2**63 + 5}.manifest").write_bytes(b"detached")
    assert versions(load(catalog, T)) == [1, 2, 3, 4]
    for number in range(1, 5):
        os.rename(folder / name_of(number), folder / f"{number}.manifest")  # noqa: PTH104
    again = load(catalog, T)
    assert versions(again) == [1, 2, 3, 4]
    assert [each.manifest for each in again.versions] == [
        f"{info.location}/_versions/{number}.manifest" for number in range(1, 5)
    ]


def test_lance_itself_writes_the_names_we_expect(tmp_path: Path) -> None:
    data = pa.table({"a": [1]})
    lance.write_dataset(data, tmp_path / "v2")
    lance.write_dataset(data, tmp_path / "v1", enable_v2_manifest_paths=False)
    assert (tmp_path / "v2" / "_versions" / name_of(1)).exists()
    assert (tmp_path / "v1" / "_versions" / name_of(1, like="7.manifest")).exists()


def test_a_manifest_that_vanishes_while_loading_is_left_out(
    catalog: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = catalog.create_table(T, new_table())
    for each in range(4):
        append(info, each)
    original = lance.dataset

    def vanishing(uri: Any, version: Any = None, **options: Any) -> lance.LanceDataset:
        if version == 2:
            (Path(path_of(info), "_versions") / name_of(2)).unlink(missing_ok=True)
        return original(uri, version, **options)

    monkeypatch.setattr(lance, "dataset", vanishing)
    assert versions(load(catalog, T)) == [1, 3, 4, 5]


def test_what_is_kept_of_many_tables_is_bounded() -> None:
    cache = HistoryCache(max_size=60, max_tables=40)
    schema = tuple(Field(number, f"c{number}", pa.int64(), True) for number in range(10))
    manifests = [FileEntry(name_of(number), number) for number in range(1, 3)]
    versions = {
        each: TableVersion(number, 0, schema, "Append", {}, "", 9) for number, each in enumerate(manifests, 1)
    }
    for table in range(100):
        cache.put(f"t{table}", versions, keep_others=False)
    kept = [table for table in range(100) if cache.get(f"t{table}", manifests[0])]
    assert kept == [95, 96, 97, 98, 99]
    cache.forget("t99")
    cache.put("one", versions, keep_others=False)
    assert cache.get("t95", manifests[0])
    for table in range(100):
        cache.saw(f"seen{table}", Newest(None, manifests[0]))
    assert sum(cache.newest(f"seen{table}") is not None for table in range(100)) == 40
