"""The bytes of the manifests in a table's `_versions` folder."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from irc_bridge.lance_store.protobuf import block, entries_of, fields_of, number_in, tagged, text_of
from irc_bridge.storage.layout import DATA

_FRAGMENT, _VERSION, _TIMESTAMP, _TABLE_METADATA, _BRANCH = 2, 3, 7, 19, 20
_FILE, _PATH, _BASE = 2, 1, 7
_SCHEMA_FIELD, _FIELD_ID, _PARENT_ID = 1, 3, 4
"""The numbers of the fields in Lance's protobuf files: of a manifest; of a fragment and its data files; of a
manifest's schema and of a field in it."""
_FOOTER_LENGTH = 16
_MAGIC = b"LANC"


@dataclass(frozen=True, slots=True)
class Head:
    """The fields of a manifest that describe its version."""

    version: int
    timestamp_ms: int
    branch: str | None
    data_file: str | None
    """One of the latest fragment, below the table; None when there is no fragment, or its files lie elsewhere."""


def head_of(manifest: bytes) -> Head:
    """ValueError says why the bytes are no manifest."""
    version, timestamp, branch, fragment = 0, b"", None, b""
    start, end = message_of(manifest)
    for number, value in fields_of(manifest, start, end, last_of=_FRAGMENT):
        if number == _VERSION and isinstance(value, int):
            version = value
        elif number == _TIMESTAMP and isinstance(value, bytes):
            timestamp = value
        elif number == _BRANCH and isinstance(value, bytes):
            branch = value.decode() or None
        elif number == _FRAGMENT and isinstance(value, bytes):
            fragment = value
    parts = dict(fields_of(timestamp))
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    if not version or not isinstance(seconds, int) or not isinstance(nanos, int):
        raise ValueError("it names no version")
    return Head(version, seconds * 1000 + nanos // 1_000_000, branch, _data_file(fragment))


def _data_file(fragment: bytes) -> str | None:
    for number, value in fields_of(fragment):
        if number == _FILE and isinstance(value, bytes):
            file = dict(fields_of(value))
            if _BASE not in file:
                return f"{DATA}/{text_of(file.get(_PATH))}"
    return None


def table_metadata_of(manifest: bytes) -> dict[str, str]:
    """ValueError says why the bytes are no manifest."""
    entries = (
        dict(fields_of(value))
        for number, value in fields_of(manifest, *message_of(manifest))
        if number == _TABLE_METADATA and isinstance(value, bytes)
    )
    return {text_of(entry.get(1)): text_of(entry.get(2)) for entry in entries}


def with_metadata(manifest: bytes, metadata: Mapping[str, str]) -> bytes:
    """The manifest file with entries added to its table metadata."""
    entries = (block(1, key.encode()) + block(2, value.encode()) for key, value in metadata.items())
    return _with_more(manifest, b"".join(block(_TABLE_METADATA, entry) for entry in entries))


def renumbered(manifest: bytes, version: int) -> bytes:
    """The manifest file as that of another version."""
    return _with_more(manifest, tagged(_VERSION, version))


def with_field_ids(manifest: bytes, ids: Sequence[int | None]) -> bytes:
    """The manifest file of a table without data, with these ids for the fields of its schema, depth first. A field
    with None gets an id above all others."""
    start, end = message_of(manifest)
    schema = [value for number, value, _ in entries_of(manifest, start, end) if number == _SCHEMA_FIELD]
    new_ids = _complete(ids)
    old_ids = [number_in(field, _FIELD_ID) for field in schema]
    by_old = dict(zip(old_ids, new_ids, strict=True))
    message = bytearray()
    fields = zip(schema, new_ids, strict=True)
    for number, _, raw in entries_of(manifest, start, end):
        if number == _SCHEMA_FIELD:
            field, new_id = next(fields)
            parent = by_old.get(number_in(field, _PARENT_ID))
            # of a number that stands twice in a message the last counts
            more = tagged(_FIELD_ID, new_id) + (b"" if parent is None else tagged(_PARENT_ID, parent))
            raw = block(_SCHEMA_FIELD, field + more)
        message += raw
    return _with_message(manifest, bytes(message))


def _complete(ids: Sequence[int | None]) -> list[int]:
    free = count(1 + max((known for known in ids if known is not None), default=-1))
    return [next(free) if known is None else known for known in ids]


def _with_more(manifest: bytes, fields: bytes) -> bytes:
    """A protobuf message takes more entries of a map at its end, and of a number the last counts."""
    start, end = message_of(manifest)
    return _with_message(manifest, manifest[start:end] + fields)


def _with_message(manifest: bytes, message: bytes) -> bytes:
    start, _ = message_of(manifest)
    return manifest[: start - 4] + struct.pack("<I", len(message)) + message + manifest[-_FOOTER_LENGTH:]


def message_of(manifest: bytes) -> tuple[int, int]:
    """Where the manifest message begins and ends. The file ends with its length, itself, and a footer that says
    where the length stands."""
    if len(manifest) < _FOOTER_LENGTH + 4 or not manifest.endswith(_MAGIC):
        raise ValueError(f"it does not end with {_MAGIC.decode()}")
    position = int(struct.unpack("<Q", manifest[-_FOOTER_LENGTH : -_FOOTER_LENGTH + 8])[0])
    start = position + 4
    if start > len(manifest) - _FOOTER_LENGTH:
        raise ValueError("it is cut off")
    end = start + int(struct.unpack("<I", manifest[position:start])[0])
    if end > len(manifest) - _FOOTER_LENGTH:
        raise ValueError("it is cut off")
    return start, end
