"""The type table: Arrow types as Lance stores them, and Iceberg types.

Exact where Iceberg has the type, widened where a wider one holds every value. A conversion that loses
something says what; a type that nothing can hold has no entry.
"""

from dataclasses import dataclass, replace

import pyarrow as pa
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from irc_bridge.catalog.models import Field

MAX_DECIMAL_DIGITS = 38
NANOSECONDS_CUT = "digits below the microsecond are cut off"

_EXTENSION_NAME = "ARROW:extension:name"
_BLOB = "lance-encoding:blob"
_BLOB_EXTENSION = "lance.blob.v2"
_UTC = {"UTC", "Etc/UTC", "+00:00", "Z"}


class NoIcebergType(Exception):
    """A Lance column that no Iceberg type can hold, with the reason."""


@dataclass(frozen=True, slots=True)
class Mapped:
    type: PrimitiveType
    lost: str | None = None


_PRIMITIVES: dict[pa.DataType, Mapped] = {
    pa.bool_(): Mapped(BooleanType()),
    pa.int8(): Mapped(IntegerType()),
    pa.int16(): Mapped(IntegerType()),
    pa.int32(): Mapped(IntegerType()),
    pa.int64(): Mapped(LongType()),
    pa.uint8(): Mapped(IntegerType()),
    pa.uint16(): Mapped(IntegerType()),
    pa.uint32(): Mapped(LongType()),
    pa.uint64(): Mapped(DecimalType(20, 0)),
    pa.float16(): Mapped(FloatType()),
    pa.float32(): Mapped(FloatType()),
    pa.float64(): Mapped(DoubleType()),
    pa.string(): Mapped(StringType()),
    pa.large_string(): Mapped(StringType()),
    pa.string_view(): Mapped(StringType()),
    pa.binary(): Mapped(BinaryType()),
    pa.large_binary(): Mapped(BinaryType()),
    pa.binary_view(): Mapped(BinaryType()),
    pa.date32(): Mapped(DateType()),
    pa.date64(): Mapped(DateType(), "the time of day is cut off"),
    pa.time32("s"): Mapped(TimeType()),
    pa.time32("ms"): Mapped(TimeType()),
    pa.time64("us"): Mapped(TimeType()),
    pa.time64("ns"): Mapped(TimeType(), NANOSECONDS_CUT),
    pa.timestamp("s"): Mapped(TimestampType()),
    pa.timestamp("ms"): Mapped(TimestampType()),
    pa.timestamp("us"): Mapped(TimestampType()),
    pa.timestamp("ns"): Mapped(TimestampType(), NANOSECONDS_CUT),
    pa.duration("s"): Mapped(LongType(), "a duration becomes its number of microseconds"),
    pa.duration("ms"): Mapped(LongType(), "a duration becomes its number of microseconds"),
    pa.duration("us"): Mapped(LongType(), "a duration becomes its number of microseconds"),
    pa.duration("ns"): Mapped(LongType(), f"a duration becomes its number of microseconds; {NANOSECONDS_CUT}"),
}

_EXTENSIONS: dict[str, PrimitiveType] = {
    "arrow.uuid": UUIDType(),
    "arrow.json": StringType(),
    "lance.json": StringType(),
    "lance.bfloat16": FloatType(),
    "arrow.bool8": BooleanType(),
}

_ARROW: dict[PrimitiveType, pa.DataType] = {
    BooleanType(): pa.bool_(),
    IntegerType(): pa.int32(),
    LongType(): pa.int64(),
    FloatType(): pa.float32(),
    DoubleType(): pa.float64(),
    DateType(): pa.date32(),
    TimeType(): pa.time64("us"),
    TimestampType(): pa.timestamp("us"),
    TimestamptzType(): pa.timestamp("us", "UTC"),
    StringType(): pa.string(),
    BinaryType(): pa.binary(),
    UUIDType(): pa.uuid(),
}


def extension_name(field: Field) -> str | None:
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    return field.metadata.get(_EXTENSION_NAME)


def extension(name: str) -> PrimitiveType | None:
    """The Iceberg type of a known extension type; None where only its storage can be shown."""
    return _EXTENSIONS.get(name)


def without_extension(field: Field) -> Field:
    """The field with the extension type replaced by its storage type."""
    storage = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    metadata = {key: value for key, value in field.metadata.items() if key != _EXTENSION_NAME}
    return replace(field, type=storage, metadata=metadata)


def is_blob(field: Field) -> bool:
    return _BLOB in field.metadata or extension_name(field) == _BLOB_EXTENSION


def primitive(arrow: pa.DataType) -> Mapped:
    if mapped := _PRIMITIVES.get(arrow):
        return mapped
    if pa.types.is_decimal(arrow):
        return Mapped(_decimal(arrow))
    if pa.types.is_timestamp(arrow):
        return _zoned_timestamp(arrow)
    if pa.types.is_fixed_size_binary(arrow):
        # Parquet and some engines have no values of fixed length 0.
        return Mapped(FixedType(arrow.byte_width) if arrow.byte_width else BinaryType())
    raise NoIcebergType(f"Iceberg has no type for {arrow}")


def arrow_primitive(iceberg: PrimitiveType) -> pa.DataType | None:
    """The Arrow type that `primitive` turns back into the same Iceberg type; None where Lance keeps none."""
    if isinstance(iceberg, DecimalType):
        return pa.decimal128(iceberg.precision, iceberg.scale)
    if isinstance(iceberg, FixedType):
        return pa.binary(iceberg.root) if iceberg.root else None
    return _ARROW.get(iceberg)


def _decimal(arrow: pa.DataType) -> DecimalType:
    """The narrowest Iceberg decimal for every value: Iceberg's scale lies between 0 and the precision."""
    scale = max(arrow.scale, 0)
    precision = max(arrow.precision - min(arrow.scale, 0), scale)
    if precision > MAX_DECIMAL_DIGITS:
        raise NoIcebergType(f"{arrow} needs {precision} digits and Iceberg's decimal has {MAX_DECIMAL_DIGITS}")
    return DecimalType(precision, scale)


def _zoned_timestamp(arrow: pa.DataType) -> Mapped:
    lost = []
    if arrow.unit == "ns":
        lost.append(NANOSECONDS_CUT)
    if arrow.tz not in _UTC:
        lost.append(f"the time zone {arrow.tz} is not kept, the instant is")
    return Mapped(TimestamptzType(), "; ".join(lost) or None)
