"""What another server answers about a table, looked into: seed 004's table_type tells whether it is a Lance table.

A LoadTableResult of an Iceberg table may be large, and goes on to the client as it came. So it is searched in
pieces, and only that of a Lance table is parsed. Large ones are looked into by threads.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from anyio import to_thread

from irc_bridge import answers
from irc_bridge.answers import LARGE, PIECE, Inflater, Unreadable
from irc_bridge.catalog.forward import ForwardResponse
from irc_bridge.catalog.models import TABLE_TYPE
from irc_bridge.errors import BadGateway
from irc_bridge.iceberg_rest.strict_bodies import is_lance

Json = Mapping[str, Any]

LARGEST_ANSWER = 512 * 1024 * 1024
"""In bytes, as it comes and inflated."""
LARGEST_LANCE_ANSWER = 64 * 1024 * 1024
LARGE_COMPRESSED = 4 * 1024
_MARK = re.compile(rb'"table(?:-uuid"\s*:\s*"([0-9a-fA-F-]{36})"|_type"\s*:\s*"(?i:lance)")')
"""A uuid, or what marks a Lance table: one search for both, because a search takes most of the time."""
_LONGEST_MARK = 256
"""With spaces in it."""
_IN_MEMORY = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Loaded:
    """The answer to a load of a table that is there."""

    answered: ForwardResponse
    """With a `rest` that was read where the answer is kept in `file`."""
    file: IO[bytes] | None
    """All of a large answer. Whoever sends it on closes it."""
    lance: Json | None
    """The LoadTableResult of a Lance table, None of any other."""
    uuids: frozenset[str]
    """What stands at `table-uuid`, anywhere in the answer, in lower case. Of many two are enough."""

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


async def loaded(answered: ForwardResponse) -> Loaded:
    """BadGateway when the answer cannot be looked into."""
    try:
        if answered.rest is not None:
            return await _loaded_in_pieces(answered)
        if len(answered.content) > (LARGE_COMPRESSED if answered.encoding else LARGE):
            return await to_thread.run_sync(_loaded, answered)
        return _loaded(answered)
    except Unreadable as error:
        raise BadGateway(f"The server behind was asked for a table, and its answer {error}") from None


def content_of(answered: ForwardResponse, limit: int) -> Any:
    """The JSON of an answer, BadGateway where it is none."""
    try:
        return answers.parsed(answers.inflated(answered.content, answered.encoding, limit))
    except Unreadable as error:
        raise BadGateway(f"The answer of the server behind {error}") from None


def _loaded(answered: ForwardResponse) -> Loaded:
    search = _Search(answered.encoding)
    search.take(answered.content)
    search.finish()
    lance = _lance_result_in([answered.content], answered.encoding) if search.is_found else None
    return Loaded(answered, None, lance, frozenset(search.uuids))


async def _loaded_in_pieces(answered: ForwardResponse) -> Loaded:
    search = _Search(answered.encoding)
    kept = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - whoever sends it closes it

    def take(chunk: bytes) -> None:
        kept.write(chunk)
        search.take(chunk)

    try:
        await to_thread.run_sync(take, answered.content)
        assert answered.rest is not None
        async with aclosing(answered.rest) as rest:
            async for chunk in rest:
                await to_thread.run_sync(take, chunk)
        search.finish()
        lance = await to_thread.run_sync(_lance_in, kept, answered.encoding) if search.is_found else None
        kept.seek(0)
    except BaseException:
        kept.close()
        raise
    return Loaded(answered, kept, lance, frozenset(search.uuids))


def _lance_in(kept: IO[bytes], encoding: str) -> Json | None:
    kept.seek(0)
    return _lance_result_in(iter(lambda: kept.read(PIECE), b""), encoding)


def _lance_result_in(chunks: Iterable[bytes], encoding: str) -> Json | None:
    """Of an answer that has the mark, perhaps in another place than the table's properties."""
    inflater = Inflater(encoding, LARGEST_LANCE_ANSWER)
    return lance_result(answers.parsed(b"".join(piece for chunk in chunks for piece in inflater.pieces(chunk))))


def lance_result(result: object) -> Json | None:
    """The LoadTableResult if it is that of a Lance table."""
    metadata = result.get("metadata") if isinstance(result, dict) else None
    properties = metadata.get("properties") if isinstance(metadata, dict) else None
    is_of_lance = isinstance(properties, dict) and is_lance(properties.get(TABLE_TYPE))
    return result if is_of_lance and isinstance(result, dict) else None


class _Search:
    """Looks for the mark of a Lance table, and for uuids, in an answer that comes in pieces."""

    def __init__(self, encoding: str) -> None:
        self.is_found = False
        self.uuids: set[str] = set()
        self._inflater = Inflater(encoding, LARGEST_ANSWER)
        self._left = LARGEST_ANSWER
        self._tail = b""

    def take(self, chunk: bytes) -> None:
        self._left -= len(chunk)
        if self._left < 0:
            raise Unreadable(f"is larger than {LARGEST_ANSWER} bytes")
        for piece in self._inflater.pieces(chunk):
            window = self._tail + piece
            for match in _MARK.finditer(window):
                if match[1] is None:
                    self.is_found = True
                elif len(self.uuids) < 2:
                    self.uuids.add(match[1].decode().lower())
            self._tail = window[-_LONGEST_MARK:]

    def finish(self) -> None:
        if self._tail:
            self._inflater.finish()
