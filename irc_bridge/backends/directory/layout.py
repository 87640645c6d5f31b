"""Which folder a table lies in, seed 002."""

import re
import secrets
from collections.abc import Iterator

from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.storage import Storage

MANIFEST = "__manifest"
RESERVED = ".lance-reserved"
DEREGISTERED = ".lance-deregistered"
SUFFIX = ".lance"
_HASHED = re.compile(r"[0-9a-f]{8}_(.+)", re.DOTALL)


def listed_folder(name: str) -> str:
    """The folder in which directory listing finds the table."""
    return name + SUFFIX


def listed_name(path: str) -> str | None:
    """The table that directory listing finds in the folder."""
    if "/" in path or not path.endswith(SUFFIX):
        return None
    return path.removesuffix(SUFFIX) or None


def hashed_folder(object_id: str) -> str:
    return f"{secrets.token_hex(4)}_{object_id}"


def hashed_object_id(path: str) -> str | None:
    """The id of the object that the folder was made for."""
    match = _HASHED.fullmatch(path)
    return match[1] if match else None


def is_plain(path: str) -> bool:
    """Whether the path stays inside the root and out of the manifest."""
    parts = path.split("/")
    return all(part not in ("", ".", "..") for part in parts) and parts[0] != MANIFEST


def asked_folder(storage: Storage, location: str) -> str:
    """The path of a location that a client chose."""
    path = storage.path_of(location.rstrip("/"))
    if path is None:
        raise InvalidInput(f"Location {location} is not inside the warehouse root {storage.location()}")
    if not is_plain(path):
        raise InvalidInput(f"Location {location} is not a folder that can hold a table")
    return path


def parts_above(path: str) -> Iterator[str]:
    """The folders that a folder lies in."""
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))
