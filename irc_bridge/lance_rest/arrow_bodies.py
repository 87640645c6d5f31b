"""Rows in the body of a request, as an Arrow IPC stream.

The message headers of a stream tell the size of all data in it. A few bytes can claim any size: compressed
buffers, columns of null, a view that shows one text a million times. So the sizes in the headers are added up
first, and a stream that is too large is not read.
"""

import dataclasses
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from irc_bridge.errors import BodyTooLarge, InvalidInput

SCHEMA_BYTES = 8 * 1024 * 1024
_ARRAY_BYTES = 512
"""The memory of an array without its values, about."""
_FREE_ARRAYS = 2048
"""The first arrays are not counted: a small table may have them, whatever the limit is."""
_DICTIONARY, _RECORD_BATCH = 2, 3
_COMPRESSED_V4 = b"ARROW:experimental_compression"
_UNCOMPRESSED = -1
_VIEW_BYTES = 16
_READING = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
"""Lance accepts only buffers that begin at a multiple of the size of their values."""


def rows_of(body: bytes, limit: int) -> pa.Table:
    """The rows of a stream. InvalidInput for a body that is none, BodyTooLarge for rows that take more than
    `limit` bytes in memory."""
    if not body:
        raise InvalidInput("The request body must be an Arrow IPC stream; one without rows makes an empty table")
    try:
        _require_sizes(body, limit)
        with pa.ipc.open_stream(body, options=_READING) as stream:
            rows = stream.read_all()
        rows.validate(full=True)
        _decode_texts(rows.schema)
        for column in rows.columns:
            if any(_is_view(field.type) for field in _fields([pa.field("", column.type)])):
                _require_views(column, limit)
    except (pa.ArrowException, OSError, ValueError, struct.error) as error:
        raise InvalidInput(f"The request body is no Arrow IPC stream: {error}") from None
    return rows


@dataclass
class _Sizes:
    """The memory that the messages of a stream take."""

    limit: int
    buffers: int = 0
    values: int = 0
    arrays: int = 0
    dictionaries: dict[int, int] = dataclasses.field(default_factory=dict)

    def add(self, batch: "_Table", body: pa.Buffer) -> int:
        """Adds a batch. Returns the bytes of its buffers."""
        lengths = [length for length, _ in batch.pairs(1)]
        if min(lengths, default=0) < 0 or batch.number(0, "q") < 0:
            raise ValueError("a length is negative")
        size = sum(_buffer_sizes(batch, body))
        self.values += max(sum(lengths), batch.number(0, "q"))
        self.arrays += 1 + len(lengths)
        self.add_buffers(size)
        return size

    def add_buffers(self, size: int) -> None:
        self.buffers += size
        taken = max(self.buffers, self.values, (self.arrays - _FREE_ARRAYS) * _ARRAY_BYTES)
        if taken > self.limit:
            raise BodyTooLarge(
                f"The rows of the request body take {taken} bytes in memory; this server takes {self.limit}. "
                f"Create the table with the first rows, and append the others with Lance"
            )


def _require_sizes(body: bytes, limit: int) -> None:
    sizes = _Sizes(limit)
    for message in pa.ipc.MessageReader.open_stream(body):
        metadata = message.metadata.to_pybytes()
        if message.type == "schema" and len(metadata) > SCHEMA_BYTES:
            raise BodyTooLarge(f"The schema has {len(metadata)} bytes; this server takes {SCHEMA_BYTES}")
        if _COMPRESSED_V4 in metadata:
            raise ValueError("it is compressed as before Arrow 1.0")
        header = _Table.root(metadata)
        kind, content = header.number(1, "B"), header.table(2)
        if kind == _RECORD_BATCH and content is not None:
            sizes.add(content, message.body)
        elif kind == _DICTIONARY and content is not None and (batch := content.table(1)) is not None:
            size, number = sizes.add(batch, message.body), content.number(0, "q")
            if content.number(2, "?"):
                # a dictionary is copied when entries are added
                size += sizes.dictionaries.get(number, 0)
                sizes.add_buffers(sizes.dictionaries.get(number, 0))
            sizes.dictionaries[number] = size


