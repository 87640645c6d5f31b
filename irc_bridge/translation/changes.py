"""The difference between two Iceberg schemas, in steps that Lance can take."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from irc_bridge.catalog.models import Addition, Alteration, FieldPath, SchemaChange
from irc_bridge.errors import InvalidInput
from irc_bridge.translation.schema import to_arrow


def schema_change(old: Schema, new: Schema) -> SchemaChange:
    """Fields are the same where their ids are. InvalidInput for what Lance cannot do."""
    if set(old.identifier_field_ids) != set(new.identifier_field_ids):
        raise InvalidInput("identifier-field-ids: Lance keeps the primary key that a table was made with")
    steps = [*_steps(old.as_struct(), new.as_struct(), (), ())]
    return SchemaChange(
        drop=tuple(step.path for step in steps if isinstance(step, _Drop)),
        alter=tuple(step for step in steps if isinstance(step, Alteration)),
        add=tuple(step for step in steps if isinstance(step, Addition)),
    )


@dataclass(frozen=True, slots=True)
class _Drop:
    path: FieldPath


_Step = _Drop | Alteration | Addition


def _steps(old: StructType, new: StructType, before: FieldPath, after: FieldPath) -> Iterator[_Step]:
    """`before` and `after` are the paths of the struct in the old and the new schema."""
    old_ids = {field.field_id for field in old.fields}
    new_ids = {field.field_id for field in new.fields}
    _require_same_order(old, new, after)
    for field in old.fields:
        if field.field_id not in new_ids:
            yield _Drop((*before, field.name))
    by_id = {field.field_id: field for field in old.fields}
    for field in new.fields:
        if field.field_id in old_ids:
            yield from _kept(by_id[field.field_id], field, before, after)
        else:
            yield Addition(after, _new_field(field, after))


def _kept(old: NestedField, new: NestedField, before: FieldPath, after: FieldPath) -> Iterator[_Step]:
    path = (*after, new.name)
    if new.required and not old.required:
        raise _refused(path, "an optional field cannot become required, it may hold nulls")
    if (new.initial_default, new.write_default) != (old.initial_default, old.write_default):
        raise _refused(path, "Lance keeps no default values")
    doc = new.doc or ""
    alteration = Alteration(
        (*before, old.name),
        name=new.name if new.name != old.name else None,
        optional=old.required and not new.required,
        doc=doc if doc != (old.doc or "") else None,
    )
    if alteration != Alteration(alteration.path):
        yield alteration
    if isinstance(old.field_type, StructType) and isinstance(new.field_type, StructType):
        yield from _steps(old.field_type, new.field_type, (*before, old.name), path)
    elif old.field_type != new.field_type:
        raise _refused(path, _why_not(old.field_type, new.field_type))


def _why_not(old: IcebergType, new: IcebergType) -> str:
    if type(old) is type(new) and isinstance(old, ListType | MapType):
        return "what lies inside a list or a map cannot be changed, make a new column"
    return f"{old} cannot become {new}, because Lance would give it another field id; make a new column"


def _require_same_order(old: StructType, new: StructType, path: FieldPath) -> None:
    kept = {field.field_id for field in new.fields}
    expected = [field.field_id for field in old.fields if field.field_id in kept]
    if [field.field_id for field in new.fields][: len(expected)] != expected:
        where = f"Column {'.'.join(path)}" if path else "The table"
        raise InvalidInput(f"{where}: Lance keeps fields in the order in which they were made, new ones last")


def _new_field(field: NestedField, parent: FieldPath) -> pa.Field:
    if field.required:
        raise _refused((*parent, field.name), "a new field must be optional, there are no values for it")
    return to_arrow(Schema(field)).field(0)


def _refused(path: FieldPath, why: str) -> InvalidInput:
    return InvalidInput(f"Column {'.'.join(path)}: {why}")
