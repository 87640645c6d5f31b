"""V2, and compatibility mode when the folders of the root are listed too. The manifest row decides: what a
process that dies leaves behind without a row is no table, unless listing finds a whole one."""

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from irc_bridge.backends.directory import namespaces
from irc_bridge.backends.directory.folders import FolderState
from irc_bridge.backends.directory.layout import (
    asked_folder,
    hashed_folder,
    listed_folder,
    listed_name,
    require_folder,
)
from irc_bridge.backends.directory.loading import Found
from irc_bridge.backends.directory.manifest_reads import ManifestReads
from irc_bridge.backends.directory.moving import Mover
from irc_bridge.backends.directory.names import is_valid, object_id, require_valid_table
from irc_bridge.backends.directory.namespaces import require_free, require_namespace
from irc_bridge.backends.directory.objects import Objects
from irc_bridge.backends.directory.properties import first_properties, its_uuid
from irc_bridge.backends.directory.purging import registered_again
from irc_bridge.backends.directory.registering import registered_folder
from irc_bridge.backends.directory.rows import Rows
from irc_bridge.catalog.identity import kept_uuid, table_uuid
from irc_bridge.catalog.models import TABLE_UUID, History, Levels, NewTable, PropertyChanges, TableInfo
from irc_bridge.errors import BrokenTable, ConcurrentModification, Conflict, InvalidInput, NotFound
from irc_bridge.lance_catalog.errors import LocationOverlaps, no_table, table_exists
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.folder_locks import FolderLock, locked
from irc_bridge.lance_store.purges import Mark
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.names import dotted
from irc_bridge.storage.base import Storage

_ATTEMPTS = 100


