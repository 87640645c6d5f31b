"""Which folder a table lies in, seed 002."""

import re
import secrets
from collections.abc import Iterator

from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.table_folders import MANIFEST, why_no_folder
from irc_bridge.storage.base import Storage

SUFFIX = ".lance"
_SHOWN = 200
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


def requested_folder(storage: Storage, location: str) -> str:
    """The path of a location that a client chose."""
    path = storage.path_of(location.rstrip("/"))
    if path is None or not location:
        raise InvalidInput(f"Location {location[:_SHOWN]!r} is not inside the warehouse root {storage.location()}")
    require_folder(storage, path, f"Location {location[:_SHOWN]!r}")
    return path


def require_folder(storage: Storage, path: str, what: str) -> None:
    """InvalidInput where no new table can lie. The sentence begins with `what`."""
    why = why_no_folder(path, storage.longest_path)
    if why is not None:
        raise InvalidInput(f"{what} cannot hold a table: it {why}")
    storage.require_writable(path)


def parts_above(path: str) -> Iterator[str]:
    """The folders that a folder lies in."""
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))
