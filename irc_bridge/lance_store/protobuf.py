"""Protobuf messages, field by field: as much of it as manifests need."""

from collections.abc import Iterator

BYTES = 2
_NUMBER, _EIGHT_BYTES, _FOUR_BYTES = 0, 1, 5
"""The wire types of protobuf."""


def fields_of(
    data: bytes, position: int = 0, end: int | None = None, last_of: int | None = None
) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message by their numbers. ValueError when it is none. Of those that follow one
    another with the number `last_of` only the last: a large table has many thousand fragments."""
    key_of_last = -1 if last_of is None else last_of << 3 | BYTES
    end = len(data) if end is None else end
    while position < end:
        if data[position] == key_of_last:
            position = _last_alike(data, position, end)
        key, position = read_varint(data, position, end)
        kind = key & 7
        if kind == _NUMBER:
            value, position = read_varint(data, position, end)
            yield key >> 3, value
        else:
            content, position = _content_of(data, kind, position, end)
            yield key >> 3, content


def contents_of(data: bytes, number: int, position: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The contents of the fields with this number, below 16, in a message that may have many thousands of them."""
    key = number << 3 | BYTES
    end = len(data) if end is None else end
    while position < end:
        if data[position] != key:
            other, position = read_varint(data, position, end)
            content, position = _content_of(data, other & 7, position, end)
            if other == key:  # a key may be written with more bytes than it needs
                yield content
            continue
        length, begin = read_varint(data, position + 1, end)
        position = begin + length
        if position > end:
            raise ValueError("its message cannot be read")
        yield data[begin:position]


def entries_of(data: bytes, position: int, end: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, bytes and encoding of each field of a message. A field that holds a number has no bytes."""
    while position < end:
        start = position
        key, position = read_varint(data, position, end)
        content, position = _content_of(data, key & 7, position, end)
        yield key >> 3, content, data[start:position]


def _content_of(data: bytes, kind: int, position: int, end: int) -> tuple[bytes, int]:
    if kind == _NUMBER:
        return b"", read_varint(data, position, end)[1]
    if kind == BYTES:
        length, position = read_varint(data, position, end)
    elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
        length = 8 if kind == _EIGHT_BYTES else 4
    else:
        raise ValueError("its message cannot be read")
    if position + length > end:
        raise ValueError("its message cannot be read")
    return data[position : position + length], position + length


def _last_alike(data: bytes, position: int, end: int) -> int:
    """Where the last of the fields begins that follow one another with the same key of one byte."""
    key = data[position]
    while True:
        last, position = position, position + 1
        length = data[position]
        if length < 128:
            position += 1 + length
        else:
            length, position = read_varint(data, position, end)
            position += length
        if position >= end or data[position] != key:
            return last


def number_in(message: bytes, field: int) -> int:
    value = dict(fields_of(message)).get(field, 0)
    return value if isinstance(value, int) else 0


def text_of(value: int | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    number = shift = 0
    while position < end and shift < 64:
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
        shift += 7
    raise ValueError("its message cannot be read")


def block(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def tagged(field: int, number: int) -> bytes:
    return varint(field << 3 | _NUMBER) + varint(number)


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