class ManifestCatalog(ManifestReads, Rows):
    def __init__(
        self, storage: Storage, tables: LanceTables, listing: bool, manage_versions: bool = False
    ) -> None:
        super().__init__(storage, tables, listing, manage_versions)
        self._mover = Mover(storage, self._tables, self._folders, self._rows)

    def create_namespace(self, namespace: Levels, properties: Mapping[str, str]) -> None:
        if self.table_exists(namespace):
            raise table_exists(namespace)
        namespaces.create_namespace(self._manifest, namespace, properties)

    def drop_namespace(self, namespace: Levels) -> None:
        namespaces.drop_namespace(self._manifest, namespace)

    def update_namespace_properties(
        self, namespace: Levels, removals: frozenset[str], updates: Mapping[str, str]
    ) -> PropertyChanges:
        return namespaces.update_properties(self._manifest, namespace, removals, updates)

    def place_table(self, table: Levels, location: str | None) -> str:
        return self._storage.location(self._place(table, location))

    def create_table(self, table: Levels, new: NewTable) -> TableInfo:
        path = self._place(table, new.location)
        if new.location is not None:
            with locked(self._storage, path, "create"):
                return self._create_at(path, table, new)
        for _ in range(_ATTEMPTS):
            try:
                return self._create_at(path, table, new)
            except LocationOverlaps:
                # another table took the folder of the name meanwhile
                path = self._place(table, None)
        raise ConcurrentModification(f"Others kept dropping and making {dotted(table)}: try again")

    def _create_at(self, path: str, table: Levels, new: NewTable) -> TableInfo:
        properties = first_properties(new)
        if new.schema is None:
            first = self._folders.reservation(path, its_uuid(properties))
        else:
            first = self._first_version(table, path, new, properties)
        if not first.put():
            raise self._taken(table, path)

        def require_whole() -> None:
            if not self._folders.is_whole(path, first):
                raise table_exists(table, ", and is being dropped: try again")

        try:
            self._rows.insert(table, path, properties if new.schema is None else {}, require_whole)
        except (Conflict, NotFound, InvalidInput):
            first.remove()
            raise
        made = self._made(table, new, properties)
        if self._manifest.manages_versions():
            with suppress(NotFound):
                self._governed(table)  # its first version gets a row
        return made

    def deregister_table(self, table: Levels) -> None:
        self._find_settled(table)
        found = self._synchronised(table)
        is_listed = self._is_listed(found.path)
        if is_listed:
            self._folders.require_no_link(found.path)
        if self._purging.is_pending(found.path):
            # a purge before somebody registered the table; one that is under way has taken the name already
            found = self._find(table)
            self._purging.forget(found.path)
        self._hide(found, mark=is_listed)

    def purge_table(self, table: Levels, after_ms: int | None) -> None:
        """The name is gone when this returns. Who registers the table afterwards has it."""
        found = self._find_settled(table)
        with suppress(BrokenTable):
            found = self._synchronised(table)
        self._folders.require_removable(found.path)
        if self._folders.is_link(found.path):
            if found.row is not None:
                self._hide(found, mark=False)
            self._folders.unlink(found.path)
            return
        mark = self._hide(found, mark=True)
        if mark is not None:
            self._purging.purge(table, found.path, mark.token, after_ms)

    def drop_table(self, table: Levels) -> None:
        path = self._deregistered_folder(table)
        if path is None:
            self.purge_table(table, after_ms=0)
            return
        self._folders.require_removable(path)
        if self._folders.unlink(path):
            return
        mark = self._folders.hide(path)
        if mark is None:
            raise no_table(table)
        if mark.is_new:
            # another process made it a table again
            self._rows.forget_folder(path)
        is_gone = self._purging.purge(table, path, mark.token, after_ms=0)
        if not (is_gone or mark.is_new):
            raise registered_again(table)

    def register_table(self, table: Levels, location: str) -> TableInfo:
        require_valid_table(table)
        self._require_free(table)
        path = registered_folder(self._storage, self._tables, self._folders, location)
        self._rows.require_unclaimed(self._manifest.objects(), path)
        if self._is_visible(path):
            raise InvalidInput(f"Location {location} is the table {listed_name(path)} already")
        with self._purging.registering(path) as lock:
            properties, was_hidden = self._folders.kept(path), self._folders.is_hidden(path)
            self._rows.insert(table, path, properties, lambda: self._require_there(path, lock, was_hidden))
            if was_hidden:
                self._folders.show(path)
                self._purging.forget(path)
        return self._now(table)

    def rename_table(self, source: Levels, destination: Levels) -> None:
        require_valid_table(destination)
        if self._was_renamed(source, destination):
            self._find_settled(destination)
            return
        self._find_settled(source)
        found = self._synchronised(source)
        self._require_free(destination)
        if listed_name(found.path) is None:
            self._rows.rename(source, destination, found.path)
        else:
            self._mover.move(found, destination, self._uuid_to_keep(found))

    def _uuid_to_keep(self, found: Found) -> Mapping[str, str]:
        """The uuid of a table that somebody else made: it follows from the location, which changes."""
        with suppress(BrokenTable):
            info = self._loader.load_found(lambda: found, History.REFS, None)
            if isinstance(info, TableInfo) and kept_uuid(info.properties) is None:
                return {TABLE_UUID: str(table_uuid(info))}
        return {}

    def _found_to_commit(self, table: Levels) -> Found:
        self._find_settled(table)
        found = self._governed(table)
        if found.versions is not None and self._managed.has_stranger(found, self._managed.latest(found) + 1):
            self._managed.adopt(found)
            found = self._governed(table)
        return found

    def _keep(self, found: Found, properties: Mapping[str, str]) -> None:
        if found.row is None:
            self._folders.keep(found.path, properties)
        else:
            self._rows.keep(found, properties)

    def _require_there(self, path: str, lock: FolderLock | None, was_hidden: bool) -> None:
        """The folder that a row is about to claim. When another process registered a hidden one, it is not hidden
        any more. One that was never hidden is not listed because a namespace has its name."""
        is_kept = lock is None or lock.is_held()
        is_free = not was_hidden or self._folders.is_hidden(path) or not self._is_listed(path)
        if not (is_kept and is_free and self._folders.is_lance(path)):
            location = self._storage.location(path)
            raise ConcurrentModification(f"Others changed the table at {location} meanwhile: try again")

    def _place(self, table: Levels, location: str | None) -> str:
        require_valid_table(table)
        objects = self._require_free(table)
        if location is None:
            path = self._own_folder(objects, table)
            require_folder(self._storage, path, f"The folder of the table {dotted(table)!r}")
            return path
        path = asked_folder(self._storage, location)
        self._rows.require_unclaimed(objects, path)
        if self._folders.state(path) is not FolderState.NOTHING:
            raise InvalidInput(f"Location {location} is not empty. Register the table that lies there instead")
        return path

    def _own_folder(self, objects: Objects, table: Levels) -> str:
        if self._listing and len(table) == 1:
            path = listed_folder(table[0])
            if objects.at(path) is None and self._folders.state(path) is not FolderState.DEREGISTERED:
                return path
        return hashed_folder(object_id(table))

    def _require_free(self, table: Levels) -> Objects:
        snapshot = self._manifest.snapshot()
        require_namespace(snapshot.objects, table[:-1])
        require_free(snapshot.objects, table)
        if self._lookup(table, snapshot) is not None:
            raise table_exists(table)
        return snapshot.objects

    def _taken(self, table: Levels, path: str) -> Conflict | InvalidInput:
        if path == listed_folder(table[-1]):
            return table_exists(table)
        return InvalidInput(f"Location {self._storage.location(path)} was taken by another table meanwhile")

    def _find_settled(self, table: Levels) -> Found:
        """The table, after a rename that stopped half way was finished."""
        found = self._find(table)
        if found.row is not None and (row := self._rows.row(table)) is not None:
            self._mover.finish(table, row)
        return found

    def _was_renamed(self, source: Levels, destination: Levels) -> bool:
        row = self._rows.row(destination)
        return row is not None and len(source) == 1 and row.moved_from == listed_folder(source[0])

    def _hide(self, found: Found, mark: bool) -> Mark | None:
        """Takes the name away. The marker stays in the folder when another process was faster: it says that the
        folder is no table, and whoever makes it one removes the marker."""
        if found.row is not None:
            return self._hide_with_row(found, found.row, mark)
        marked = self._folders.hide(found.path)
        if marked is None or not marked.is_new:
            raise no_table(found.table)
        self._rows.forget_folder(found.path)
        return marked

    def _hide_with_row(self, found: Found, row: Mapping[str, str], mark: bool) -> Mark | None:
        for attempt in range(_ATTEMPTS):
            marked = self._folders.hide(found.path) if mark else None
            self._folders.keep_for_later(found.path, row)
            try:
                self._rows.forget(found.table, found.path, partial(self._folders.has_mark, found.path, marked))
                return marked
            except Lost:
                time.sleep(0.002 * attempt)
        raise ConcurrentModification(f"Others kept dropping and making {dotted(found.table)}: try again")

    def _is_visible(self, path: str) -> bool:
        """Whether directory listing shows the folder as a table."""
        name = listed_name(path)
        found = self._lookup((name,), self._manifest.snapshot()) if name else None
        return found is not None and found.path == path

    def _is_listed(self, path: str) -> bool:
        """Whether directory listing would find the folder once no row claims it."""
        return self._listing and listed_name(path) is not None

    def _deregistered_folder(self, table: Levels) -> str | None:
        if not self._listing or len(table) != 1 or not is_valid(table):
            return None
        path = listed_folder(table[0])
        objects = self._manifest.objects()
        if objects.row(table[0]) is not None or objects.at(path) is not None:
            return None
        return path if self._folders.state(path) is FolderState.DEREGISTERED else None
