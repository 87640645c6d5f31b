"""Tables that are found by looking at the folders of the root, seed 002's V1."""

import json
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping
from enum import Enum
from itertools import compress

from irc_bridge.backends.directory.layout import listed_folder, listed_name
from irc_bridge.backends.directory.names import why_not
from irc_bridge.errors import Internal, InvalidInput, PermissionDenied
from irc_bridge.lance_store.folder_locks import is_locked
from irc_bridge.lance_store.purges import NATIVE, Mark, mark, token_of
from irc_bridge.lance_store.table_folders import DEREGISTERED, LOCK, MANIFEST, RESERVED, TABLE_PARTS, FirstFile
from irc_bridge.storage.base import Storage
from irc_bridge.storage.layout import FIRST, VERSIONS, version_of

_PARTS = TABLE_PARTS - {RESERVED, DEREGISTERED, LOCK}
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
        foreign = {name for name in names - _PARTS - {LOCK} if not name.startswith(_STAGED_MARK)}
        if foreign or (VERSIONS in names and self.has_version(path)):
            return FolderState.TABLE
        # the lock is the first file of a folder that a process makes, and the last of one that a process removes
        is_busy = LOCK in names and is_locked(self._storage, path)
        return FolderState.DEREGISTERED if is_busy else FolderState.NOTHING

    def is_whole(self, path: str, first: FirstFile) -> bool:
        """Whether what somebody made is still there, and nobody is about to drop it. Of a folder that is being
        removed the marker and the lock go last: without them nothing goes any more."""
        return first.is_whole() and self.state(path) is FolderState.TABLE

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

    def keep_for_later(self, path: str, properties: Mapping[str, str]) -> None:
        """The properties in the row of a table whose row goes: whoever registers the table finds them here."""
        if properties != self.kept(path) and self._storage.names(path) and not self._is_behind_link(path):
            self.keep(path, properties)

    def hide(self, path: str) -> Mark | None:
        """Marks the folder of a table whose name goes. None when no file is left to hide."""
        return mark(self._storage, path)

    def has_mark(self, path: str, mark: Mark | None) -> bool:
        """Whether the folder is still the one that was marked, and nobody makes it a table again."""
        if mark is None:
            return True
        return token_of(self._storage, path) == mark.token and not is_locked(self._storage, path)

    def is_hidden(self, path: str) -> bool:
        return self._storage.identity(f"{path}/{DEREGISTERED}") is not None

    def show(self, path: str) -> None:
        """The way back."""
        self._storage.delete(f"{path}/{DEREGISTERED}")

    def is_link(self, path: str) -> bool:
        return self._storage.is_link(path)

    def unlink(self, path: str) -> bool:
        """Removes the symbolic link at the path; the files that it leads to stay. False where there is no link."""
        if not self._storage.is_link(path):
            return False
        self._storage.delete_tree(path, None)
        return True

    def _is_behind_link(self, path: str) -> bool:
        try:
            self._storage.require_writable(path)
        except InvalidInput:
            return True
        return self._storage.is_link(path)

    def require_no_link(self, path: str) -> None:
        if self._storage.is_link(path):
            raise InvalidInput(
                f"{self._storage.location(path)} is a symbolic link: it cannot be deregistered. Drop the table to "
                f"remove the link; the files that it leads to stay"
            )

    def require_removable(self, path: str) -> None:
        """Whatever a row or a name says, only folders that look like Lance tables are deleted."""
        above = path.rpartition("/")[0]
        if above:
            self._storage.require_writable(above)
        names = set(self._storage.names(path))
        if path.split("/")[0] == MANIFEST or not (
            names & {RESERVED, DEREGISTERED, VERSIONS} or names <= {*_PARTS, LOCK}
        ):
            raise InvalidInput(
                f"{self._storage.location(path)} does not look like a Lance table, so its files were not deleted. "
                f"Deregister the table to remove only its name"
            )

    def remove_locked(self, path: str) -> None:
        """Removes a hidden folder whose lock the caller has."""
        self._storage.delete_tree(path, LOCK, DEREGISTERED)


def properties_of(text: str | bytes | None) -> dict[str, str]:
    return {key: value for key, value in json_object(text).items() if isinstance(value, str)}


def json_object(text: str | bytes | None) -> dict[str, object]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _marker(properties: Mapping[str, str]) -> bytes:
    return json.dumps(dict(properties), ensure_ascii=False).encode() if properties else NATIVE.encode()
