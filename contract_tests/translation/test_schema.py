"""Lance schemas as Iceberg schemas: ids, names, nullability, and back again."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.types import (
    FixedType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    UnknownType,
)

from contract_tests.translation.lance_tables import alter, schema_of, table_info, write
from contract_tests.translation.strategies import arrow_schemas, iceberg_schemas
from contract_tests.translation.tables import PLAIN
from irc_bridge.catalog.models import Field
from irc_bridge.errors import InvalidInput
from irc_bridge.translation.metadata import table_metadata
from irc_bridge.translation.schema import Translated, to_arrow, to_iceberg

RESERVED_BY_ICEBERG = range(2_147_483_447, 2_147_483_648)


def fields_of(node: Any, *path: str) -> Iterator[tuple[int, str, bool]]:
    """Id, dotted path and required of every field, from the JSON that goes to clients."""

    def part(word: str, required: bool) -> Iterator[tuple[int, str, bool]]:
        yield node[f"{word}-id"], ".".join([*path, word]), required
        yield from fields_of(node[word], *path, word)

    match node:
        case {"type": "struct", "fields": fields}:
            for field in fields:
                yield field["id"], ".".join([*path, field["name"]]), field["required"]
                yield from fields_of(field["type"], *path, field["name"])
        case {"type": "list"}:
            yield from part("element", node["element-required"])
        case {"type": "map"}:
            yield from part("key", True)
            yield from part("value", node["value-required"])


def shown(translated: Translated) -> list[tuple[int, str, bool]]:
    return list(fields_of(json.loads(translated.schema.model_dump_json())))


def lance_fields(fields: list[Any], *path: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Id and path of every field of a Lance schema, with Iceberg's words for the parts of a list or map."""
    for field in fields:
        arrow = field.to_arrow().type
        here = (*path, field.name())
        yield field.id(), here
        if pa.types.is_map(arrow):
            (entries,) = field.children()
            for part, child in zip(("key", "value"), entries.children(), strict=True):
                yield from lance_fields([Renamed(child, part)], *here)
        elif pa.types.is_nested(arrow) and not pa.types.is_struct(arrow):
            yield from lance_fields([Renamed(child, "element") for child in field.children()], *here)
        else:
            yield from lance_fields(field.children(), *here)


@dataclass
class Renamed:
    field: Any
    part: str

    def name(self) -> str:
        return self.part

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.field, attribute)


def columns(dataset: lance.LanceDataset) -> dict[str, int]:
    translated = to_iceberg(schema_of(dataset), 1)
    return {path: field_id for field_id, path, _ in shown(translated)}


@settings(max_examples=100)
@given(schema=arrow_schemas())
def test_any_lance_schema_is_a_schema_that_iceberg_clients_read(schema: pa.Schema) -> None:
    with TemporaryDirectory() as folder:
        translated = to_iceberg(schema_of(write(schema, Path(folder))), 1)

    sent = translated.schema.model_dump_json()
    received = Schema.model_validate_json(sent)
    assert received.model_dump_json() == sent
    ids = [field_id for field_id, _, _ in shown(translated)]
    assert len(ids) == len(set(ids)) == len(received.column_names)
    assert all(field_id > 0 and field_id not in RESERVED_BY_ICEBERG for field_id in ids)
    paths = {path for _, path, _ in shown(translated)}
    assert paths >= set(translated.converted)


@settings(max_examples=100)
@given(schema=arrow_schemas())
def test_every_field_is_shown_under_its_lance_id_or_named_as_left_out(schema: pa.Schema) -> None:
    with TemporaryDirectory() as folder:
        dataset = write(schema, Path(folder))
        translated = to_iceberg(schema_of(dataset), 1)

    by_id = {field_id: path for field_id, path, _ in shown(translated)}
    of_lance = dict(lance_fields(dataset.lance_schema.fields()))
    for field_id, path in of_lance.items():
        left_out = any(".".join(path[:depth]) in translated.omitted for depth in range(1, len(path) + 1))
        assert left_out or by_id[field_id + 1] == ".".join(path)
    for field in dataset.lance_schema.fields():
        assert (field.id() + 1 in by_id) is (field.name() not in translated.omitted)
    assert {field_id - 1 for field_id in by_id if field_id < 100_000_000} <= set(of_lance)


@settings(max_examples=100)
@given(schema=arrow_schemas())
def test_a_field_is_required_where_lance_has_no_nulls(schema: pa.Schema) -> None:
    with TemporaryDirectory() as folder:
        dataset = write(schema, Path(folder))
        translated = to_iceberg(schema_of(dataset), 1)

    assert {field.name: field.required for field in translated.schema.fields} == {
        field.name: not field.nullable for field in schema if field.name not in translated.omitted
    }


