from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import lance
import pyarrow as pa

from irc_bridge.catalog.models import Field, Schema

_NO_METADATA: Mapping[str, str] = MappingProxyType({})


def require_readable(table: Path) -> None:
    """Raises what Lance raises for a schema that it writes and cannot read: one that is nested 64 levels deep."""
    _ = lance.dataset(table).schema


def read_schema(lance_fields: Sequence[Any], arrow: pa.Schema) -> Schema:
    """Lance knows the ids, Arrow the types: both list the same fields in the same order."""
    return _zipped(lance_fields, arrow)


def _zipped(lance_fields: Sequence[Any], arrow_fields: Iterable[pa.Field]) -> Schema:
    arrow_fields = list(arrow_fields)
    if len(lance_fields) != len(arrow_fields):
        return tuple(_field(None, arrow) for arrow in arrow_fields)
    return tuple(_field(lance, arrow) for lance, arrow in zip(lance_fields, arrow_fields, strict=True))


def _field(lance: Any | None, arrow: pa.Field) -> Field:
    children = lance.children() if lance is not None else []
    return Field(
        id=lance.id() if lance is not None else None,
        name=arrow.name,
        type=arrow.type,
        nullable=arrow.nullable,
        metadata=_metadata(arrow),
        children=_zipped(children, _arrow_children(arrow.type)),
    )


def _arrow_children(type_: pa.DataType) -> list[pa.Field]:
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if pa.types.is_map(type_):
        return [pa.field("entries", pa.struct([type_.key_field, type_.item_field]), nullable=False)]
    if pa.types.is_struct(type_) or pa.types.is_nested(type_):
        return [type_.field(index) for index in range(type_.num_fields)]
    return []


def _metadata(arrow: pa.Field) -> Mapping[str, str]:
    if not arrow.metadata:
        return _NO_METADATA
    return {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in sorted(arrow.metadata.items())
    }
