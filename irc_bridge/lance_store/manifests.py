"""Names and bytes of the manifests in a table's `_versions` folder."""

import re
import struct
from collections.abc import Mapping

VERSIONS = "_versions"
_V1 = re.compile(r"(\d{1,19})\.manifest")
_V2 = re.compile(r"(\d{20})\.manifest")
_LARGEST = 2**64 - 1
_DETACHED = 2**63
_DETACHED_NAME = f"{_LARGEST - _DETACHED:020}.manifest"
_V2_LENGTH = len(_DETACHED_NAME)
_TABLE_METADATA = 19
"""The number of the field in Lance's table.proto."""
_FOOTER_LENGTH = 16


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


def newest_of(names: list[str]) -> str | None:
    """The manifest of the latest version. Names of the second scheme fall as versions rise, so that most need
    not be read."""
    alike = (name for name in names if len(name) == _V2_LENGTH and name > _DETACHED_NAME)
    second = min((name for name in alike if name[:20].isdigit() and name.endswith(".manifest")), default=None)
    first = (name for name in names if len(name) != _V2_LENGTH)
    candidates = {version: name for name in (second, *first) if name and (version := version_of(name))}
    return candidates[max(candidates)] if candidates else None


FIRST = f"{VERSIONS}/{name_of(1)}"


def with_metadata(manifest: bytes, metadata: Mapping[str, str]) -> bytes:
    """The manifest file with entries added to its table metadata.

    The file ends with the length of the manifest message, the message, and a footer that says where it starts.
    A protobuf message takes more entries of a map at its end.
    """
    start = int(struct.unpack("<Q", manifest[-_FOOTER_LENGTH : -_FOOTER_LENGTH + 8])[0])
    length = int(struct.unpack("<I", manifest[start : start + 4])[0])
    message = manifest[start + 4 : start + 4 + length]
    for key, value in metadata.items():
        message += _block(_TABLE_METADATA, _block(1, key.encode()) + _block(2, value.encode()))
    return manifest[:start] + struct.pack("<I", len(message)) + message + manifest[-_FOOTER_LENGTH:]


def _block(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
