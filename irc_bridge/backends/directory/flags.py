"""Feature flags in the table metadata of a manifest: a program that does not know them must not read or change
it."""

from collections.abc import Mapping

from irc_bridge.errors import BrokenTable, Unsupported

_READER = "lance.namespace.manifest.reader_feature_flags"
_WRITER = "lance.namespace.manifest.writer_feature_flags"
_MANAGEMENT = "table_version_management"
VERSION_ROWS = 1 << 62
"""Our bit: rows of table versions. Released Lance of version 8 and later refuses to change what it does not know,
and would otherwise fail on such rows with an internal error."""


def manages_versions(metadata: Mapping[str, str], location: str) -> bool:
    if _number(metadata, _READER, location):
        raise Unsupported(f"{location} was written by a newer program and cannot be read: upgrade irc_bridge")
    return metadata.get(_MANAGEMENT, "").lower() == "true"


def require_writable(metadata: Mapping[str, str], location: str) -> None:
    if _number(metadata, _WRITER, location) & ~VERSION_ROWS:
        raise Unsupported(f"{location} was written by a newer program and cannot be changed: upgrade irc_bridge")


def managing(metadata: Mapping[str, str], location: str) -> dict[str, str]:
    """The metadata entries that turn version management on."""
    return {_MANAGEMENT: "true", _WRITER: str(_number(metadata, _WRITER, location) | VERSION_ROWS)}


def _number(metadata: Mapping[str, str], key: str, location: str) -> int:
    text = metadata.get(key, "0")
    if not (text.isascii() and text.isdigit()):
        raise BrokenTable(f"The table metadata {key} of {location} is no number: {text}. Correct it with pylance.")
    return int(text)