def _buffer_sizes(batch: "_Table", body: pa.Buffer) -> Iterator[int]:
    """The size of each buffer in memory. A compressed buffer begins with this size."""
    compressed = batch.table(3) is not None
    for offset, length in batch.pairs(2):
        if offset < 0 or length < 0 or offset + length > body.size:
            raise ValueError("a buffer does not lie in its message")
        size = length
        if compressed and length:
            (size,) = struct.unpack("<q", body[offset : offset + 8].to_pybytes())
        if size < 0:
            size = length if size == _UNCOMPRESSED else -1
        if size < 0:
            raise ValueError("the size of a buffer is negative")
        yield size


def _decode_texts(schema: pa.Schema) -> None:
    """UnicodeDecodeError for names that are no UTF-8: Lance's native code would write about them to the log."""
    metadata = [schema.metadata or {}]
    for field in _fields(schema):
        metadata.append(field.metadata or {})
        str(field.name), str(getattr(field.type, "tz", ""))
    for entries in metadata:
        for key, value in entries.items():
            key.decode(), value.decode()


def _fields(fields: Iterable[pa.Field]) -> Iterator[pa.Field]:
    """The fields, and all fields inside of them."""
    for field in fields:
        yield field
        yield from _fields(_children(field.type))


def _children(kind: pa.DataType) -> list[pa.Field]:
    if isinstance(kind, pa.BaseExtensionType):
        return [pa.field("", kind.storage_type)]
    if pa.types.is_dictionary(kind):
        return [pa.field("", kind.value_type)]
    return [kind.field(number) for number in range(kind.num_fields)]


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _require_views(column: pa.ChunkedArray, limit: int) -> None:
    """BodyTooLarge if the texts that views show have more bytes than the limit: Lance copies each text."""
    shown = sum(size for chunk in column.chunks for size in _shown(chunk))
    if shown > limit:
        raise BodyTooLarge(f"The views in the request body show {shown} bytes; this server takes {limit}")


def _shown(array: pa.Array) -> Iterator[int]:
    """The lengths of the texts that the views show, in an array and in arrays inside of it."""
    import numpy as np

    if _is_view(array.type):
        lengths = np.frombuffer(array.buffers()[1] or b"", np.int32)[:: _VIEW_BYTES // 4]
        yield int(lengths.sum(dtype=np.int64))
    for inner in _inside(array):
        yield from _shown(inner)


def _inside(array: pa.Array) -> list[pa.Array]:
    if isinstance(array, pa.ExtensionArray):
        return [array.storage]
    if isinstance(array, pa.DictionaryArray):
        return [array.dictionary]
    if isinstance(array, pa.MapArray):
        return [array.keys, array.items]
    if isinstance(array, pa.StructArray):
        return [array.field(number) for number in range(array.type.num_fields)]
    return [array.values] if pa.types.is_nested(array.type) and hasattr(array, "values") else []


class _Table:
    """A table of a flatbuffer that pyarrow has verified."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position
        (below,) = struct.unpack_from("<i", data, position)
        self._fields = position - below
        (self._size,) = struct.unpack_from("<H", data, self._fields)

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        return cls(data, *struct.unpack_from("<I", data))

    def number(self, field: int, kind: str) -> int:
        at = self._at(field)
        return int(struct.unpack_from(f"<{kind}", self._data, at)[0]) if at else 0

    def table(self, field: int) -> "_Table | None":
        at = self._at(field)
        return _Table(self._data, at + struct.unpack_from("<I", self._data, at)[0]) if at else None

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """The field as a vector of pairs of 64-bit numbers."""
        at = self._at(field)
        if at:
            at += struct.unpack_from("<I", self._data, at)[0]
            (count,) = struct.unpack_from("<I", self._data, at)
            yield from struct.iter_unpack("<qq", self._data[at + 4 : at + 4 + 16 * count])

    def _at(self, field: int) -> int:
        """The position of a field, 0 for a field that is missing."""
        entry = 4 + 2 * field
        if entry >= self._size:
            return 0
        (offset,) = struct.unpack_from("<H", self._data, self._fields + entry)
        return self._position + int(offset) if offset else 0
