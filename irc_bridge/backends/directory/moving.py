"""A renamed table leaves the folder that directory listing would find it in (seed 002).

    step                                   a crash after it leaves
    1 the new folder with a MOVING note    a copy that no row names; the next rename to this name removes it
    2 all files are copied into it         the same
    3 the row changes name and folder      the new table, and an old folder that its row claims and so hides
    4 files that came late are copied      the same
    5 the old folder goes                  a row that claims a folder which is gone
    6 the row and the note forget it       nothing

After step 3 any change of the table, and the same rename again, finishes the job.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress

from irc_bridge.backends.directory.folders import Folders
from irc_bridge.backends.directory.layout import hashed_folder, require_folder
from irc_bridge.backends.directory.names import object_id
from irc_bridge.backends.directory.objects import Row
from irc_bridge.backends.directory.table_rows import TableRows
from irc_bridge.catalog.models import Levels
from irc_bridge.errors import Conflict, InvalidInput, NotFound
from irc_bridge.lance_catalog.errors import committed_meanwhile, no_table
from irc_bridge.lance_catalog.names import ResolvedTable
from irc_bridge.lance_store.folder_locks import FolderLocked, locked
from irc_bridge.lance_store.table_folders import LOCK
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.names import dotted
from irc_bridge.storage.base import Storage
from irc_bridge.storage.layout import VERSIONS

log = logging.getLogger(__name__)

MOVING = ".irc-bridge-moving"
_ATTEMPTS = 100


class Mover:
    def __init__(self, storage: Storage, tables: LanceTables, folders: Folders, rows: TableRows) -> None:
        self._storage = storage
        self._tables = tables
        self._folders = folders
        self._rows = rows

    def move(self, resolved: ResolvedTable, destination: Levels, properties: Mapping[str, str]) -> None:
        """`properties` are those that the table gets in its row."""
        old, new = resolved.path, hashed_folder(object_id(destination))
        require_folder(self._storage, new, f"The folder of the table {dotted(destination)!r}")
        self._remove_unfinished(destination)
        self._storage.write(f"{new}/{MOVING}", old.encode())
        try:
            counted = resolved.counted
            versions = self._rows.versions(resolved.name) if counted is None else set(counted)
            newest = self._tables.newest(old)
            self._storage.copy_tree(old, new)
            after = self._tables.newest(old)
            if after is None and newest is not None:
                raise no_table(resolved.name)
            if after != newest:
                raise committed_meanwhile(self._storage.location(old))
            kept = self._folders.kept(old) if resolved.properties is None else {}
            self._rows.move(resolved, destination, new, versions, {**kept, **properties})
        except (Conflict, NotFound, InvalidInput):
            self._storage.delete_tree(new, MOVING)
            raise
        with suppress(FolderLocked):
            self._leave(destination, old, new)

    def finish(self, table: Levels, row: Row) -> None:
        """FolderLocked while another process that finishes it takes long."""
        for attempt in range(_ATTEMPTS if row.moved_from is not None else 0):
            try:
                self._leave(table, row.moved_from or "", row.folder)
                return
            except FolderLocked:
                if attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(0.05)

    def _leave(self, table: Levels, old: str, new: str) -> None:
        """Does nothing after another process did it: then there may be a new table in the old folder."""
        if self._storage.names(old):
            with locked(self._storage, old, "remove"):
                if self._rows.has_left(table, old):
                    return
                self._empty(old, new)
        self._tables.forget(old)
        self._storage.delete(f"{new}/{MOVING}")
        self._rows.has_moved(table, new)

    def _empty(self, old: str, new: str) -> None:
        # who had the table open may have committed until now
        self._storage.copy_tree(old, new)
        self._storage.delete(f"{new}/{LOCK}")
        self._folders.show(new)
        self._folders.hide(old)
        if self._is_all_of(old, new):
            self._folders.remove_locked(old)
        else:
            log.warning(
                "%s got a version that the renamed table has otherwise: it stays, deregistered",
                self._storage.location(old),
            )

    def _is_all_of(self, old: str, new: str) -> bool:
        """False when both places got a next version."""
        newest = self._tables.newest(old)
        if newest is None:
            return True
        read = self._storage.read
        return read(f"{new}/{VERSIONS}/{newest.name}") == read(f"{old}/{VERSIONS}/{newest.name}")

    def _remove_unfinished(self, destination: Levels) -> None:
        for folder in self._storage.folders():
            named = folder[8:] == f"_{object_id(destination)}" and self._rows.holder(folder) is None
            names = self._storage.names(folder) if named else ()
            # an empty one was not even begun
            if named and (MOVING in names or not names):
                self._storage.delete_tree(folder, MOVING if names else None)
