"""The type table, column by column, over what pylance really stores."""

from decimal import Context, Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import schema_to_pyarrow

from contract_tests.translation.lance_tables import stored
from contract_tests.translation.strategies import BFLOAT16, BLOB
from irc_bridge.translation.schema import to_iceberg

NANOSECONDS = "digits below the microsecond"

EXACT = [
    (pa.bool_(), "boolean"),
    (pa.int8(), "int"),
    (pa.int16(), "int"),
    (pa.int32(), "int"),
    (pa.int64(), "long"),
    (pa.uint8(), "int"),
    (pa.uint16(), "int"),
    (pa.uint32(), "long"),
    (pa.uint64(), "decimal(20, 0)"),
    (pa.float16(), "float"),
    (pa.float32(), "float"),
    (pa.float64(), "double"),
    (pa.string(), "string"),
    (pa.large_string(), "string"),
    (pa.string_view(), "string"),
    (pa.binary(), "binary"),
    (pa.large_binary(), "binary"),
    (pa.binary_view(), "binary"),
    (pa.binary(0), "binary"),
    (pa.binary(7), "fixed[7]"),
    (pa.date32(), "date"),
    (pa.time32("s"), "time"),
    (pa.time32("ms"), "time"),
    (pa.time64("us"), "time"),
    (pa.timestamp("s"), "timestamp"),
    (pa.timestamp("ms"), "timestamp"),
    (pa.timestamp("us"), "timestamp"),
    (pa.timestamp("us", "UTC"), "timestamptz"),
    (pa.timestamp("ms", "+00:00"), "timestamptz"),
    (pa.decimal128(38, 10), "decimal(38, 10)"),
    (pa.decimal128(5, -2), "decimal(7, 0)"),
    (pa.decimal128(3, 10), "decimal(10, 10)"),
    (pa.decimal256(20, 2), "decimal(20, 2)"),
    (pa.decimal256(38, 38), "decimal(38, 38)"),
    (pa.dictionary(pa.int8(), pa.string()), "string"),
    (pa.dictionary(pa.uint16(), pa.uint32()), "long"),
    (pa.uuid(), "uuid"),
    (pa.json_(), "string"),
    (pa.bool8(), "boolean"),
]

LOSING = [
    (pa.date64(), "date", "time of day"),
    (pa.time64("ns"), "time", NANOSECONDS),
    (pa.timestamp("ns"), "timestamp", NANOSECONDS),
    (pa.timestamp("ns", "UTC"), "timestamptz", NANOSECONDS),
    (pa.timestamp("us", "Europe/Berlin"), "timestamptz", "time zone Europe/Berlin"),
    (pa.timestamp("ns", "+05:00"), "timestamptz", "time zone +05:00"),
    (pa.duration("s"), "long", "number of microseconds"),
    (pa.duration("ns"), "long", NANOSECONDS),
    (pa.opaque(pa.int32(), "word", "somebody"), "int", "extension type arrow.opaque"),
    (pa.list_(pa.float32(), 4), "list<float>", "fixed length 4"),
    (pa.fixed_shape_tensor(pa.float32(), [2, 3]), "list<float>", "extension type arrow.fixed_shape_tensor"),
]

WITHOUT = [
    (pa.field("c", pa.null()), "null"),
    (pa.field("c", pa.decimal256(39, 2)), "39 digits"),
    (pa.field("c", pa.decimal128(38, -1)), "39 digits"),
    (pa.field("c", pa.decimal128(5, 39)), "39 digits"),
    (pa.field("c", pa.dictionary(pa.int8(), pa.null())), "null"),
    (pa.field("c", pa.large_binary(), metadata=BLOB), "blob"),
    (pa.field("c", pa.struct([])), "struct has no field"),
    (pa.field("c", pa.list_(pa.null())), "element: Iceberg has no type for null"),
    (pa.field("c", pa.list_(pa.null(), 3)), "element: Iceberg has no type for null"),
    (pa.field("c", pa.map_(pa.string(), pa.null())), "value: Iceberg has no type for null"),
    (pa.field("c", pa.map_(pa.decimal256(50, 0), pa.int8())), "key: "),
    (pa.field("c", pa.struct([("x", pa.null()), ("y", pa.decimal256(50, 0))])), "x: Iceberg has no type for null"),
]


@pytest.mark.parametrize(("arrow", "iceberg"), EXACT, ids=str)
def test_a_type_that_iceberg_can_hold_is_not_named(arrow: pa.DataType, iceberg: str, tmp_path: Path) -> None:
    translated = to_iceberg((stored(pa.field("c", arrow), tmp_path),), 1)

    assert str(translated.schema.find_type("c")) == iceberg
    assert translated.converted == {}
    assert translated.omitted == {}


