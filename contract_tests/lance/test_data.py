"""Tables made of an Arrow stream, and what can be counted."""

import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from contract_tests.lance.client import ROWS, Lance, ipc, ok, refused
from contract_tests.worlds.bridge import Client
from contract_tests.worlds.world import COMPATIBLE, IRC, Bridge, _worlds
from contract_tests.worlds.writer import folder_of

pytestmark = _worlds(COMPATIBLE, IRC)

OTHER = pa.table({"x": [1.5, 2.5]})


def place_of(lance_rest: Lance, name: str) -> str:
    location: str = ok(lance_rest.table([name], "describe", {}))["location"]
    return location


def read(lance_rest: Lance, name: str, version: int | None = None) -> pa.Table:
    return lance.dataset(place_of(lance_rest, name), version=version).to_table()


def without_defaults(properties: dict[str, str]) -> dict[str, str]:
    """Another server adds some of its own."""
    return {key: each for key, each in properties.items() if not key.startswith("write.")}


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_create(lance_rest: Lance, client: Client, bridge: Bridge, name: str, managed_by: str) -> None:
    made = ok(lance_rest.create([name], properties=f'{{"a": "é", "managed_by": "{managed_by}"}}'))
    assert without_defaults(made.pop("properties")) == {"a": "é", "managed_by": managed_by}
    assert made == {"location": place_of(lance_rest, name), "version": 1}
    assert made["location"].startswith(f"{bridge.root.uri}/")
    assert read(lance_rest, name).equals(ROWS)
    metadata = client.metadata(("default",), name)
    assert metadata["current-snapshot-id"] == 1
    assert metadata["properties"]["a"] == "é"
    for mode in ({}, {"mode": "Create"}):
        refused(lance_rest.create([name], OTHER, **mode), 409, 5, name)
    assert read(lance_rest, name).equals(ROWS)


def test_a_stream_without_rows_makes_an_empty_table(lance_rest: Lance, name: str) -> None:
    assert ok(lance_rest.create([name], ROWS.slice(0, 0)))["version"] == 1
    assert read(lance_rest, name).schema == ROWS.schema


@pytest.mark.parametrize("body", [b"", b"rows", ipc(ROWS)[:-100], ipc(ROWS)[:40]])
def test_a_body_that_is_no_stream(lance_rest: Lance, bridge: Bridge, name: str, body: bytes) -> None:
    refused(lance_rest.table([name], "create", body), 400, 13, "Arrow IPC")
    refused(lance_rest.table([name], "exists", {}), 404, 4)
    assert not (Path(str(bridge.root)) / f"{name}.lance").exists()


def test_rows_that_lie_about_their_offsets_are_refused(lance_rest: Lance, name: str) -> None:
    honest, lying = struct.pack("<ii", 0, 5), struct.pack("<ii", 0, 2**30)
    before, found, after = ipc(pa.table({"s": ["short"]})).rpartition(honest)
    assert found
    refused(lance_rest.table([name], "create", before + lying + after), 400, 13, "Arrow IPC")


def test_rows_that_lance_cannot_store(lance_rest: Lance, name: str) -> None:
    refused(lance_rest.create([name], pa.table([[1], [2]], names=["a", "a"])), 400, 13, "a")
    refused(lance_rest.create([name], pa.table({"a.b": [1]})), 400, 13, "a.b")


@pytest.mark.parametrize(
    "query",
    [
        {"mode": "x"},
        {"properties": "x"},
        {"properties": '{"a": 1}'},
        {"properties": "[]"},
        {"storage_options": "1"},
    ],
)
def test_a_parameter_that_cannot_be(lance_rest: Lance, name: str, query: dict[str, str]) -> None:
    refused(lance_rest.create([name], **query), 400, 13, *query)
    refused(lance_rest.table([name], "exists", {}), 404, 4)


def test_exist_ok_keeps_what_is_there(lance_rest: Lance, name: str) -> None:
    assert ok(lance_rest.create([name], mode="ExistOk"))["version"] == 1
    kept = ok(lance_rest.create([name], OTHER, mode="exist_ok", properties='{"a": "b"}'))
    assert without_defaults(kept["properties"]) == {}
    assert read(lance_rest, name).equals(ROWS)


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_overwrite_makes_the_next_version(lance_rest: Lance, client: Client, name: str, managed_by: str) -> None:
    assert ok(lance_rest.create([name], mode="overwrite", properties='{"a": "1", "b": "1"}'))["version"] == 1
    update = {"action": "set-properties", "updates": {"managed_by": managed_by}}
    path = f"namespaces/default/tables/{name}"
    assert client.post(path, json={"requirements": [], "updates": [update]}).status_code == 200
    before = client.metadata(("default",), name)["current-snapshot-id"]
    made = ok(lance_rest.create([name], OTHER, mode="Overwrite", properties='{"b": "2"}'))
    assert made["version"] == before + 1
    assert without_defaults(made["properties"]) == {"a": "1", "b": "2", "managed_by": managed_by}
    assert read(lance_rest, name).equals(OTHER)
    assert read(lance_rest, name, version=1).equals(ROWS)
    metadata = client.metadata(("default",), name)
    assert metadata["current-snapshot-id"] == before + 1
    assert [field["name"] for field in metadata["schemas"][0]["fields"]] == ["x"]


