"""The places and files that a manifest names. Lance reads whatever it names, wherever that lies."""

import re
import struct
from collections.abc import Iterator
from urllib.parse import unquote

from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.manifests import message_of
from irc_bridge.lance_store.protobuf import contents_of, fields_of, text_of
from irc_bridge.storage.locations import LOCAL, AllowedLocations, scheme_of

_FRAGMENT, _INDEX_SECTION, _TRANSACTION_FILE, _BASE_PATH = 2, 6, 12, 18
"""The numbers of fields in Lance's table.proto: of a manifest."""
_PATH_OF_BASE = 4
_FILES, _ROW_IDS, _UPDATED_AT, _CREATED_AT, _OVERLAYS = 2, 6, 8, 10, 11
"""Of a fragment."""
_FILE_OF_OVERLAY = _INDEX = _PATH = 1
_FILES_OF_INDEX = 10
_LEAVES = re.compile(rb"[/\\]|\.\.|%")
"""A name without any of these leads to no other folder."""


def require_inside(manifest: bytes, table: str, allowed: AllowedLocations, what: str) -> None:
    """InvalidInput for a manifest that names files outside of its table and of the allowed locations. The sentence
    begins with `what`."""
    place = place_outside(manifest, table, allowed)
    if place is not None:
        raise InvalidInput(
            f"{what} names files outside of its table, {place[:200]!r}: the allowed_locations of the warehouse do "
            f"not cover them"
        )


def place_outside(manifest: bytes, table: str, allowed: AllowedLocations) -> str | None:
    """The first path in a manifest that is neither in its table nor in an allowed location. None when there is
    none."""
    for base in _bases(manifest):
        location = _location_of(base, table)
        if not allowed.covers(location) and not AllowedLocations([table]).covers(location):
            return base
    return next((path for path in _paths(manifest) if _leaves(path)), None)


def _location_of(base: str, table: str) -> str:
    """Lance takes a path without a scheme for one in the storage system of the table."""
    scheme, separator, rest = table.partition("://")
    if not separator or scheme_of(table) == LOCAL or "://" in base:
        return base
    return f"{scheme}://{rest.partition('/')[0]}/{base.lstrip('/')}"


def _bases(manifest: bytes) -> Iterator[str]:
    for number, value in fields_of(manifest, *message_of(manifest), last_of=_FRAGMENT):
        if number == _BASE_PATH and isinstance(value, bytes):
            yield text_of(dict(fields_of(value)).get(_PATH_OF_BASE))


def _paths(manifest: bytes) -> Iterator[str]:
    """The names of files, relative to a folder of the table."""
    for fragment in contents_of(manifest, _FRAGMENT, *message_of(manifest)):
        # most have nothing to be looked at: a large table has many thousand fragments
        if _LEAVES.search(fragment):
            yield from _paths_of_fragment(fragment)
    for number, value in fields_of(manifest, *message_of(manifest), last_of=_FRAGMENT):
        if number == _TRANSACTION_FILE:
            yield text_of(value)
        elif number == _INDEX_SECTION and isinstance(value, int):
            yield from _paths_of_indices(manifest, value)


def _paths_of_fragment(fragment: bytes) -> Iterator[str]:
    for number, value in fields_of(fragment):
        if number in (_FILES, _ROW_IDS, _UPDATED_AT, _CREATED_AT) and isinstance(value, bytes):
            yield text_of(dict(fields_of(value)).get(_PATH))
        elif number == _OVERLAYS and isinstance(value, bytes):
            for file in contents_of(value, _FILE_OF_OVERLAY):
                yield text_of(dict(fields_of(file)).get(_PATH))


def _paths_of_indices(manifest: bytes, position: int) -> Iterator[str]:
    """The section begins with its length."""
    start = position + 4
    if start > len(manifest):
        raise ValueError("it is cut off")
    end = start + int(struct.unpack("<I", manifest[position:start])[0])
    if end > len(manifest):
        raise ValueError("it is cut off")
    for index in contents_of(manifest, _INDEX, start, end):
        for file in contents_of(index, _FILES_OF_INDEX):
            yield text_of(dict(fields_of(file)).get(_PATH))


def _leaves(path: str) -> bool:
    decoded = unquote(path)
    parts = re.split(r"[/\\]", decoded)
    return parts[0] == "" or "\\" in decoded or bool({".", ".."} & set(parts)) or ":" in parts[0]