def test_ids_are_those_of_lance_and_follow_a_formula_where_lance_has_none(tmp_path: Path) -> None:
    point = pa.struct([pa.field("x", pa.int8(), nullable=False)])
    schema = pa.schema(
        [
            ("tags", pa.list_(pa.string())),
            ("m", pa.map_(pa.string(), pa.list_(pa.float32(), 2))),
            ("grid", pa.list_(pa.list_(pa.float32(), 4), 3)),
            ("points", pa.list_(point, 2)),
        ]
    )

    assert columns(write(schema, tmp_path)) == {
        "tags": 1,
        "tags.element": 2,
        "m": 3,  # 4 is the entries field that Lance puts between a map and its keys
        "m.key": 5,
        "m.value": 6,
        "m.value.element": 100_000_006,
        "grid": 7,
        "grid.element": 100_000_007,
        "grid.element.element": 200_000_007,
        "points": 8,
        "points.element": 9,
        "points.element.x": 10,
    }


def test_fixed_size_lists_deeper_than_there_are_ids_are_left_out(tmp_path: Path) -> None:
    deep = pa.float32()
    for _ in range(22):
        deep = pa.list_(deep, 1)

    translated = to_iceberg(schema_of(write(pa.schema([("deep", deep), ("a", pa.int8())]), tmp_path)), 1)

    assert [field.name for field in translated.schema.fields] == ["a"]
    assert "nested too deeply" in translated.omitted["deep"]


def test_ids_stay_through_renames_additions_and_drops(tmp_path: Path) -> None:
    rows = pa.table({"a": [1, 2], "b": ["x", "y"], "s": [{"x": 1, "y": 2}] * 2})
    dataset = lance.write_dataset(rows, tmp_path)
    assert columns(dataset) == {"a": 1, "b": 2, "s": 3, "s.x": 4, "s.y": 5}

    alter(dataset, path="b", name="word")
    alter(dataset, path="s.x", name="east")
    assert columns(dataset) == {"a": 1, "word": 2, "s": 3, "s.east": 4, "s.y": 5}

    dataset.drop_columns(["a"])
    dataset.add_columns({"a": "'new'"})
    assert columns(dataset) == {"word": 2, "s": 3, "s.east": 4, "s.y": 5, "a": 6}

    dataset.optimize.compact_files()
    assert columns(dataset) == {"word": 2, "s": 3, "s.east": 4, "s.y": 5, "a": 6}


def test_a_cast_makes_a_new_column(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"a": pa.array([1], pa.int32()), "b": [2]}), tmp_path)
    alter(dataset, path="a", data_type=pa.int64())

    assert columns(dataset) == {"a": 3, "b": 2}


@pytest.mark.parametrize("drop", [False, True])
def test_the_next_column_gets_the_id_that_an_iceberg_client_expects(drop: bool, tmp_path: Path) -> None:
    rows = pa.table({"a": [1], "v": [[1.0, 2.0]], "z": [3]})
    dataset = lance.write_dataset(rows, tmp_path / "t")
    if drop:
        dataset.drop_columns(["z"])
    expected = table_metadata(table_info(tmp_path / "t"), PLAIN).last_column_id + 1

    dataset.add_columns({"new": "a + 1"})

    assert columns(dataset)["new"] == expected == 5


def test_a_doc_comes_from_the_metadata_of_the_field(tmp_path: Path) -> None:
    inner = pa.field("x", pa.int8(), metadata={"doc": "how far east"})
    schema = pa.schema([pa.field("s", pa.struct([inner]), metadata={"doc": "a place"}), ("plain", pa.int8())])

    translated = to_iceberg(schema_of(write(schema, tmp_path)), 1)

    docs = {name: translated.schema.find_field(name).doc for name in ("s", "s.x", "plain")}
    assert docs == {"s": "a place", "s.x": "how far east", "plain": None}


@pytest.mark.parametrize(
    ("struct", "kept"),
    [
        (pa.struct([("a.b", pa.int8()), ("a", pa.struct([("b", pa.int8())]))]), ["a.b"]),
        (pa.struct([("a", pa.int8()), ("a", pa.int16()), ("c", pa.int8())]), ["a", "c"]),
        (pa.struct([("l", pa.list_(pa.int8())), ("l.element", pa.int8())]), ["l"]),
    ],
    ids=str,
)
def test_a_field_whose_dotted_name_is_taken_is_left_out(
    struct: pa.DataType, kept: list[str], tmp_path: Path
) -> None:
    translated = to_iceberg(schema_of(write(pa.schema([("s", struct)]), tmp_path)), 1)

    (column,) = json.loads(translated.schema.model_dump_json())["fields"]
    assert [field["name"] for field in column["type"]["fields"]] == kept
    (reason,) = translated.omitted.values()
    assert "rename" in reason


