"""Lance schemas as the protocol's JsonArrowSchema."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from irc_bridge.catalog.models import Schema

NAMES = {
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
    "string": "utf8",
    "large_string": "large_utf8",
}
"""The types that have another name in the protocol than in pyarrow."""


def json_schema(schema: Schema, metadata: Mapping[str, str]) -> dict[str, Any]:
    fields = [_field(field.name, field.type, field.nullable, field.metadata) for field in schema]
    return {"fields": fields, **({"metadata": dict(metadata)} if metadata else {})}


def _field(name: str, kind: pa.DataType, nullable: bool, metadata: Mapping[str, str]) -> dict[str, Any]:
    field = {"name": name, "nullable": nullable, "type": _type(kind)}
    return {**field, "metadata": dict(metadata)} if metadata else field


def _type(kind: pa.DataType) -> dict[str, Any]:
    if isinstance(kind, pa.BaseExtensionType):
        return _type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    if pa.types.is_map(kind):
        entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
        return {"type": "map", "fields": _fields([entries])}
    if pa.types.is_decimal(kind):
        # precision and scale in one number, as Lance's own namespaces write them
        return {"type": f"decimal{kind.bit_width}", "length": kind.precision * 1000 + kind.scale}
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed_size_binary", "length": kind.byte_width}
    if pa.types.is_nested(kind):
        nested = {
            "type": str(kind).partition("<")[0],
            "fields": _fields(kind.field(n) for n in range(kind.num_fields)),
        }
        return {**nested, "length": kind.list_size} if pa.types.is_fixed_size_list(kind) else nested
    name = str(kind).partition("[")[0]
    return {"type": NAMES.get(name, name)}


def _fields(fields: Iterable[pa.Field]) -> list[dict[str, Any]]:
    return [_field(field.name, field.type, field.nullable, _texts(field.metadata)) for field in fields]


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in (metadata or {}).items()}
