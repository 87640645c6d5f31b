"""Rows of pylance and of engines in one form, by what the README says becomes of each type."""

import base64
import struct
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pyarrow as pa

Value = Any
Row = tuple[tuple[str, Value], ...]

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def of_lance(rows: pa.Table, left_out: Collection[str] = (), null_is_empty: bool = False) -> list[Row]:
    """In the order in which they lie. `left_out` are columns, and fields in them, that no engine sees."""
    fields = [field for field in rows.schema if field.name not in left_out]
    columns = [(field.name, _of_column(rows[field.name], field, left_out, null_is_empty)) for field in fields]
    return [tuple((name, values[number]) for name, values in columns) for number in range(len(rows))]


def _of_column(
    column: pa.ChunkedArray, field: pa.Field, left_out: Collection[str], null_is_empty: bool
) -> list[Value]:
    type_ = field.type
    if pa.types.is_dictionary(type_):
        return list(column.cast(type_.value_type).to_pylist())
    if getattr(type_, "extension_name", "") == "lance.bfloat16":
        storage = [each for chunk in column.chunks for each in chunk.storage.to_pylist()]
        return [None if each is None else struct.unpack("<f", bytes(2) + each)[0] for each in storage]
    if pa.types.is_date64(type_):
        return [None if each is None else _EPOCH.date() + timedelta(each // 86_400_000) for each in _raw(column)]
    if getattr(type_, "unit", "") == "ns":
        return [_of_nanoseconds(each, type_) for each in _raw(column)]
    return [_of_lance(value, type_, field.name, left_out, null_is_empty) for value in column.to_pylist()]


def _raw(column: pa.ChunkedArray) -> list[int | None]:
    return [each for chunk in column.chunks for each in chunk.view(pa.int64()).to_pylist()]


def _of_nanoseconds(value: int | None, type_: pa.DataType) -> Value:
    if value is None:
        return None
    if pa.types.is_duration(type_):
        return int(value / 1000)
    moment = _EPOCH + value // 1000 * _MICROSECOND
    if pa.types.is_time(type_):
        return moment.time()
    return moment if type_.tz is None else moment.replace(tzinfo=UTC)


def _of_lance(
    value: Value, type_: pa.DataType, path: str, left_out: Collection[str], null_is_empty: bool
) -> Value:
    def inner(value: Value, type_: pa.DataType, name: str) -> Value:
        return _of_lance(value, type_, f"{path}.{name}", left_out, null_is_empty)

    if value is None:
        return [] if null_is_empty and _holds_structs(type_) else None
    if pa.types.is_struct(type_):
        kept = [field for field in type_ if f"{path}.{field.name}" not in left_out]
        return tuple((f.name, inner(value[f.name], f.type, f.name)) for f in kept)
    if pa.types.is_map(type_):
        pairs = [(inner(key, type_.key_type, "key"), inner(each, type_.item_type, "value")) for key, each in value]
        return sorted(pairs)
    if _is_list(type_):
        return [inner(each, type_.value_type, "element") for each in value]
    if pa.types.is_duration(type_):
        return value // _MICROSECOND
    if type_ == pa.uint64():
        return Decimal(value).normalize()
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return _plain(value, type_)


def _plain(value: Value, type_: pa.DataType) -> Value:
    if isinstance(value, Decimal):
        return value.normalize()
    if pa.types.is_floating(type_):
        return "NaN" if value != value else float(value) + 0.0
    return value


def _holds_structs(type_: pa.DataType) -> bool:
    inner = type_.item_type if pa.types.is_map(type_) else type_.value_type if _is_list(type_) else type_
    return inner is not type_ and bool(pa.types.is_struct(inner))


def _is_list(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_kind(type_) for is_kind in kinds)


def of_arrow(rows: pa.Table, lance: pa.Schema) -> list[Row]:
    """Of an engine that answers in Arrow. The Lance schema tells what a value means."""
    read = {field.name: partial(_of_arrow, type_=field.type) for field in lance}
    columns = [(name, [read[name](value) for value in rows[name].to_pylist()]) for name in rows.column_names]
    return [tuple((name, values[number]) for name, values in columns) for number in range(len(rows))]


def _of_arrow(value: Value, type_: pa.DataType) -> Value:
    if value is None:
        return None
    if pa.types.is_struct(type_):
        return tuple((name, _of_arrow(each, type_.field(name).type)) for name, each in value.items())
    if pa.types.is_map(type_):
        return sorted((_of_arrow(key, type_.key_type), _of_arrow(each, type_.item_type)) for key, each in value)
    if _is_list(type_):
        return [_of_arrow(each, type_.value_type) for each in value]
    if type_ == pa.uuid():
        return UUID(value) if isinstance(value, str) else UUID(bytes=value) if isinstance(value, bytes) else value
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value.normalize() if isinstance(value, Decimal) else value


def of_json(names: Sequence[str], rows: Sequence[Sequence[Value]], lance: pa.Schema) -> list[Row]:
    """Of an engine that answers in JSON, Trino. Its names are in small letters."""
    fields = {field.name.lower(): field for field in lance}
    read = [(fields[name].name, partial(_of_json, type_=fields[name].type)) for name in names]
    return [tuple((name, of(each)) for (name, of), each in zip(read, row, strict=True)) for row in rows]


def _of_json(value: Value, type_: pa.DataType) -> Value:
    if value is None:
        return None
    if pa.types.is_dictionary(type_):
        return _of_json(value, type_.value_type)
    if pa.types.is_struct(type_):
        fields = [field for field in type_ if not pa.types.is_null(field.type)]
        return tuple((f.name, _of_json(each, f.type)) for f, each in zip(fields, value, strict=True))
    if pa.types.is_map(type_):
        return sorted(
            (_of_json(key, type_.key_type), _of_json(each, type_.item_type)) for key, each in value.items()
        )
    if _is_list(type_):
        return [_of_json(each, type_.value_type) for each in value]
    return next((of(value) for is_kind, of in _JSON if is_kind(type_)), value)


def _is_bytes(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(is_kind(type_) for is_kind in kinds)


def _of_single(value: Value) -> Value:
    """Trino says the shortest text for it."""
    read = pa.scalar(float(value), pa.float32()).as_py()
    return "NaN" if read != read else read + 0.0


def _of_double(value: Value) -> Value:
    return "NaN" if value == "NaN" else float(value) + 0.0


def _moment(text: str) -> datetime:
    zoned = text.endswith(" UTC")
    moment = datetime.fromisoformat(text.removesuffix(" UTC"))
    return moment.replace(tzinfo=UTC) if zoned else moment


_JSON: list[tuple[Callable[[pa.DataType], bool], Callable[[Value], Value]]] = [
    (lambda type_: type_ == pa.uuid(), UUID),
    (_is_bytes, base64.b64decode),
    (lambda type_: type_ == pa.uint64() or pa.types.is_decimal(type_), lambda value: Decimal(value).normalize()),
    (lambda type_: type_ == pa.float64(), _of_double),
    (lambda type_: pa.types.is_floating(type_) or "bfloat16" in str(type_), _of_single),
    (pa.types.is_date, date.fromisoformat),
    (pa.types.is_time, time.fromisoformat),
    (pa.types.is_timestamp, _moment),
]


def require_same(found: Sequence[Row], expected: Sequence[Row]) -> None:
    """In any order."""
    pairs = zip(sorted(found, key=repr), sorted(expected, key=repr), strict=True)
    wrong = [(one, other) for row in pairs for one, other in zip(*row, strict=True) if one != other]
    assert not wrong, wrong[:5]
