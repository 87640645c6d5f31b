"""Names and bytes of the manifests in a table's `_versions` folder."""

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import uuid4

from irc_bridge.catalog.models import NamingScheme

VERSIONS = "_versions"
DATA = "data"
_V1 = re.compile(r"(\d{1,19})\.manifest")
_V2 = re.compile(r"(\d{20})\.manifest")
_LARGEST = 2**64 - 1
_DETACHED = 2**63
_DETACHED_NAME = f"{_LARGEST - _DETACHED:020}.manifest"
_V2_LENGTH = len(_DETACHED_NAME)
_STAGED = re.compile(r"(\d{1,20}\.manifest)-[0-9a-fA-F-]{32,36}")
_FRAGMENT, _VERSION, _TIMESTAMP, _TABLE_METADATA, _BRANCH = 2, 3, 7, 19, 20
_FILE, _PATH, _BASE = 2, 1, 7
"""The numbers of the fields in Lance's table.proto: of a manifest; of a fragment and its data files."""
_FOOTER_LENGTH = 16
_MAGIC = b"LANC"
_NUMBER, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
"""The wire types of protobuf."""


def version_of(name: str) -> int | None:
    """The version that a file name stands for; None for staged and detached manifests and other files."""
    if match := _V2.fullmatch(name):
        version = _LARGEST - int(match[1])
    elif match := _V1.fullmatch(name):
        version = int(match[1])
    else:
        return None
    return version if 0 < version < _DETACHED else None


def name_of(version: int, like: str | None = None) -> str:
    """The file name of a version, in the naming scheme of the name `like`."""
    if like is not None and _V1.fullmatch(like):
        return f"{version}.manifest"
    return f"{_LARGEST - version:020}.manifest"


def names_of(version: int) -> Mapping[NamingScheme, str]:
    """The file names of a version, the usual one first."""
    return {"V2": name_of(version), "V1": f"{version}.manifest"}


def staged_name(version: int, like: str | None = None) -> str:
    """A name as Lance gives one to the manifest of a version that is still to be made."""
    return f"{name_of(version, like)}-{uuid4()}"


def staged_version(name: str) -> int | None:
    """The version that a staged manifest was written for; None for other files."""
    match = _STAGED.fullmatch(name)
    return version_of(match[1]) if match else None


def newest_of(names: list[str]) -> str | None:
    """The manifest of the latest version. Names of the second scheme fall as versions rise, so that most need
    not be read."""
    alike = [name for name in names if len(name) == _V2_LENGTH and name > _DETACHED_NAME]
    second = min(alike, default=None)
    if second is not None and version_of(second) is None:
        second = min((name for name in alike if version_of(name) is not None), default=None)
    first = [name for name in names if len(name) != _V2_LENGTH]
    candidates = {version: name for name in (second, *first) if name and (version := version_of(name))}
    return candidates[max(candidates)] if candidates else None


FIRST = f"{VERSIONS}/{name_of(1)}"


@dataclass(frozen=True, slots=True)
class Head:
    """What a manifest says about its version."""

    version: int
    timestamp_ms: int
    branch: str | None
    data_file: str | None
    """One of the latest fragment, below the table; None when there is no fragment, or its files lie elsewhere."""


def head_of(manifest: bytes) -> Head:
    """ValueError says why the bytes are no manifest."""
    version, timestamp, branch, fragment = 0, b"", None, b""
    start, end = _message_of(manifest)
    for number, value in _fields(manifest, start, end, last_of=_FRAGMENT):
        if number == _VERSION and isinstance(value, int):
            version = value
        elif number == _TIMESTAMP and isinstance(value, bytes):
            timestamp = value
        elif number == _BRANCH and isinstance(value, bytes):
            branch = value.decode() or None
        elif number == _FRAGMENT and isinstance(value, bytes):
            fragment = value
    parts = dict(_fields(timestamp, 0, len(timestamp)))
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    if not version or not isinstance(seconds, int) or not isinstance(nanos, int):
        raise ValueError("it names no version")
    return Head(version, seconds * 1000 + nanos // 1_000_000, branch, _data_file(fragment))


def _data_file(fragment: bytes) -> str | None:
    for number, value in _fields(fragment, 0, len(fragment)):
        if number == _FILE and isinstance(value, bytes):
            file = dict(_fields(value, 0, len(value)))
            if _BASE not in file:
                return f"{DATA}/{_text(file.get(_PATH))}"
    return None


def table_metadata_of(manifest: bytes) -> dict[str, str]:
    """ValueError says why the bytes are no manifest."""
    entries = (
        dict(_fields(value, 0, len(value)))
        for number, value in _fields(manifest, *_message_of(manifest))
        if number == _TABLE_METADATA and isinstance(value, bytes)
    )
    return {_text(entry.get(1)): _text(entry.get(2)) for entry in entries}


def with_metadata(manifest: bytes, metadata: Mapping[str, str]) -> bytes:
    """The manifest file with entries added to its table metadata."""
    entries = (_block(1, key.encode()) + _block(2, value.encode()) for key, value in metadata.items())
    return _with_more(manifest, b"".join(_block(_TABLE_METADATA, entry) for entry in entries))


def renumbered(manifest: bytes, version: int) -> bytes:
    """The manifest file as that of another version."""
    return _with_more(manifest, _varint(_VERSION << 3 | _NUMBER) + _varint(version))


def _with_more(manifest: bytes, fields: bytes) -> bytes:
    """A protobuf message takes more entries of a map at its end, and of a number the last counts."""
    start, end = _message_of(manifest)
    message = manifest[start:end] + fields
    return manifest[: start - 4] + struct.pack("<I", len(message)) + message + manifest[-_FOOTER_LENGTH:]


def _text(value: int | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _message_of(manifest: bytes) -> tuple[int, int]:
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


def _fields(data: bytes, position: int, end: int, last_of: int | None = None) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message by their numbers. ValueError when it is none. Of those that follow one
    another with the number `last_of` only the last: a large table has many thousand fragments."""
    key_of_last = -1 if last_of is None else last_of << 3 | _BYTES
    while position < end:
        if data[position] == key_of_last:
            position = _last_alike(data, position, end)
        key, position = _read_varint(data, position, end)
        kind = key & 7
        if kind == _NUMBER:
            value, position = _read_varint(data, position, end)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, position = _read_varint(data, position, end)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            length = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise ValueError("its message cannot be read")
        if position + length > end:
            raise ValueError("its message cannot be read")
        yield key >> 3, data[position : position + length]
        position += length


def _last_alike(data: bytes, position: int, end: int) -> int:
    """Where the last of the fields begins that follow one another with the same key of one byte."""
    key = data[position]
    while True:
        last, position = position, position + 1
        length = data[position]
        if length < 128:
            position += 1 + length
        else:
            length, position = _read_varint(data, position, end)
            position += length
        if position >= end or data[position] != key:
            return last


def _read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    number = shift = 0
    while position < end and shift < 64:
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
        shift += 7
    raise ValueError("its message cannot be read")


def _block(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
