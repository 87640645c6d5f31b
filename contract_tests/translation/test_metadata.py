"""The whole of a table's metadata, as it goes to Iceberg clients."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import lance
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from jsonschema import Draft202012Validator
from pyiceberg.table import StaticTable

from contract_tests.strangers.openapi import FORMATS, SPECIFICATION
from contract_tests.translation import tables
from contract_tests.translation.lance_tables import table_info
from contract_tests.translation.strategies import table, table_infos, version
from contract_tests.translation.tables import (
    COUNT,
    DECLARED,
    HISTORY,
    NUMBER,
    PLAIN,
    TABLES,
    TERM,
    VECTORS,
    WORD,
)
from irc_bridge.catalog.identity import table_uuid
from irc_bridge.catalog.models import TABLE_UUID, Field, TableInfo
from irc_bridge.translation.metadata import table_metadata

GOLDEN = Path(__file__).parent / "golden"


def sent(info: TableInfo) -> dict[str, Any]:
    received: dict[str, Any] = json.loads(table_metadata(info, PLAIN).model_dump_json())
    return received


@pytest.fixture(scope="module")
def openapi() -> Iterator[Draft202012Validator]:
    if not SPECIFICATION.exists():
        pytest.skip(f"metadata was not held against the OpenAPI: there is no {SPECIFICATION.name}")
    components = yaml.load(SPECIFICATION.read_text(), yaml.CSafeLoader)["components"]
    schema = {"$ref": "#/components/schemas/TableMetadata", "components": components}
    yield Draft202012Validator(schema, format_checker=FORMATS)


@pytest.mark.parametrize("name", TABLES)
def test_the_metadata_of_a_table_is_the_golden_one(name: str) -> None:
    assert sent(TABLES[name]) == json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.mark.parametrize("name", TABLES)
def test_golden_metadata_conforms_to_the_specification(name: str, openapi: Draft202012Validator) -> None:
    assert list(openapi.iter_errors(sent(TABLES[name]))) == []


@given(info=table_infos())
def test_metadata_conforms_to_the_specification(info: TableInfo, openapi: Draft202012Validator) -> None:
    assert list(openapi.iter_errors(sent(info))) == []


def test_the_specification_would_refuse_a_snapshot_without_manifest_list(openapi: Draft202012Validator) -> None:
    wrong = sent(VECTORS)
    del wrong["snapshots"][0]["manifest-list"]

    assert [error.message for error in openapi.iter_errors(wrong)] == ["'manifest-list' is a required property"]


def test_two_processes_answer_the_same_bytes() -> None:
    def answer(seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-m", tables.__name__]
        return subprocess.run(command, env=environment, check=True, capture_output=True).stdout

    first = answer("1")
    assert first == answer("2")
    assert [json.loads(line) for line in first.splitlines()] == [sent(info) for info in TABLES.values()]


def test_the_order_in_which_lance_lists_tags_and_metadata_does_not_matter() -> None:
    properties = {"b": "2", "a": "1", "c": "3"}
    info = replace(HISTORY, properties=properties, tags={"x": 1, "y": 2})
    other = replace(HISTORY, properties=dict(sorted(properties.items())), tags={"y": 2, "x": 1})

    assert table_metadata(info, PLAIN).model_dump_json() == table_metadata(other, PLAIN).model_dump_json()


def test_no_metadata_file_is_named() -> None:
    for info in TABLES.values():
        metadata = sent(info)
        assert metadata["metadata-log"] == []
        assert "metadata-location" not in metadata


def test_a_declared_table_has_no_snapshot() -> None:
    metadata = sent(DECLARED)

    assert metadata["schemas"] == [{"type": "struct", "schema-id": 0, "fields": [], "identifier-field-ids": []}]
    assert metadata["snapshots"] == metadata["snapshot-log"] == []
    assert metadata["refs"] == {}
    assert "current-snapshot-id" not in metadata


def test_an_old_schema_that_iceberg_cannot_tell_from_the_latest_is_the_same_one() -> None:
    same = Field(0, "count", pa.int64(), True, {"compression": "zstd"})
    other = Field(0, "count", pa.int64(), False)
    changes = [(1, other), (2, COUNT), (3, other), (4, same)]
    info = table(*(replace(version(number), schema=(field,)) for number, field in changes))

    metadata = sent(info)

    assert [schema["schema-id"] for schema in metadata["schemas"]] == [2, 1]
    assert [snapshot["schema-id"] for snapshot in metadata["snapshots"]] == [1, 2, 1, 2]


def test_versions_of_which_nothing_can_be_shown_share_a_schema() -> None:
    nothing, naught = Field(0, "nothing", pa.null(), True), Field(1, "naught", pa.null(), True)
    changes: list[tuple[int, tuple[Field, ...]]] = [(1, ()), (2, (nothing,)), (3, (naught,)), (4, (COUNT,))]
    info = table(*(replace(version(number), schema=schema) for number, schema in changes))

    assert [snapshot["schema-id"] for snapshot in sent(info)["snapshots"]] == [1, 1, 1, 4]


def test_a_schema_with_another_primary_key_is_another_schema() -> None:
    plain = replace(COUNT, nullable=False)
    key = replace(plain, metadata={"lance-schema:unenforced-primary-key": "true"})
    info = table(replace(version(1), schema=(plain,)), replace(version(2), schema=(key,)))

    schemas = {schema["schema-id"]: schema["identifier-field-ids"] for schema in sent(info)["schemas"]}
    assert schemas == {1: [], 2: [1]}


def test_a_schema_has_the_number_of_the_first_version_that_has_it(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    before = sent(table_info(tmp_path / "t"))
    lance.write_dataset(pa.table({"a": [2]}), tmp_path / "t", mode="append")
    dataset = lance.dataset(tmp_path / "t")
    dataset.add_columns({"b": "a + 1"})
    after = sent(table_info(tmp_path / "t"))

    def columns(metadata: dict[str, Any]) -> dict[int, list[str]]:
        return {s["schema-id"]: [field["name"] for field in s["fields"]] for s in metadata["schemas"]}

    assert columns(before) == {1: ["a"]}
    assert columns(after) == {1: ["a"], 3: ["a", "b"]}
    assert [snapshot["schema-id"] for snapshot in after["snapshots"]] == [1, 1, 3]
    assert (before["current-schema-id"], after["current-schema-id"]) == (1, 3)


def test_a_schema_that_comes_back_has_its_number_again() -> None:
    a, b = Field(0, "a", pa.int64(), True), Field(0, "b", pa.int64(), True)
    info = table(*(replace(version(number), schema=(field,)) for number, field in ((1, a), (5, b), (9, a))))

    assert [snapshot["schema-id"] for snapshot in sent(info)["snapshots"]] == [1, 5, 1]
    assert sent(info)["current-schema-id"] == 1


def test_versions_that_are_not_listed_count_for_the_number_of_a_schema() -> None:
    a, b = Field(0, "a", pa.int64(), True), Field(0, "b", pa.int64(), True)
    hidden = Field(0, "b", pa.int64(), True, {"compression": "zstd"})
    latest = replace(version(9), schema=(b,))
    info = replace(table(latest), schema_starts=((3, (a,)), (4, (hidden,)), (7, (b,))))

    metadata = sent(info)
    assert metadata["current-schema-id"] == metadata["snapshots"][0]["schema-id"] == 4
    assert [schema["schema-id"] for schema in metadata["schemas"]] == [4]


def test_by_the_letter_of_the_seed_the_current_schema_has_id_1() -> None:
    a, b = Field(0, "a", pa.int64(), True), Field(0, "b", pa.int64(), True)
    info = table(
        *(replace(version(number), schema=(field,)) for number, field in ((1, a), (5, b), (9, a), (12, b)))
    )
    metadata = table_metadata(info, replace(PLAIN, schema_ids="always-1"))

    assert metadata.current_schema_id == 1
    assert [snapshot.schema_id for snapshot in metadata.snapshots] == [2, 1, 2, 1]
    assert {schema.schema_id: schema.column_names for schema in metadata.schemas} == {1: ["b"], 2: ["a"]}
    assert table_metadata(DECLARED, replace(PLAIN, schema_ids="always-1")).current_schema_id == 1


def test_the_last_column_id_counts_the_items_of_vectors() -> None:
    vector = Field(0, "v", pa.list_(pa.float32(), 4), True, {}, (NUMBER,))
    info = table(replace(version(1), schema=(vector, TERM), max_field_id=1))

    assert sent(info)["last-column-id"] == 100_000_002
    more = table(replace(version(1), schema=(vector, TERM), max_field_id=2))
    assert sent(more)["last-column-id"] == 100_000_003


def test_the_last_column_id_counts_columns_of_older_versions() -> None:
    older, latest = replace(version(1), max_field_id=5), replace(version(2), max_field_id=3)
    assert sent(table(older, latest))["last-column-id"] == 6
    assert sent(table())["last-column-id"] == 0


@pytest.mark.parametrize(
    ("said", "shown"),
    [("impl", "impl"), ("IMPL", "impl"), ("storage", "storage"), ("Storage", "storage"), ("catalog", "storage")],
)
def test_managed_by_is_one_of_the_two_words_of_the_seed(said: str, shown: str) -> None:
    assert sent(table(version(1), properties={"managed_by": said}))["properties"]["managed_by"] == shown


def test_properties_are_the_metadata_of_the_table_and_what_the_bridge_says() -> None:
    spoofed = {"irc-bridge.converted-columns": "none", "irc-bridge.omitted-columns": "none"}
    own = {"owner": "me", "table_type": "parquet", TABLE_UUID: str(UUID(int=7))}
    info = table(version(1), properties=own | spoofed)

    assert sent(info)["properties"] == {
        "owner": "me",
        "table_type": "lance",
        "managed_by": "storage",
        "gc.enabled": "false",
        "write.data.path": "file:///data/t.lance/_iceberg/engines/data",
        "write.metadata.path": "file:///data/t.lance/_iceberg/engines/metadata",
    }


def test_what_keeps_clients_from_cleaning_up_cannot_be_changed_past_the_bridge() -> None:
    own = {"gc.enabled": "true", "write.data.path": "/elsewhere"}
    properties = sent(table(version(1), properties=own))["properties"]

    assert properties["gc.enabled"] == "false"
    assert properties["write.data.path"] == "file:///data/t.lance/_iceberg/engines/data"


def test_omitted_and_converted_columns_are_those_of_the_latest_schema() -> None:
    nothing = Field(1, "nothing", pa.null(), True)
    clock = Field(2, "clock", pa.time64("ns"), True)
    versions = [replace(version(1), schema=(COUNT, nothing)), replace(version(2), schema=(COUNT, clock))]

    first, second = sent(table(versions[0]))["properties"], sent(table(*versions))["properties"]

    assert json.loads(first["irc-bridge.omitted-columns"]) == {"nothing": "Iceberg has no type for null"}
    assert "irc-bridge.converted-columns" not in first
    assert list(json.loads(second["irc-bridge.converted-columns"])) == ["clock"]
    assert "irc-bridge.omitted-columns" not in second


def test_the_uuid_that_the_bridge_gave_is_kept_and_a_foreign_one_follows_from_the_location() -> None:
    kept = UUID(int=7)
    foreign = uuid5(NAMESPACE_URL, "file:///data/t.lance")

    assert table_uuid(table(version(1), properties={TABLE_UUID: str(kept)})) == kept
    assert table_uuid(table(version(1), properties={TABLE_UUID: "not a uuid"})) == foreign
    assert table_uuid(table(version(1))) == table_uuid(table()) == foreign
    assert table_uuid(replace(table(), location="file:///data/u.lance")) != foreign


@pytest.mark.parametrize("schema", [(COUNT, WORD), ()], ids=["columns", "none"])
def test_a_client_that_scans_is_told_what_to_do(schema: tuple[Field, ...], tmp_path: Path) -> None:
    info = replace(table(replace(version(7), schema=schema)), location=tmp_path.as_uri())
    file = tmp_path / "v1.metadata.json"
    file.write_text(table_metadata(info, PLAIN).model_dump_json())
    client = StaticTable.from_metadata(str(file))

    with pytest.raises(
        FileNotFoundError,
        match=r"Lance-version-7-has-no-Parquet-copy--run-irc-bridge-mirror-or-read-it-with-lance\.dataset",
    ):
        client.scan().to_arrow()


@pytest.mark.parametrize("name", TABLES)
def test_pyiceberg_reads_what_was_sent(name: str, tmp_path: Path) -> None:
    file = tmp_path / "v1.metadata.json"
    file.write_text(table_metadata(TABLES[name], PLAIN).model_dump_json())

    client = StaticTable.from_metadata(str(file))

    assert client.metadata.model_dump_json() == file.read_text()
    assert client.format_version == 2
    assert len(client.history()) == len(TABLES[name].versions)
