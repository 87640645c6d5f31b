"""Tables that are found by looking at the folders of the root, seed 002's V1."""

import json
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping
from enum import Enum
from itertools import compress
from uuid import uuid4

from irc_bridge.backends.directory.layout import (
    DEREGISTERED,
    MANIFEST,
    RESERVED,
    listed_folder,
    listed_name,
)
from irc_bridge.backends.directory.names import why_not
from irc_bridge.errors import Internal, InvalidInput, PermissionDenied
from irc_bridge.lance_store.first_file import FirstFile
from irc_bridge.lance_store.manifests import FIRST, VERSIONS, version_of
from irc_bridge.lance_store.mirrored import MIRROR
from irc_bridge.lance_store.staged import MADE
from irc_bridge.lance_store.storage import Storage

_MARK = b"reserved"
"""What native Lance writes into its markers."""
_PARTS = {VERSIONS, MADE, MIRROR, "_transactions", "_deletions", "_indices", "_refs", "data", "tree"}
"""The folders of a Lance table. Without a version and a marker they are what an interrupted write left."""
_STAGED_MARK = "lance-marker.staging."


class FolderState(Enum):
    NOTHING = "nothing"
    TABLE = "table"
    DEREGISTERED = "deregistered"


class Folders:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._listed: tuple[Hashable, list[str]] = (None, [])

    def names(self) -> list[str]:
        """The tables that may be in folders, sorted; `state` tells which are."""
        stamp, names = self._listed
        if self._storage.same_folder_stamp("", stamp):
            return names
        stamp = self._storage.folder_stamp("")
        names = sorted(
            name
            for folder in self._storage.folders()
            if (name := listed_name(folder)) is not None and why_not(name) is None
        )
        self._listed = stamp, names
        return names

    def tables(self, names: list[str], after: str | None) -> Iterator[str]:
        names = names[bisect_right(names, after) if after is not None else 0 :]
        folders = map(listed_folder, names)
        listed = (
            map(self._is_listed, folders)
            if self._storage.local
            else self._storage.at_once(self._is_listed, folders)
        )
        return compress(names, listed)

    def _is_listed(self, path: str) -> bool:
        try:
            return self.state(path) is FolderState.TABLE
        except (PermissionDenied, Internal):
            # one folder that cannot be looked into does not break the list
            return True

    def state(self, path: str) -> FolderState:
        if self._storage.local:
            # most tables still have their first version: two looks cost less than a list
            if self._storage.identity(f"{path}/{DEREGISTERED}") is not None:
                return FolderState.DEREGISTERED
            if self._storage.identity(f"{path}/{FIRST}") is not None:
                return FolderState.TABLE
        names = set(self._storage.names(path))
        if DEREGISTERED in names:
            return FolderState.DEREGISTERED
        foreign = {name for name in names - _PARTS if not name.startswith(_STAGED_MARK)}
        if foreign or (VERSIONS in names and self.has_version(path)):
            return FolderState.TABLE
        return FolderState.NOTHING

    def is_whole(self, path: str, first: FirstFile) -> bool:
        """Whether what somebody made is still there, and nobody is about to drop it."""
        return first.is_there() and self.state(path) is FolderState.TABLE

    def has_version(self, path: str) -> bool:
        first = self._storage.local and self._storage.identity(f"{path}/{FIRST}") is not None
        return first or self._storage.holds(f"{path}/{VERSIONS}", version_of)

    def is_lance(self, path: str) -> bool:
        """Whether a table lies exactly here, hidden ones included."""
        return bool({RESERVED, DEREGISTERED} & set(self._storage.names(path))) or self.has_version(path)

    def is_reserved(self, path: str) -> bool:
        return self._storage.identity(f"{path}/{RESERVED}") is not None

    def reservation(self, path: str, properties: Mapping[str, str]) -> FirstFile:
        return FirstFile(self._storage, f"{path}/{RESERVED}", _marker(properties))

    def reserved_ms(self, path: str) -> int:
        return self._storage.modified_ms(f"{path}/{RESERVED}") or 0

    def kept(self, path: str) -> Mapping[str, str]:
        """The properties that wait in the marker for the first version."""
        return properties_of(self._storage.read(f"{path}/{RESERVED}"))

    def keep(self, path: str, properties: Mapping[str, str]) -> None:
        self._storage.write(f"{path}/{RESERVED}", _marker(properties))

    def deregister(self, path: str) -> bool:
        """False when it was deregistered before, or no file is left to hide. Each marker is like no other, so that
        who removes the files knows whether it is still the same."""
        if not self._storage.names(path):
            return False
        return self._storage.put_if_absent(f"{path}/{DEREGISTERED}", uuid4().hex.encode())

    def register(self, path: str) -> None:
        self._storage.delete(f"{path}/{DEREGISTERED}")

    def require_removable(self, path: str) -> None:
        """Whatever a row or a name says, only folders that look like Lance tables are deleted."""
        names = set(self._storage.names(path))
        if path.split("/")[0] == MANIFEST or not (names & {RESERVED, DEREGISTERED, VERSIONS} or names <= _PARTS):
            raise InvalidInput(
                f"{self._storage.location(path)} does not look like a Lance table, so its files were not deleted. "
                f"Deregister the table to remove only its name"
            )

    def remove(self, path: str) -> None:
        """A folder that no row claims any more."""
        self._storage.delete_tree(path, None)

    def remove_deregistered(self, path: str) -> None:
        self._storage.delete_tree(path, DEREGISTERED)


def properties_of(text: str | bytes | None) -> dict[str, str]:
    return {key: value for key, value in json_object(text).items() if isinstance(value, str)}


def json_object(text: str | bytes | None) -> dict[str, object]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _marker(properties: Mapping[str, str]) -> bytes:
    return json.dumps(dict(properties), ensure_ascii=False).encode() if properties else _MARK
