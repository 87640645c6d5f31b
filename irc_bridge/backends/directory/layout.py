"""Which folder a table lies in, seed 002."""

import secrets

from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.storage import Storage

MANIFEST = "__manifest"
RESERVED = ".lance-reserved"
DEREGISTERED = ".lance-deregistered"
SUFFIX = ".lance"


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


def overlap(one: str, other: str) -> bool:
    """Whether the folders are the same or one lies in the other."""
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")
