"""A Lance schema as an Iceberg schema, and an Iceberg schema as the Arrow schema of a new Lance table.

Field ids are Lance's own plus one. Items of a fixed-size list have no Lance id: theirs is the id of the
field above plus 100,000,000, so one of column 3 is 100000003 and one a level deeper 200000003.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyiceberg.schema import Schema, assign_fresh_schema_ids, index_by_id, index_by_name
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, PrimitiveType, StructType

from irc_bridge.catalog import models
from irc_bridge.errors import InvalidInput
from irc_bridge.translation import types
from irc_bridge.translation.types import NoIcebergType

ITEM_ID_STEP = 100_000_000
LAST_FREE_ID = 2_147_483_446
"""The ids above are reserved by the Iceberg specification."""

DOC = "doc"
PRIMARY_KEY = "lance-schema:unenforced-primary-key"
PRIMARY_KEY_POSITION = f"{PRIMARY_KEY}:position"

RESERVED_NAMES = {
    "_rowid",
    "_rowaddr",
    "_rowoffset",
    "_row_created_at_version",
    "_row_last_updated_at_version",
}

Reasons = dict[tuple[str, ...], str]
"""By the names from the column down to the nested field."""


@dataclass(frozen=True, slots=True)
class Translated:
    schema: Schema
    omitted: dict[str, str]
    """Columns (dotted paths) that no Iceberg type can hold, with the reason."""
    converted: dict[str, str]
    """Columns whose values or types lose something, and what they lose."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """The Iceberg form of a field and of all fields below it. Paths start below the field; its own path is
    empty."""

    type: IcebergType
    omitted: Reasons
    converted: Reasons


def to_iceberg(schema: models.Schema, schema_id: int) -> Translated:
    columns, omitted, converted = _show_fields(schema)
    return Translated(_with_identifiers(columns, schema, schema_id), _dotted(omitted), _dotted(converted))


def _show_fields(fields: tuple[models.Field, ...]) -> tuple[list[NestedField], Reasons, Reasons]:
    """The columns of a table or the fields of a struct, without those that cannot be shown."""
    kept: list[NestedField] = []
    omitted: Reasons = {}
    converted: Reasons = {}
    names: set[str] = set()
    for field in fields:
        try:
            shown = _show(field)
            nested_field = _nested_field(field, shown.type)
            names |= _new_names(nested_field, names)
        except NoIcebergType as reason:
            omitted[(field.name,)] = str(reason)
            continue
        kept.append(nested_field)
        omitted |= _below(field.name, shown.omitted)
        converted |= _below(field.name, shown.converted)
    return kept, omitted, converted


def _show(field: models.Field) -> _Shown:
    arrow = field.type
    if types.is_blob(field):
        raise NoIcebergType("Iceberg has no blobs, read it with pylance")
    if name := types.extension_name(field):
        return _show_extension(name, field)
    if pa.types.is_dictionary(arrow):
        return _show(replace(field, type=arrow.value_type))
    if pa.types.is_struct(arrow):
        return _show_struct(field)
    if pa.types.is_map(arrow):
        return _show_map(field)
    if pa.types.is_fixed_size_list(arrow):
        return _lossy(_show_list(_fixed_size_item(field)), f"the fixed length {arrow.list_size} is not kept")
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return _show_list(field.children[0])
    mapped = types.primitive(arrow)
    return _Shown(mapped.type, {}, {(): mapped.lost} if mapped.lost else {})


def _show_extension(name: str, field: models.Field) -> _Shown:
    if known := types.extension(name):
        return _Shown(known, {}, {})
    shown = _show(types.without_extension(field))
    return _lossy(shown, f"the extension type {name} is not kept, its stored values are")


def _show_struct(field: models.Field) -> _Shown:
    children, omitted, converted = _show_fields(field.children)
    if not children:
        reasons = "".join(f"; {child}: {reason}" for child, reason in _dotted(omitted).items())
        raise NoIcebergType(f"the struct has no field to show, and engines refuse an empty one{reasons}")
    return _Shown(StructType(*children), omitted, converted)


def _show_map(field: models.Field) -> _Shown:
    key, value = field.children[0].children
    shown_key, shown_value = _show_part("key", key), _show_part("value", value)
    map_type = MapType(
        key_id=_iceberg_id(key),
        key_type=shown_key.type,
        value_id=_iceberg_id(value),
        value_type=shown_value.type,
        value_required=not value.nullable,
    )
    return _Shown(
        map_type,
        _below("key", shown_key.omitted) | _below("value", shown_value.omitted),
        _below("key", shown_key.converted) | _below("value", shown_value.converted),
    )


def _show_list(item: models.Field) -> _Shown:
    shown = _show_part("element", item)
    list_type = ListType(element_id=_iceberg_id(item), element_type=shown.type, element_required=not item.nullable)
    return _Shown(list_type, _below("element", shown.omitted), _below("element", shown.converted))


def _show_part(part: str, field: models.Field) -> _Shown:
    """A list without elements, or a map without keys or values, is nothing: the reason moves up."""
    try:
        return _show(field)
    except NoIcebergType as reason:
        raise NoIcebergType(f"{part}: {reason}") from None


def _fixed_size_item(field: models.Field) -> models.Field:
    item = field.children[0]
    return replace(item, id=_iceberg_id(field) - 1 + ITEM_ID_STEP) if item.id is None else item


def _lossy(shown: _Shown, lost: str) -> _Shown:
    inner = shown.converted.get(())
    return replace(shown, converted={**shown.converted, (): f"{lost}; {inner}" if inner else lost})


def _iceberg_id(field: models.Field) -> int:
    if field.id is None:
        raise NoIcebergType("Lance gives it no field id")
    if field.id >= LAST_FREE_ID:
        raise NoIcebergType("fixed-size lists are nested too deeply for an Iceberg field id")
    return field.id + 1


def _nested_field(field: models.Field, iceberg_type: IcebergType) -> NestedField:
    doc = field.metadata.get(DOC)
    return NestedField(_iceberg_id(field), field.name, iceberg_type, required=not field.nullable, doc=doc)


def _new_names(field: NestedField, taken: set[str]) -> set[str]:
    """The dotted names by which clients find a field and those below it: each may mean one field only."""
    names = set(index_by_name(StructType(field)))
    if both := names & taken:
        raise NoIcebergType(f"the dotted name {min(both)} means another field too, rename one of them")
    return names


def _with_identifiers(columns: list[NestedField], schema: models.Schema, schema_id: int) -> Schema:
    """Lance's primary key becomes the identifier fields where it keeps all of Iceberg's rules for them."""
    keys = [_iceberg_id(field) for field in _primary_key(schema)]
    try:
        return Schema(*columns, schema_id=schema_id, identifier_field_ids=keys)
    except ValueError:
        return Schema(*columns, schema_id=schema_id)


def _primary_key(fields: models.Schema) -> Iterator[models.Field]:
    for field in fields:
        position = field.metadata.get(PRIMARY_KEY_POSITION, "")
        if position.isdigit() or field.metadata.get(PRIMARY_KEY, "").lower() in ("true", "1", "yes"):
            yield field
        yield from _primary_key(field.children)


def _below(name: str, reasons: Reasons) -> Reasons:
    return {(name, *path): reason for path, reason in reasons.items()}


def _dotted(reasons: Reasons) -> dict[str, str]:
    return {".".join(path): reason for path, reason in reasons.items()}


def to_arrow(schema: Schema) -> pa.Schema:
    """The schema of a new Lance table that `to_iceberg` shows as this one again, ids aside."""
    for field in schema.fields:
        if "." in field.name or field.name in RESERVED_NAMES:
            raise InvalidInput(f"Column {field.name}: Lance keeps no column of this name, choose another")
    keys = {field_id: str(position) for position, field_id in enumerate(schema.identifier_field_ids, 1)}
    return pa.schema([_arrow_field(field, (), keys) for field in schema.fields])


def lance_field_ids(schema: Schema) -> tuple[int | None, ...]:
    """The Lance ids with which the fields of a new table keep the ids of `schema`, depth first. A map has one more
    field in Lance than in Iceberg, whose id is None."""
    return tuple(_lance_ids(schema.as_struct()))


def _lance_ids(iceberg: IcebergType) -> Iterator[int | None]:
    match iceberg:
        case StructType():
            fields = iceberg.fields
        case ListType():
            fields = (iceberg.element_field,)
        case MapType():
            yield None
            fields = (iceberg.key_field, iceberg.value_field)
        case _:
            return
    for field in fields:
        yield field.field_id - 1
        yield from _lance_ids(field.field_type)


def with_usable_ids(schema: Schema) -> Schema:
    """The schema itself where its field ids are the numbers from 1 in any order, else one with new ids. Other
    catalogs give new ids too, and clients that number from 0 or with gaps expect it."""
    ids = [field_id for field_id in lance_field_ids(schema) if field_id is not None]
    numbers = set(index_by_id(schema))
    is_whole = numbers == set(range(1, len(numbers) + 1))
    if is_whole and len(set(ids)) == len(ids) and len(numbers) < ITEM_ID_STEP - 1:
        return schema
    return assign_fresh_schema_ids(schema).model_copy(update={"schema_id": schema.schema_id})


def _arrow_field(field: NestedField, parents: tuple[str, ...], keys: Mapping[int, str]) -> pa.Field:
    path = (*parents, field.name)
    if field.initial_default is not None or field.write_default is not None:
        raise _refused(path, "Lance keeps no default values, leave it out")
    metadata = {}
    if field.doc is not None:
        metadata[DOC] = field.doc
    if field.field_id in keys:
        metadata[PRIMARY_KEY_POSITION] = keys[field.field_id]
    arrow = _arrow_type(field.field_type, path, keys)
    return pa.field(field.name, arrow, nullable=not field.required, metadata=metadata or None)


def _arrow_type(iceberg: IcebergType, path: tuple[str, ...], keys: Mapping[int, str]) -> pa.DataType:
    match iceberg:
        case StructType():
            if not iceberg.fields:
                raise _refused(path, "engines refuse a struct without fields, give it one")
            return pa.struct([_arrow_field(field, path, keys) for field in iceberg.fields])
        case ListType():
            return pa.list_(_arrow_field(iceberg.element_field, path, keys))
        case MapType():
            key = _arrow_field(iceberg.key_field, path, keys)
            return pa.map_(key, _arrow_field(iceberg.value_field, path, keys))
    arrow = types.arrow_primitive(iceberg) if isinstance(iceberg, PrimitiveType) else None
    if arrow is None:
        raise _refused(path, f"a Lance table cannot keep the type {iceberg}, choose another")
    return arrow


def _refused(path: tuple[str, ...], why: str) -> InvalidInput:
    return InvalidInput(f"Column {'.'.join(path)}: {why}")
