"""Arrow schemas over everything that Lance can store, Iceberg schemas over everything that a client can ask
for, and Lance tables as plain values."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from irc_bridge.catalog.models import Field, TableInfo, TableVersion

UNITS = ["s", "ms", "us", "ns"]
ZONES = ["UTC", "+00:00", "Europe/Berlin", "+05:00", "nowhere"]
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXT_OR_BYTES = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
IN_DICTIONARIES = [*INTEGERS, *TEXT_OR_BYTES, pa.bool_(), pa.float16(), pa.float32(), pa.float64(), pa.null()]
EXTENSIONS = [pa.uuid(), pa.json_(), pa.bool8(), pa.fixed_shape_tensor(pa.float32(), [2, 2])]
EXTENSIONS += [pa.opaque(pa.int32(), "word", "somebody")]
BFLOAT16 = {"ARROW:extension:name": "lance.bfloat16"}
BLOB = {"lance-encoding:blob": "true"}

simple_types = st.one_of(
    st.sampled_from([*IN_DICTIONARIES, pa.string_view(), pa.binary_view(), pa.date32(), pa.date64()]),
    st.sampled_from([pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]),
    st.builds(pa.timestamp, st.sampled_from(UNITS), st.none() | st.sampled_from(ZONES)),
    st.builds(pa.duration, st.sampled_from(UNITS)),
    st.builds(pa.decimal128, st.integers(1, 38), st.integers(-5, 45)),
    st.builds(pa.decimal256, st.integers(1, 76), st.integers(-5, 45)),
    st.builds(pa.binary, st.integers(0, 20)),
)
dictionaries = st.builds(pa.dictionary, st.sampled_from(INTEGERS), st.sampled_from(IN_DICTIONARIES))

# Arrow hands names to Lance as C strings, which end at the first zero.
any_name = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
clear_name = st.text("abcXYZ_1é ", min_size=1, max_size=5)
nested_name = st.sampled_from(["a", "b", "a.b", "b.element", "key"]) | any_name
column_name = any_name.filter(lambda name: "." not in name)
docs = st.none() | st.text(max_size=5)


@st.composite
def leaves(draw: st.DrawFn, name: str) -> pa.Field:
    nullable, doc = draw(st.booleans()), draw(docs)
    metadata = {} if doc is None else {"doc": doc}
    kind = draw(st.sampled_from(["simple"] * 6 + ["dictionary", "extension", "bfloat16", "blob"]))
    if kind == "bfloat16":
        return pa.field(name, pa.binary(2), nullable, metadata | BFLOAT16)
    if kind == "blob":
        return pa.field(name, pa.large_binary(), nullable, metadata | BLOB)
    types = {"simple": simple_types, "dictionary": dictionaries, "extension": st.sampled_from(EXTENSIONS)}
    arrow = draw(types[kind])
    return pa.field(name, arrow, nullable or pa.types.is_null(arrow), metadata or None)


@st.composite
def fixed_size_lists(draw: st.DrawFn) -> pa.DataType:
    item = draw(
        simple_types
        | st.builds(pa.list_, simple_types, st.integers(1, 9))
        | st.lists(leaves("f"), max_size=2).map(pa.struct)
    )
    return pa.list_(pa.field("item", item), draw(st.integers(1, 9)))


@st.composite
def arrow_fields(draw: st.DrawFn, name: str, depth: int) -> pa.Field:
    kinds = ["leaf", "fixed"] + ["list", "large_list", "struct", "map"] * (depth > 0)
    kind = draw(st.sampled_from(kinds))
    if kind == "leaf":
        return draw(leaves(name))

    def below(name: str) -> pa.Field:
        return draw(arrow_fields(name, depth - 1))

    match kind:
        case "fixed":
            arrow = draw(fixed_size_lists())
        case "list":
            arrow = pa.list_(below("item"))
        case "large_list":
            arrow = pa.large_list(below("item"))
        case "struct":
            arrow = pa.struct([below(name) for name in draw(st.lists(nested_name, max_size=3))])
        case "map":
            key = draw(arrow_fields("key", depth - 1).filter(lambda field: not pa.types.is_null(field.type)))
            arrow = pa.map_(key.with_nullable(False), below("value"))
    return pa.field(name, arrow, draw(st.booleans()))


@st.composite
def arrow_schemas(draw: st.DrawFn) -> pa.Schema:
    names = draw(st.lists(column_name, max_size=4, unique=True))
    return pa.schema([draw(arrow_fields(name, depth=3)) for name in names])


primitives: st.SearchStrategy[PrimitiveType] = st.one_of(
    st.sampled_from(
        [
            BooleanType(),
            IntegerType(),
            LongType(),
            FloatType(),
            DoubleType(),
            DateType(),
            TimeType(),
            TimestampType(),
            TimestamptzType(),
            StringType(),
            BinaryType(),
            UUIDType(),
        ]
    ),
    st.integers(1, 38).flatmap(lambda digits: st.builds(DecimalType, st.just(digits), st.integers(0, digits))),
    st.builds(FixedType, st.integers(1, 20)),
)


class _Ids:
    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last


@st.composite
def _iceberg_types(draw: st.DrawFn, ids: _Ids, depth: int) -> IcebergType:
    match draw(st.sampled_from(["primitive"] + ["list", "map", "struct"] * (depth > 0))):
        case "list":
            inner = draw(_iceberg_types(ids, depth - 1))
            return ListType(element_id=ids.next(), element_type=inner, element_required=draw(st.booleans()))
        case "map":
            key, value = draw(_iceberg_types(ids, depth - 1)), draw(_iceberg_types(ids, depth - 1))
            return MapType(ids.next(), key, ids.next(), value, draw(st.booleans()))
        case "struct":
            return StructType(*draw(_nested_fields(ids, depth - 1, min_size=1)))
    return draw(primitives)


@st.composite
def _nested_fields(draw: st.DrawFn, ids: _Ids, depth: int, min_size: int) -> list[NestedField]:
    names = draw(st.lists(clear_name, min_size=min_size, max_size=3, unique=True))
    return [
        NestedField(ids.next(), name, draw(_iceberg_types(ids, depth)), draw(st.booleans()), draw(docs))
        for name in names
    ]


@st.composite
def iceberg_schemas(draw: st.DrawFn) -> Schema:
    columns = draw(_nested_fields(_Ids(), depth=3, min_size=0))
    allowed = [
        column.field_id
        for column in columns
        if column.required
        and column.field_type.is_primitive
        and column.field_type not in (FloatType(), DoubleType())
    ]
    identifiers = draw(st.lists(st.sampled_from(allowed), unique=True)) if allowed else []
    return Schema(*columns, identifier_field_ids=identifiers)


NOTHING: Mapping[str, Any] = MappingProxyType({})
COLUMN = (Field(0, "a", pa.int64(), True),)
OPERATIONS = ["Append", "Delete", "Overwrite", "Update", "Merge", "Rewrite", "CreateIndex", "Unknown", ""]


def version(number: int, timestamp_ms: int = 0, operation: str = "Append", **summary: str) -> TableVersion:
    manifest = f"file:///data/t.lance/_versions/{number}.manifest"
    return TableVersion(number, timestamp_ms, COLUMN, operation, summary, manifest, max_field_id=0)


def table(
    *versions: TableVersion, tags: Mapping[str, int] = NOTHING, properties: Mapping[str, str] = NOTHING
) -> TableInfo:
    updated_ms = versions[-1].timestamp_ms if versions else 1_700_000_000_000
    return TableInfo("file:///data/t.lance", properties, versions, tags, updated_ms, token=None)


@st.composite
def table_infos(draw: st.DrawFn) -> TableInfo:
    numbers = sorted(draw(st.sets(st.integers(1, 10**6), min_size=1, max_size=8)))
    times = st.integers(0, 2_000)  # few moments, so that clocks stand still and go back often
    versions = [version(n, draw(times), draw(st.sampled_from(OPERATIONS))) for n in numbers]
    tags = draw(
        st.dictionaries(st.sampled_from(["main", "v1", "old", "best"]), st.sampled_from([*numbers, 10**7]))
    )
    return table(*versions, tags=tags)
