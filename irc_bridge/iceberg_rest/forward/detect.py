"""Which tables of another server are Lance tables: seed 004's table_type in the response to a load tells.

The LoadTableResult of an Iceberg table may be large, and the client gets it unchanged. So it is searched in
pieces, and only the result of a Lance table is parsed. Large responses are searched in threads.
"""

import re
from collections.abc import Iterable, Set
from contextlib import aclosing
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO, Any

from anyio import to_thread

from irc_bridge import answers
from irc_bridge.answers import LARGE, PIECE, Inflater, Unreadable
from irc_bridge.catalog.forward import ForwardResponse
from irc_bridge.catalog.models import TABLE_TYPE
from irc_bridge.errors import BadGateway
from irc_bridge.iceberg_rest.forward.strict_json import Json, is_lance

LARGEST_RESULT = 512 * 1024 * 1024
"""In bytes, compressed and inflated."""
LARGEST_LANCE_RESULT = 64 * 1024 * 1024
LARGE_COMPRESSED = 4 * 1024
_MARK = re.compile(rb'"table(?:-uuid"\s*:\s*"([0-9a-fA-F-]{36})"|_type"\s*:\s*"(?i:lance)")')
"""A uuid, or the mark of a Lance table: one expression for both, because searching takes most of the time."""
_LONGEST_MARK = 256
"""With the spaces in it."""
_IN_MEMORY = 8 * 1024 * 1024
_MOST_KNOWN = 100_000


class KnownTables:
    """The uuids of tables that are Iceberg's. A commit that asserts such a uuid needs no look at the table: if the
    name has another table by now, the assertion fails."""

    def __init__(self) -> None:
        self._iceberg: set[tuple[str, str]] = set()
        self._lock = Lock()

    def remember(self, warehouse: str, uuids: Set[str], lance: bool) -> None:
        """`uuids` are all values of table-uuid in the response to a load. A property of an Iceberg table can have
        this name, and the uuid of a Lance table as its value: so several uuids are not remembered."""
        if len(uuids) != 1:
            return
        key = (warehouse, next(iter(uuids)))
        with self._lock:
            if lance:
                self._iceberg.discard(key)
            elif key not in self._iceberg:
                if len(self._iceberg) >= _MOST_KNOWN:
                    self._iceberg.clear()
                self._iceberg.add(key)

    def is_iceberg(self, warehouse: str, uuid: str | None) -> bool:
        return uuid is not None and (warehouse, uuid.lower()) in self._iceberg


@dataclass(frozen=True, slots=True)
class LoadResponse:
    """The response to a load of a table that exists."""

    response: ForwardResponse
    """Its `rest` is at its end if the body is in `file`."""
    file: IO[bytes] | None
    """The whole body of a large response. `close` closes it, or the response to the client does."""
    lance: Json | None
    """The LoadTableResult of a Lance table, None for any other table."""
    uuids: frozenset[str]
    """The values of `table-uuid` anywhere in the response, in lower case, two at most."""

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


async def load_response(response: ForwardResponse) -> LoadResponse:
    """BadGateway for a response that cannot be searched."""
    try:
        if response.rest is not None:
            return await _searched_in_pieces(response)
        if len(response.content) > (LARGE_COMPRESSED if response.encoding else LARGE):
            return await to_thread.run_sync(_searched, response)
        return _searched(response)
    except Unreadable as error:
        raise BadGateway(f"The server behind was asked for a table, and its answer {error}") from None


def content_of(response: ForwardResponse, limit: int) -> Any:
    """The JSON of a response, BadGateway for a response that is no JSON."""
    try:
        return answers.parsed(answers.inflated(response.content, response.encoding, limit))
    except Unreadable as error:
        raise BadGateway(f"The answer of the server behind {error}") from None


def lance_result(result: object) -> Json | None:
    """The LoadTableResult of a Lance table, None for any other table."""
    metadata = result.get("metadata") if isinstance(result, dict) else None
    properties = metadata.get("properties") if isinstance(metadata, dict) else None
    has_mark = isinstance(properties, dict) and is_lance(properties.get(TABLE_TYPE))
    return result if has_mark and isinstance(result, dict) else None


def _searched(response: ForwardResponse) -> LoadResponse:
    search = _Search(response.encoding)
    search.take(response.content)
    search.finish()
    lance = _parsed([response.content], response.encoding) if search.has_mark else None
    return LoadResponse(response, None, lance, frozenset(search.uuids))


async def _searched_in_pieces(response: ForwardResponse) -> LoadResponse:
    search = _Search(response.encoding)
    file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - LoadResponse has it

    def take(chunk: bytes) -> None:
        file.write(chunk)
        search.take(chunk)

    try:
        await to_thread.run_sync(take, response.content)
        assert response.rest is not None
        async with aclosing(response.rest) as rest:
            async for chunk in rest:
                await to_thread.run_sync(take, chunk)
        search.finish()
        lance = await to_thread.run_sync(_parsed_file, file, response.encoding) if search.has_mark else None
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return LoadResponse(response, file, lance, frozenset(search.uuids))


def _parsed_file(file: IO[bytes], encoding: str) -> Json | None:
    file.seek(0)
    return _parsed(iter(lambda: file.read(PIECE), b""), encoding)


def _parsed(chunks: Iterable[bytes], encoding: str) -> Json | None:
    """The LoadTableResult of a response with the mark, None where the mark stands in another place than the
    properties of the table."""
    inflater = Inflater(encoding, LARGEST_LANCE_RESULT)
    return lance_result(answers.parsed(b"".join(piece for chunk in chunks for piece in inflater.pieces(chunk))))


class _Search:
    """Searches a response, which comes in pieces, for the mark of a Lance table and for uuids."""

    def __init__(self, encoding: str) -> None:
        self.has_mark = False
        self.uuids: set[str] = set()
        self._inflater = Inflater(encoding, LARGEST_RESULT)
        self._left = LARGEST_RESULT
        self._tail = b""

    def take(self, chunk: bytes) -> None:
        self._left -= len(chunk)
        if self._left < 0:
            raise Unreadable(f"is larger than {LARGEST_RESULT} bytes")
        for piece in self._inflater.pieces(chunk):
            window = self._tail + piece
            for match in _MARK.finditer(window):
                if match[1] is None:
                    self.has_mark = True
                elif len(self.uuids) < 2:
                    self.uuids.add(match[1].decode().lower())
            self._tail = window[-_LONGEST_MARK:]

    def finish(self) -> None:
        if self._tail:
            self._inflater.finish()
