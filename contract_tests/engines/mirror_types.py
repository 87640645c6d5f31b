"""Values of every type that Lance can store and Iceberg has one for. They rise with the row's number."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
from lance.arrow import bfloat16_array

_YEARS = timedelta(days=3653)


class Column(NamedTuple):
    type: pa.DataType | None
    """None for the half floats that pyarrow has no type for."""
    value: Callable[[int], Any]


def _numbered(type_: pa.DataType, step: int, start: int = 0) -> Column:
    return Column(type_, lambda number: start + number * step)


def _moment(number: int) -> datetime:
    """Some before 1970, with all digits down to the microsecond."""
    return datetime(1940, 2, 29, 23, 59, 58, 123457) + number * _YEARS


def _after_1970_ns(unit: int) -> Callable[[int], int]:
    return lambda number: ((number - 5) * 10**9 * 86_400 * 365 + 123_456_789) // unit


TYPES: Mapping[str, Column] = {
    "flag": Column(pa.bool_(), lambda number: number >= 8),
    "flag8": Column(pa.bool8(), lambda number: int(number >= 4)),
    "int8": _numbered(pa.int8(), 10, -60),
    "int16": _numbered(pa.int16(), 4000, -24000),
    "int32": _numbered(pa.int32(), 3 * 10**8, -(2**31)),
    "int64": _numbered(pa.int64(), 10**18, -(2**63)),
    "uint8": _numbered(pa.uint8(), 18),
    "uint16": _numbered(pa.uint16(), 5000),
    "uint32": _numbered(pa.uint32(), 330_000_000),
    "uint64": _numbered(pa.uint64(), 14 * 10**17),
    "float16": Column(pa.float16(), lambda number: np.float16((number - 6) * 1.5)),
    "float32": Column(pa.float32(), lambda number: (number - 6) * 0.1),
    "float64": Column(pa.float64(), lambda number: (number - 6) * 1e299),
    "bfloat16": Column(None, lambda number: (number - 6) * 0.5),
    "decimal5": Column(pa.decimal128(5, 2), lambda number: Decimal(number * 7 - 50) / 100),
    "decimal18": Column(pa.decimal128(18, 4), lambda number: Decimal((number - 6) * 10**16) / 10**4),
    "decimal38": Column(pa.decimal128(38, 10), lambda number: Decimal((number - 6) * 10**26)),
    "decimal_left": Column(pa.decimal128(5, -2), lambda number: Decimal((number - 6) * 100)),
    "decimal256": Column(pa.decimal256(20, 3), lambda number: Decimal(number - 6) / 8),
    "date32": Column(pa.date32(), lambda number: date(1900 + number * 20, 1, 31)),
    "date64": Column(pa.date64(), lambda number: (number - 6) * 86_400_000 * 400 + 3_600_000),
    "timestamp_s": Column(pa.timestamp("s"), lambda number: _moment(number).replace(microsecond=0)),
    "timestamp_ms": Column(pa.timestamp("ms"), lambda number: _moment(number).replace(microsecond=123000)),
    "timestamp_us": Column(pa.timestamp("us"), _moment),
    "timestamp_ns": Column(pa.timestamp("ns"), _after_1970_ns(1)),
    "instant_us": Column(pa.timestamp("us", "UTC"), lambda number: _moment(number).replace(tzinfo=UTC)),
    "instant_ms": Column(pa.timestamp("ms", "Europe/Berlin"), _after_1970_ns(10**6)),
    "instant_ns": Column(pa.timestamp("ns", "+00:00"), _after_1970_ns(1)),
    "duration_s": Column(pa.duration("s"), lambda number: timedelta(days=number - 6)),
    "duration_ms": Column(pa.duration("ms"), lambda number: timedelta(milliseconds=number - 6)),
    "duration_us": Column(pa.duration("us"), lambda number: timedelta(microseconds=number - 6)),
    "duration_ns": Column(pa.duration("ns"), lambda number: (number - 6) * 1500),
    "uuid": Column(pa.uuid(), lambda number: UUID(int=number * (2**128 // 14) + 1).bytes),
    "json": Column(pa.json_(), lambda number: f'{{"number":{number + 10}}}'),
    "string": Column(pa.string(), lambda number: f"row {number:02}"),
    "large_string": Column(pa.large_string(), lambda number: chr(0xE0 + number) * (number + 10)),
    "string_view": Column(pa.string_view(), lambda number: f"a long text before the number {number:02}"),
    "binary": Column(pa.binary(), lambda number: bytes([number * 18, 0, 255])),
    "large_binary": Column(pa.large_binary(), lambda number: bytes([number * 18]) * 40),
    "binary_view": Column(pa.binary_view(), lambda number: bytes([number * 18])),
    "fixed": Column(pa.binary(3), lambda number: bytes([number * 18, 1, 2])),
    "fixed_long": Column(pa.binary(20), lambda number: bytes([number * 18]) * 20),
    "fixed_none": Column(pa.binary(0), lambda number: b""),
    "dictionary": Column(pa.dictionary(pa.int16(), pa.string()), lambda number: f"kind {number // 4}"),
}
TIMES: Mapping[str, Column] = {
    "time_s": Column(pa.time32("s"), lambda number: time(number, 59, 58)),
    "time_ms": Column(pa.time32("ms"), lambda number: time(number, 59, 58, 123000)),
    "time_us": Column(pa.time64("us"), lambda number: time(number, 59, 58, 123456)),
    "time_ns": Column(pa.time64("ns"), lambda number: number * 3600 * 10**9 + 123_456_789),
}
NESTED = pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))])
_POINT = pa.struct([("x", pa.int32()), ("name", pa.string())])
_PLACE = pa.struct(
    [("at", pa.string()), ("points", pa.list_(_POINT)), ("inner", pa.struct([("deep", pa.float32())]))]
)


def rows_of(columns: Mapping[str, Column], numbers: Iterable[int]) -> pa.Table:
    numbers = [*numbers]
    return pa.table({"id": numbers, **{name: _array(column, numbers) for name, column in columns.items()}})


def _array(column: Column, numbers: list[int]) -> pa.Array:
    values = [None if number % 4 == 3 else column.value(number) for number in numbers]
    if column.type is None:
        return bfloat16_array(values)
    if pa.types.is_date64(column.type):
        return pa.array(values, pa.int64()).view(column.type)
    if isinstance(column.type, pa.BaseExtensionType):
        return column.type.wrap_array(pa.array(values, column.type.storage_type))
    return pa.array(values, column.type)


def nested_rows(numbers: Iterable[int], whole: bool) -> pa.Table:
    """`whole`: with maps and null structs, which older Lance files do not keep."""
    numbers = [*numbers]
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "place": pa.array([_place(number, whole) for number in numbers], _PLACE),
        "places": pa.array([_places(number, whole) for number in numbers], pa.list_(_PLACE)),
        "large": pa.array([None if n % 3 == 1 else [n] * (n % 4) for n in numbers], pa.large_list(pa.int16())),
    }
    if whole:
        columns["counts"] = pa.array(
            [_map(number, number) for number in numbers], pa.map_(pa.string(), pa.int64())
        )
        points = [_map(number, {"x": number, "name": None}) for number in numbers]
        columns["points"] = pa.array(points, pa.map_(pa.string(), _POINT))
    return pa.table(columns)


def _place(number: int, nulls: bool) -> dict[str, Any] | None:
    if nulls and number % 5 == 4:
        return None
    points = [{"x": each, "name": None if each % 2 else f"p{each}"} for each in range(number % 4)]
    if nulls and points:
        points[0] = None  # type: ignore[call-overload]
    inner = None if nulls and number % 3 == 0 else {"deep": number / 4}
    return {"at": f"at {number}", "points": None if number % 4 == 3 else points, "inner": inner}


def _places(number: int, nulls: bool) -> list[dict[str, Any] | None] | None:
    return None if number % 6 == 5 else [_place(number + each, nulls) for each in range(number % 3)]


def _map(number: int, value: Any) -> list[tuple[str, Any]] | None:
    return (
        None if number % 4 == 2 else [(f"key {each}", None if each == 1 else value) for each in range(number % 3)]
    )