def test_overwrite_keeps_the_storage_version_of_the_table(lance_rest: Lance, name: str) -> None:
    place = ok(lance_rest.table([name], "declare", {}))["location"]
    lance.write_dataset(ROWS, place, data_storage_version="2.0")
    assert ok(lance_rest.create([name], OTHER, mode="overwrite"))["version"] == 2
    dataset = lance.dataset(place)
    assert dataset.data_storage_version == "2.0"
    assert dataset.to_table().equals(OTHER)


@pytest.mark.parametrize("mode", ["create", "overwrite"])
@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_a_declared_table_gets_its_first_version(lance_rest: Lance, name: str, mode: str, managed_by: str) -> None:
    body = {"properties": {"a": "b", "managed_by": managed_by}}
    declared = ok(lance_rest.table([name], "declare", body))
    made = ok(lance_rest.create([name], mode=mode))
    assert made == {"location": declared["location"], "version": 1, "properties": declared["properties"]}
    assert read(lance_rest, name).equals(ROWS)
    assert ok(lance_rest.table([name], "describe", {})) == declared


def files(location: str) -> list[str]:
    return sorted(path.name for path in (folder_of(location) / "data").iterdir())


def named_by(location: str) -> list[str]:
    dataset = lance.dataset(location)
    versions = [dataset.checkout_version(each["version"]) for each in dataset.versions()]
    fragments = [fragment for version in versions for fragment in version.get_fragments()]
    return sorted({file.path for fragment in fragments for file in fragment.data_files()})


def test_of_many_creators_one_wins_and_no_file_is_left(lance_rest: Lance, name: str) -> None:
    with ThreadPoolExecutor(8) as callers:
        tables = [ROWS.slice(0, 1 + n % 3) for n in range(16)]
        answers = list(callers.map(lambda rows: lance_rest.create([name], rows), tables))
    won = [n for n, answer in enumerate(answers) if answer.status_code == 200]
    assert len(won) == 1
    for n, answer in enumerate(answers):
        assert n in won or refused(answer, 409, 5)
    assert read(lance_rest, name).equals(tables[won[0]])
    assert files(place_of(lance_rest, name)) == named_by(place_of(lance_rest, name))


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_overwrites_beside_each_other_all_happen(lance_rest: Lance, name: str, managed_by: str) -> None:
    ok(lance_rest.create([name], properties=f'{{"managed_by": "{managed_by}"}}'))
    with ThreadPoolExecutor(4) as callers:
        answers = list(callers.map(lambda _: lance_rest.create([name], OTHER, mode="overwrite"), range(8)))
    assert [answer.status_code for answer in answers] == [200] * 8
    assert lance.dataset(place_of(lance_rest, name)).version == 9
    assert files(place_of(lance_rest, name)) == named_by(place_of(lance_rest, name))
    staged = (folder_of(place_of(lance_rest, name)) / "_versions").glob("*.manifest-*")
    assert list(staged) == []


def test_count(lance_rest: Lance, name: str) -> None:
    ok(lance_rest.create([name]))
    ok(lance_rest.create([name], ROWS.slice(0, 2), mode="overwrite"))

    def count(**body: Any) -> Any:
        return ok(lance_rest.table([name], "count_rows", body))

    assert count() == 2
    assert count(version=1) == 3
    assert count(version=1, predicate="id > 1 AND name IS NULL") == 1
    for predicate in ("id >", "nothing = 1", "id = 'x'", "id"):
        refused(lance_rest.table([name], "count_rows", {"predicate": predicate}), 400, 13, "predicate")
    refused(lance_rest.table([name], "count_rows", {"version": 9}), 404, 11, "9")
    refused(lance_rest.table([f"{name}x"], "count_rows", {}), 404, 4)
    ok(lance_rest.table([f"{name}x"], "declare", {}))
    refused(lance_rest.table([f"{name}x"], "count_rows", {}), 404, 11, "no version")


def test_stats(lance_rest: Lance, name: str) -> None:
    location = ok(lance_rest.create([name], ROWS.slice(0, 0)))["location"]
    nothing = dict.fromkeys(("min", "max", "mean", "p25", "p50", "p75", "p99"), 0)
    empty = {"num_fragments": 0, "num_small_fragments": 0, "lengths": nothing}
    told = ok(lance_rest.table([name], "stats", {}))
    assert told == {"total_bytes": 0, "num_rows": 0, "num_indices": 0, "fragment_stats": empty}
    for rows in (1, 2, 3, 150_000):
        data = pa.table({"id": pa.array(range(rows), pa.int64()), "name": ["x"] * rows})
        dataset = lance.write_dataset(data, location, mode="append")
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id = 2")
    told = ok(lance_rest.table([name], "stats", {}))
    sizes = [file.stat().st_size for file in (Path(location.removeprefix("file://")) / "data").iterdir()]
    assert told["total_bytes"] == sum(sizes)
    assert told["num_rows"] == 150_004
    assert told["num_indices"] == 1
    lengths = {"min": 1, "max": 149_999, "mean": 37_501, "p25": 2, "p50": 2, "p75": 2, "p99": 149_999}
    assert told["fragment_stats"] == {"num_fragments": 4, "num_small_fragments": 3, "lengths": lengths}