@pytest.mark.parametrize(("arrow", "iceberg", "lost"), LOSING, ids=str)
def test_a_conversion_that_loses_something_names_it(
    arrow: pa.DataType, iceberg: str, lost: str, tmp_path: Path
) -> None:
    translated = to_iceberg((stored(pa.field("c", arrow), tmp_path),), 1)

    assert str(translated.schema.find_type("c")) == iceberg
    assert list(translated.converted) == ["c"]
    assert lost in translated.converted["c"]
    assert translated.omitted == {}


@pytest.mark.parametrize(("column", "reason"), WITHOUT, ids=str)
def test_a_type_that_iceberg_has_not_is_left_out_with_the_reason(
    column: pa.Field, reason: str, tmp_path: Path
) -> None:
    translated = to_iceberg((stored(column, tmp_path), stored(pa.field("d", pa.int8()), tmp_path / "d")), 1)

    assert [field.name for field in translated.schema.fields] == ["d"]
    assert list(translated.omitted) == ["c"]
    assert reason in translated.omitted["c"]
    assert translated.converted == {}


def test_a_bfloat16_is_a_float_also_in_a_vector(tmp_path: Path) -> None:
    item = pa.field("item", pa.binary(2), metadata=BFLOAT16)
    number = stored(pa.field("n", pa.binary(2), metadata=BFLOAT16), tmp_path / "n")
    vector = stored(pa.field("v", pa.list_(item, 8)), tmp_path / "v")

    assert str(to_iceberg((number,), 1).schema.find_type("n")) == "float"
    assert str(to_iceberg((vector,), 1).schema.find_type("v")) == "list<float>"


INTEGER_KEPT = {
    pa.timestamp("s"): (pa.int64(), 2**63 // 10**6 - 1, 1),
    pa.timestamp("ms"): (pa.int64(), 2**63 // 10**3 - 1, 1),
    pa.timestamp("us"): (pa.int64(), 2**63 - 1, 1),
    pa.timestamp("us", "UTC"): (pa.int64(), 2**63 - 1, 1),
    pa.timestamp("ms", "+00:00"): (pa.int64(), 2**63 // 10**3 - 1, 1),
    pa.date32(): (pa.int32(), 2**31 - 1, 1),
    pa.time32("s"): (pa.int32(), 86_399, 0),
    pa.time32("ms"): (pa.int32(), 86_399_999, 0),
    pa.time64("us"): (pa.int64(), 86_399_999_999, 0),
}
"""Types kept as an integer: which, the highest value, and whether there are negative ones."""


def values(arrow: pa.DataType) -> st.SearchStrategy[pa.Array]:
    def arrays(items: st.SearchStrategy[object], kept: pa.DataType = arrow) -> st.SearchStrategy[pa.Array]:
        return st.lists(st.none() | items, max_size=4).map(lambda drawn: pa.array(drawn, kept).view(arrow))

    if arrow in INTEGER_KEPT:
        kept, highest, negative = INTEGER_KEPT[arrow]
        return arrays(st.integers(-highest * negative, highest), kept)
    if pa.types.is_boolean(arrow):
        return arrays(st.booleans())
    if pa.types.is_integer(arrow):
        signed = pa.types.is_signed_integer(arrow)
        bits = arrow.bit_width - signed
        return arrays(st.integers(-(2**bits) * signed, 2**bits - 1))
    if pa.types.is_floating(arrow):
        return arrays(st.floats(width=arrow.bit_width, allow_nan=False))
    if pa.types.is_decimal(arrow):
        whole = st.integers(-(10**arrow.precision) + 1, 10**arrow.precision - 1)
        return arrays(whole.map(lambda number: scaled(number, arrow.scale)))
    if pa.types.is_fixed_size_binary(arrow):
        return arrays(st.binary(min_size=arrow.byte_width, max_size=arrow.byte_width))
    if pa.types.is_dictionary(arrow):
        return values(arrow.value_type).map(lambda array: array.dictionary_encode().cast(arrow))
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return arrays(st.text(max_size=4))
    return arrays(st.binary(max_size=4))


def scaled(number: int, scale: int) -> Decimal:
    return Decimal(number).scaleb(-scale, Context(prec=80))


@settings(max_examples=100)
@given(data=st.data())
def test_a_type_that_is_not_named_keeps_every_value(data: st.DataObject) -> None:
    plain = [arrow for arrow, _ in EXACT if not isinstance(arrow, pa.BaseExtensionType)]
    arrow = data.draw(st.sampled_from(plain))
    column = data.draw(values(arrow))
    with TemporaryDirectory() as folder:
        translated = to_iceberg((stored(pa.field("c", arrow), Path(folder)),), 1)

    kept = arrow.value_type if pa.types.is_dictionary(arrow) else arrow
    shown = column.cast(schema_to_pyarrow(translated.schema).field("c").type)
    assert shown.cast(kept).equals(column.cast(kept))
