"""Whether what a server says, or a client asks for, is about a Lance table: seed 004's table_type tells."""

import json
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from irc_bridge.catalog.models import TABLE_TYPE
from irc_bridge.catalog.passing import Answered

Json = Mapping[str, Any]

_MARK = f'"{TABLE_TYPE}"'.encode()
_IN_MEMORY = 8 * 1024 * 1024
_ICEBERG_METADATA = (".metadata.json", ".metadata.json.gz")
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


def says_lance(properties: object) -> bool:
    kind = properties.get(TABLE_TYPE) if isinstance(properties, Mapping) else None
    return isinstance(kind, str) and kind.lower() == "lance"


def lance_result(content: bytes) -> Json | None:
    """The LoadTableResult of a Lance table, None of any other. Only those with the mark are parsed."""
    if _MARK not in content:
        return None
    result = parsed(content)
    metadata = result.get("metadata")
    return result if isinstance(metadata, Mapping) and says_lance(metadata.get("properties")) else None


def creates_lance(body: bytes) -> bool:
    """Of a CreateTableRequest."""
    return _MARK in body and says_lance(parsed(body).get("properties"))


def registers_lance(body: bytes) -> bool:
    """Of a RegisterTableRequest: the files of Iceberg's metadata have an ending of their own."""
    location = parsed(body).get("metadata-location")
    return isinstance(location, str) and not location.endswith(_ICEBERG_METADATA)


def commit_creates(change: Json) -> bool:
    """Of a CommitTableRequest."""
    return any(each.get("type") == "assert-create" for each in _objects(change.get("requirements")))


def commit_creates_lance(change: Json) -> bool:
    updates = _objects(change.get("updates"))
    wanted = [each.get("updates") for each in updates if each.get("action") == "set-properties"]
    return commit_creates(change) and any(says_lance(each) for each in wanted)


def asserted_uuid(change: Json) -> str | None:
    for each in _objects(change.get("requirements")):
        if each.get("type") == "assert-table-uuid":
            return str(each.get("uuid"))
    return None


def parsed(body: bytes) -> Json:
    """Empty for what is no JSON object: whoever understands the request has to refuse it."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def plain(answered: Answered, content: bytes) -> bytes:
    return zlib.decompress(content, _GZIP_OR_ZLIB) if _is_compressed(answered) else content


async def read_on(answered: Answered) -> tuple[bytes | None, IO[bytes] | None]:
    """Of a large LoadTableResult: all of it if it has the mark, else a file of what it said, to be sent on."""
    inflate = zlib.decompressobj(_GZIP_OR_ZLIB) if _is_compressed(answered) else None
    kept = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - whoever sends it closes it
    tail, marked = b"", False
    try:
        async for chunk in _chunks(answered):
            kept.write(chunk)
            window = tail + (inflate.decompress(chunk) if inflate else chunk)
            marked = marked or _MARK in window
            tail = window[-len(_MARK) :]
        kept.seek(0)
        if not marked:
            return None, kept
        content = kept.read()
    except BaseException:
        kept.close()
        raise
    kept.close()
    return content, None


async def _chunks(answered: Answered) -> AsyncGenerator[bytes, None]:
    yield answered.content
    if answered.rest is not None:
        async with aclosing(answered.rest) as rest:
            async for chunk in rest:
                yield chunk


def _is_compressed(answered: Answered) -> bool:
    return any(name == b"content-encoding" and value != b"identity" for name, value in answered.headers)


def _objects(values: object) -> list[Json]:
    return [each for each in values if isinstance(each, Mapping)] if isinstance(values, list) else []