def test_a_part_of_a_struct_is_left_out_alone(tmp_path: Path) -> None:
    struct = pa.struct([("nothing", pa.null()), ("t", pa.timestamp("ns"))])
    translated = to_iceberg(schema_of(write(pa.schema([("l", pa.list_(struct))]), tmp_path)), 1)

    assert [path for _, path, _ in shown(translated)] == ["l", "l.element", "l.element.t"]
    assert list(translated.omitted) == ["l.element.nothing"]
    assert list(translated.converted) == ["l.element.t"]


def test_what_a_map_loses_is_named_by_key_and_value(tmp_path: Path) -> None:
    struct = pa.struct([("nothing", pa.null()), ("y", pa.int8())])
    lossy = pa.map_(pa.time64("ns"), pa.list_(pa.float32(), 4))
    schema = pa.schema([("lossy", lossy), ("partly", pa.map_(struct, struct))])

    translated = to_iceberg(schema_of(write(schema, tmp_path)), 1)

    assert set(translated.converted) == {"lossy.key", "lossy.value"}
    assert set(translated.omitted) == {"partly.key.nothing", "partly.value.nothing"}


KEY = {"lance-schema:unenforced-primary-key": "true"}


def key(name: str, arrow: pa.DataType) -> pa.Field:
    return pa.field(name, arrow, nullable=False, metadata=KEY)


@pytest.mark.parametrize(
    ("fields", "identifiers"),
    [
        ([key("a", pa.int64()), pa.field("b", pa.int64())], ["a"]),
        ([key("a", pa.int64()), key("b", pa.string())], ["a", "b"]),
        ([pa.field("s", pa.struct([key("x", pa.int64())]), nullable=False)], ["s.x"]),
        ([key("a", pa.int64()), key("f", pa.float64())], []),
        ([pa.field("a", pa.int64(), nullable=False)], []),
    ],
    ids=str,
)
def test_a_primary_key_is_shown_where_iceberg_allows_all_of_it(
    fields: list[pa.Field], identifiers: list[str], tmp_path: Path
) -> None:
    translated = to_iceberg(schema_of(write(pa.schema(fields), tmp_path)), 1)

    assert translated.schema.identifier_field_names() == set(identifiers)


@settings(max_examples=100)
@given(schema=iceberg_schemas())
def test_a_schema_asked_for_comes_back_from_lance(schema: Schema) -> None:
    with TemporaryDirectory() as folder:
        translated = to_iceberg(schema_of(write(to_arrow(schema), Path(folder))), 1)

    asked, given = assign_fresh_schema_ids(schema), assign_fresh_schema_ids(translated.schema)
    assert given.fields == asked.fields
    assert sorted(given.identifier_field_ids) == sorted(asked.identifier_field_ids)
    assert (translated.omitted, translated.converted) == ({}, {})


@pytest.mark.parametrize(
    ("column", "named"),
    [
        (NestedField(1, "t", TimestampNanoType()), "Column t: .* timestamp_ns"),
        (NestedField(1, "u", UnknownType()), "Column u: .* unknown"),
        (NestedField(1, "f", FixedType(0)), r"Column f: .* fixed\[0\]"),
        (NestedField(1, "s", StructType()), "Column s: .* struct without fields"),
        (NestedField(1, "d", IntegerType(), initial_default=7), "Column d: .* default values"),
        (NestedField(1, "d", StringType(), write_default="x"), "Column d: .* default values"),
        (NestedField(1, "l", ListType(2, UnknownType(), False)), "Column l.element: .* unknown"),
        (NestedField(1, "s", StructType(NestedField(2, "x", UnknownType()))), "Column s.x: .* unknown"),
    ],
    ids=str,
)
def test_a_column_that_lance_cannot_keep_is_refused_by_name(column: NestedField, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        to_arrow(Schema(column))


@pytest.mark.parametrize(
    "name",
    ["a.b", "_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"],
)
def test_a_name_that_lance_refuses_is_refused_before(name: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=name):
        write(pa.schema([(name, pa.int64())]), tmp_path)
    with pytest.raises(InvalidInput, match=f"Column {name}: "):
        to_arrow(Schema(NestedField(1, name, LongType())))


def test_a_table_without_columns_has_an_empty_schema() -> None:
    translated = to_iceberg((), 1)

    assert translated.schema.model_dump() == {
        "type": "struct",
        "fields": (),
        "schema-id": 1,
        "identifier-field-ids": [],
    }


def test_a_top_level_name_with_a_dot_from_another_writer_breaks_nothing() -> None:
    struct = Field(1, "a", pa.struct([("b", pa.int8())]), True, {}, (Field(2, "b", pa.int8(), True),))
    translated = to_iceberg((Field(0, "a.b", pa.int8(), True), struct), 1)

    assert [field.name for field in translated.schema.fields] == ["a.b"]
    assert list(translated.omitted) == ["a"]
