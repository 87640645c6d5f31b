"""From the latest version known to the latest there is, by looking for the next one instead of listing the folder.
A version removed above the known one looks like the end: this is trusted only where there can be none."""

import json
import time

from irc_bridge.storage.base import FileEntry, Storage
from irc_bridge.storage.layout import name_of, version_of

_HINT = "latest_version_hint.json"
"""Where Lance notes the latest version of a table on a local disk."""
_STEPS = 64
_YOUNG_MS = 10_000
"""A writer that leaves no hint would have to make versions and remove them within this time."""


def followed(storage: Storage, folder: str, known: FileEntry) -> FileEntry | None:
    """None when only a list can tell."""
    # a list of an object store costs no more than a look
    if not storage.local or storage.identity(f"{folder}/{known.name}") != known.identity:
        return None
    newest = known
    for _ in range(_STEPS):
        name = name_of(_number(newest.name) + 1, like=newest.name)
        identity = storage.identity(f"{folder}/{name}")
        if identity is None:
            return newest if _is_the_end(storage, folder, newest.name) else None
        newest = FileEntry(name, identity)
    return None


def hinted(storage: Storage, folder: str) -> int:
    """0 where there is no hint."""
    try:
        version = json.loads(storage.read(f"{folder}/{_HINT}") or b"{}")["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0
    return version if isinstance(version, int) else 0


def hint(storage: Storage, folder: str, latest: int) -> None:
    """Before versions below the latest are removed."""
    if storage.local and hinted(storage, folder) < latest:
        storage.write(f"{folder}/{_HINT}", json.dumps({"version": latest}, separators=(",", ":")).encode())


def forget_hint(storage: Storage, folder: str) -> None:
    storage.delete(f"{folder}/{_HINT}")


def _is_the_end(storage: Storage, folder: str, name: str) -> bool:
    modified_ms = storage.modified_ms(f"{folder}/{name}")
    young = modified_ms is not None and 0 <= time.time_ns() // 1_000_000 - modified_ms < _YOUNG_MS
    return young and hinted(storage, folder) <= _number(name)


def _number(name: str) -> int:
    number = version_of(name)
    assert number is not None
    return number
