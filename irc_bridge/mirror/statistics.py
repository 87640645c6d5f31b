"""The statistics that Iceberg keeps of a Parquet file for pruning, from the file's own footer.
Runs in executors, so it knows pyarrow only."""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

FIELD_ID = b"PARQUET:field_id"
_SHORT = 16
"""So many characters of a text, or bytes, are enough to prune by."""


@dataclass(slots=True)
class Statistics:
    rows: int
    split_offsets: list[int] = field(default_factory=list)
    column_sizes: dict[int, int] = field(default_factory=dict)
    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, bytes] = field(default_factory=dict)
    upper_bounds: dict[int, bytes] = field(default_factory=dict)


class Leaf(NamedTuple):
    """A column of a Parquet file."""

    field_id: int
    type: pa.DataType
    path: str
    repeated: bool
    """Inside a list or a map, where Iceberg keeps no bounds."""


def leaves(schema: pa.Schema) -> list[Leaf]:
    return [leaf for each in schema for leaf in _leaves(each, each.name, False)]


def statistics(footer: pq.FileMetaData, schema: pa.Schema) -> Statistics:
    found = Statistics(footer.num_rows)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    found.split_offsets = sorted(starts_at(group.column(0)) for group in groups if group.num_columns)
    for number, leaf in enumerate(leaves(schema)):
        chunks = [group.column(number) for group in groups]
        found.column_sizes[leaf.field_id] = sum(chunk.total_compressed_size for chunk in chunks)
        found.value_counts[leaf.field_id] = sum(chunk.num_values for chunk in chunks)
        if not leaf.repeated:
            _add_bounds(found, leaf, chunks)
    return found


def _leaves(each: pa.Field, path: str, repeated: bool) -> Iterator[Leaf]:
    type_ = each.type
    if pa.types.is_struct(type_):
        for child in type_:
            yield from _leaves(child, f"{path}.{child.name}", repeated)
    elif pa.types.is_map(type_):
        yield from _leaves(type_.key_field, f"{path}.key_value.key", True)
        yield from _leaves(type_.item_field, f"{path}.key_value.value", True)
    elif pa.types.is_list(type_):
        yield from _leaves(type_.value_field, f"{path}.list.element", True)
    else:
        yield Leaf(int(each.metadata[FIELD_ID]), type_, path, repeated)


def starts_at(chunk: Any) -> int:
    data: int = chunk.data_page_offset
    dictionary: int | None = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    return data if dictionary is None else min(data, dictionary)


def _add_bounds(found: Statistics, leaf: Leaf, chunks: list[Any]) -> None:
    groups = [chunk.statistics for chunk in chunks if chunk.statistics is not None]
    if len(groups) < len(chunks) or not all(each.has_null_count for each in groups):
        return
    found.null_value_counts[leaf.field_id] = sum(each.null_count for each in groups)
    with_values = [each for each in groups if each.num_values]
    if not with_values or not all(each.has_min_max for each in with_values):
        return
    lower = _encoded(leaf.type, min(_ordered(leaf.type, each.min_raw) for each in with_values))
    upper = _encoded(leaf.type, max(_ordered(leaf.type, each.max_raw) for each in with_values))
    if lower is not None and upper is not None:
        if pa.types.is_string(leaf.type) or pa.types.is_binary(leaf.type):
            lower, upper = _shortened(leaf.type, lower, upper)
        found.lower_bounds[leaf.field_id] = lower
        if upper is not None:
            found.upper_bounds[leaf.field_id] = upper


def _ordered(type_: pa.DataType, raw: Any) -> Any:
    return (
        int.from_bytes(raw, "big", signed=True) if pa.types.is_decimal(type_) and isinstance(raw, bytes) else raw
    )


def _encoded(type_: pa.DataType, value: Any) -> bytes | None:
    """As appendix D of the Iceberg specification has it."""
    if isinstance(value, bool):
        return b"\x01" if value else b"\x00"
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return struct.pack("<f" if pa.types.is_float32(type_) else "<d", value)
    if isinstance(value, int):
        if pa.types.is_decimal(type_):
            return value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)
        return struct.pack("<i" if pa.types.is_int32(type_) or pa.types.is_date32(type_) else "<q", value)
    return bytes(value)


def _shortened(type_: pa.DataType, lower: bytes, upper: bytes) -> tuple[bytes, bytes | None]:
    """The upper one is raised at its end, and left out where that cannot be."""
    if pa.types.is_string(type_):
        return lower.decode()[:_SHORT].encode(), _raised_text(upper.decode())
    return lower[:_SHORT], _raised_bytes(upper)


def _raised_text(text: str) -> bytes | None:
    if len(text) <= _SHORT:
        return text.encode()
    kept = text[:_SHORT]
    while kept:
        code = ord(kept[-1]) + 1
        if code < 0x110000:
            return (kept[:-1] + chr(0xE000 if 0xD800 <= code < 0xE000 else code)).encode()
        kept = kept[:-1]
    return None


def _raised_bytes(value: bytes) -> bytes | None:
    if len(value) <= _SHORT:
        return value
    kept = value[:_SHORT].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
