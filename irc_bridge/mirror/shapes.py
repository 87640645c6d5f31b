"""The Parquet schema of a fragment: the Iceberg schema of its version, without what it has no values of."""

from collections.abc import Iterator

import pyarrow as pa
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, PrimitiveType, StructType

from irc_bridge.mirror.parquet import ROWS_ONLY
from irc_bridge.mirror.statistics import FIELD_ID
from irc_bridge.translation.schema import ITEM_ID_STEP
from irc_bridge.translation.types import arrow_primitive


def shape(fields: StructType, present: frozenset[int]) -> pa.Schema:
    """`present` are Lance's ids. Every field bears its Iceberg id, those inside lists and maps too."""
    kept = [*_present(fields, present)]
    return arrow_schema(StructType(*kept)) if kept else ROWS_ONLY


def arrow_schema(fields: StructType) -> pa.Schema:
    return pa.schema([_field(field) for field in fields.fields])


def _present(struct: StructType, present: frozenset[int]) -> Iterator[NestedField]:
    for field in struct.fields:
        if isinstance(field.field_type, StructType):
            children = [*_present(field.field_type, present)]
            if children:
                yield _with_type(field, StructType(*children))
        elif not present.isdisjoint(_lance_ids(field)):
            yield field


def _with_type(field: NestedField, field_type: IcebergType) -> NestedField:
    return NestedField(field.field_id, field.name, field_type, required=field.required)


def _lance_ids(field: NestedField) -> Iterator[int]:
    """Of the field and of all inside it. Newer Lance files name the innermost only."""
    yield field.field_id % ITEM_ID_STEP - 1
    match field.field_type:
        case StructType():
            inner = field.field_type.fields
        case ListType():
            inner = (field.field_type.element_field,)
        case MapType():
            inner = (field.field_type.key_field, field.field_type.value_field)
        case _:
            inner = ()
    for each in inner:
        yield from _lance_ids(each)


def _field(field: NestedField) -> pa.Field:
    return pa.field(
        field.name,
        _arrow(field.field_type),
        nullable=not field.required,
        metadata={FIELD_ID: str(field.field_id).encode()},
    )


def _arrow(iceberg: IcebergType) -> pa.DataType:
    match iceberg:
        case StructType():
            return pa.struct([_field(each) for each in iceberg.fields])
        case ListType():
            return pa.list_(_field(iceberg.element_field))
        case MapType():
            return pa.map_(_field(iceberg.key_field), _field(iceberg.value_field))
        case PrimitiveType():
            return arrow_primitive(iceberg)
    raise AssertionError(iceberg)
