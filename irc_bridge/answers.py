"""Reads the answers of other servers safely: inflated up to a limit, parsed to plain JSON."""

import json
import math
import re
import zlib
from collections.abc import Iterator
from typing import Any

PIECE = 1024 * 1024
"""So much is inflated at once, in bytes."""
LARGE = 64 * 1024
"""A larger answer is not inflated or parsed on the event loop."""
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_ENCODINGS = ("gzip", "x-gzip", "deflate")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LARGEST_NUMBER = 2**63


class Unreadable(Exception):
    """The answer is not what it says it is, or it is too large. The text goes on: the answer ..."""


class Inflater:
    """Takes a compressed answer in pieces and gives it in pieces of at most PIECE bytes."""

    def __init__(self, encoding: str, limit: int) -> None:
        """Unreadable for an encoding that nobody asked for. `limit` is that of the whole answer, in bytes."""
        coded = encoding.strip().lower()
        if coded not in ("", "identity", *_ENCODINGS):
            raise Unreadable(f"has the content-encoding {encoding[:100]!r}, which nobody asked for")
        self._is_plain = coded not in _ENCODINGS
        self._inflate = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._left = limit
        self._limit = limit

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Unreadable when it cannot be inflated or becomes larger than the limit."""
        while data:
            if self._is_plain:
                piece, data = data, b""
            else:
                piece, data = self._inflated(data)
            self._left -= len(piece)
            if self._left < 0:
                raise Unreadable(f"is larger than {self._limit} bytes")
            yield piece

    def finish(self) -> None:
        """Unreadable when a part is missing."""
        if not (self._is_plain or self._inflate.eof):
            raise Unreadable("is compressed, and its end is missing")

    def _inflated(self, data: bytes) -> tuple[bytes, bytes]:
        """Some bytes, and what is left to inflate."""
        if self._inflate.eof:  # gzip may have several members
            self._inflate = zlib.decompressobj(_GZIP_OR_ZLIB)
        try:
            piece = self._inflate.decompress(data, PIECE)
        except zlib.error:
            raise Unreadable("is not compressed as it says") from None
        return piece, self._inflate.unused_data or self._inflate.unconsumed_tail


def inflated(content: bytes, encoding: str, limit: int) -> bytes:
    """Unreadable when there are more than `limit` bytes, or when it cannot be inflated."""
    inflater = Inflater(encoding, limit)
    plain = b"".join(inflater.pieces(content))
    if content:
        inflater.finish()
    return plain


def parsed(content: bytes) -> Any:
    """Unreadable for what is no JSON, and for texts and numbers that cannot be sent on."""
    try:
        value = _DECODER.decode(content.decode())
        if _SURROGATE.search(content):
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError):
        raise Unreadable("is not JSON") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """In Python, so that other threads have a turn while a large answer is read."""
    return dict(pairs)


def _whole_number(digits: str) -> int:
    number = int(digits) if len(digits) < 25 else _LARGEST_NUMBER
    if not -_LARGEST_NUMBER <= number < _LARGEST_NUMBER:
        raise ValueError("a number is out of range")
    return number


def _fraction(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is out of range")
    return number


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")


_DECODER = json.JSONDecoder(
    parse_int=_whole_number, parse_float=_fraction, parse_constant=_no_number, object_pairs_hook=_object
)
