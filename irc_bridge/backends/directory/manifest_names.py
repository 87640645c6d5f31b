"""V2, and compatibility mode when the folders of the root are listed too. The manifest row decides: what a
process that dies leaves behind without a row is no table, unless listing finds a whole one."""

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from irc_bridge.backends.directory import namespaces
from irc_bridge.backends.directory.deregistered import unclaimed
from irc_bridge.backends.directory.folders import Folders, FolderState
from irc_bridge.backends.directory.layout import (
    asked_folder,
    hashed_folder,
    listed_folder,
    listed_name,
    require_folder,
)
from irc_bridge.backends.directory.manifest import Manifest
from irc_bridge.backends.directory.manifest_lookup import ManifestLookup
from irc_bridge.backends.directory.manifest_versions import ManifestVersions
from irc_bridge.backends.directory.moving import Mover
from irc_bridge.backends.directory.names import is_valid, object_id, require_valid_table
from irc_bridge.backends.directory.namespaces import require_free, require_namespace
from irc_bridge.backends.directory.objects import Objects
from irc_bridge.backends.directory.properties import TableProperties, first_properties, its_uuid
from irc_bridge.backends.directory.purging import Purging, registered_again
from irc_bridge.backends.directory.registering import registered_folder
from irc_bridge.backends.directory.table_rows import TableRows
from irc_bridge.catalog.identity import kept_uuid, table_uuid
from irc_bridge.catalog.models import (
    TABLE_UUID,
    Deregistered,
    History,
    Levels,
    NewTable,
    PropertyChanges,
    Purge,
    TableInfo,
)
from irc_bridge.errors import (
    BrokenTable,
    ConcurrentModification,
    Conflict,
    InvalidInput,
    NotFound,
    PermissionDenied,
)
from irc_bridge.lance_catalog.errors import LocationOverlaps, no_table, table_exists
from irc_bridge.lance_catalog.loading import Loading
from irc_bridge.lance_catalog.names import ResolvedTable, finished
from irc_bridge.lance_catalog.rows import first_version
from irc_bridge.lance_catalog.versions import FileVersions, TableChange, Versions
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.folder_locks import FolderLock, locked
from irc_bridge.lance_store.purges import Mark
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.lance_store.version_files import VersionFiles
from irc_bridge.names import dotted
from irc_bridge.storage.base import Storage

_ATTEMPTS = 100


class ManifestNames:
    properties_in_manifest = True

    def __init__(
        self, storage: Storage, tables: LanceTables, listing: bool, manage_versions: bool = False
    ) -> None:
        self.probes_inline = storage.local
        self._storage = storage
        self._listing = listing
        self._tables = tables
        self._folders = Folders(storage)
        self._properties = TableProperties(self._folders)
        self._version_files = VersionFiles(storage, tables)
        self._manifest = Manifest(storage, tables, manage_versions)
        self._by_file = FileVersions(self)
        self.versions = ManifestVersions(storage, self._manifest, self._version_files, self._folders)
        """The keeper of the versions of tables that say `managed_by=impl`."""
        self._rows = TableRows(storage, self._manifest, self._folders)
        self._purging = Purging(storage, tables, self._folders, self._rows.is_claimed)
        self._mover = Mover(storage, tables, self._folders, self._rows)
        self._lookup = ManifestLookup(self._manifest, self._folders, self._files, listing)
        self.list_namespaces = self._lookup.list_namespaces
        self.load_namespace = self._lookup.load_namespace
        self.namespace_exists = self._lookup.namespace_exists
        self.list_tables = self._lookup.list_tables
        self.table_exists = self._lookup.table_exists
        self.kept_properties = self._properties.kept
        self.shown_properties = self._properties.shown
        self.declared_ms = self._properties.declared_ms
        self.identity = self._properties.identity

    def resolve(self, table: Levels) -> ResolvedTable:
        return self._lookup.resolve(table, self._by_file, self.versions)

    def is_current(self, stamp: Hashable | None) -> bool:
        return self._manifest.is_current(stamp)

    def state(self, table: ResolvedTable) -> Hashable:
        row = None if table.properties is None else tuple(table.properties.items())
        counted = table.counted
        return table.path, row, None if counted is None else (len(counted), max(counted, default=0))

    def lies_there(self, table: ResolvedTable) -> bool:
        with suppress(NotFound):
            return self.resolve(table.name).path == table.path
        return False

    def store_properties(self, change: TableChange) -> None:
        properties = self._properties.waiting_after(change)
        if properties is None:
            return
        if change.table.properties is None:
            self._folders.keep(change.table.path, properties)
        else:
            self._rows.keep(change.table, properties)

    def finish_pending(self, table: Levels) -> None:
        """Finishes a rename that stopped half way."""
        resolved = self.resolve(table)
        if resolved.properties is not None and (row := self._rows.row(table)) is not None:
            self._mover.finish(table, row)

    def may_move_versions(self, table: ResolvedTable) -> bool:
        has_only_files = table.properties is not None and table.counted is None
        return has_only_files and self._manifest.manages_versions()

    def move_versions(self, table: ResolvedTable, info: TableInfo) -> bool:
        if not self._manifest.snapshot().manages_versions or table.properties is None:
            return False
        if (info.managed_by == "impl") == (table.counted is not None):
            return False
        try:
            if table.counted is None:
                self.versions.adopt(table)
            else:
                self.versions.release(table)
        except (PermissionDenied, NotFound):
            # who may only read sees what is there
            return False
        return True

    def declare_before_last(self, table: ResolvedTable) -> object:
        return self._folders.reservation(table.path, {}).put()

    def keeper_of_several(self) -> Versions | None:
        return self.versions if self._manifest.manages_versions() else None

    def makes_versions_at_once(self) -> bool:
        return self._storage.local and not self._manifest.snapshot().manages_versions

    def allowed_locations(self) -> Sequence[str]:
        return self._tables.allowed_locations

    def storage_options(self, table: Levels) -> Mapping[str, str]:
        self.resolve(table)
        return self._storage.options

    def check(self) -> None:
        self._storage.check()
        self._manifest.snapshot()

    def deregistered(self) -> Iterator[Deregistered]:
        return self._purging.among(unclaimed(self._storage, self._folders, self._manifest, self._listing))

    def purges(self) -> Sequence[Purge]:
        return self._purging.pending()

    def remove_purged(self, purge: Purge) -> bool:
        return self._purging.remove(purge)

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

    def create(self, table: Levels, new: NewTable) -> Mapping[str, str]:
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

    def _create_at(self, path: str, table: Levels, new: NewTable) -> Mapping[str, str]:
        properties = first_properties(new)
        if new.schema is None:
            first = self._folders.reservation(path, its_uuid(properties))
        else:
            first = first_version(self._files(path), table, new, properties)
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
        return properties

    def deregister_table(self, table: Levels) -> None:
        resolved = self._finished(table)
        is_listed = self._is_listed(resolved.path)
        if is_listed:
            self._folders.require_no_link(resolved.path)
        if self._purging.is_pending(resolved.path):
            # a purge before somebody registered the table; one that is under way has taken the name already
            resolved = self.resolve(table)
            self._purging.forget(resolved.path)
        self._hide(resolved, mark=is_listed)

    def purge_table(self, table: Levels, after_ms: int | None) -> None:
        """The name is gone when this returns. Who registers the table afterwards has it."""
        self.finish_pending(table)
        resolved = self.resolve(table)
        with suppress(BrokenTable):
            resolved = finished(self, table)
        self._folders.require_removable(resolved.path)
        if self._folders.is_link(resolved.path):
            if resolved.properties is not None:
                self._hide(resolved, mark=False)
            self._folders.unlink(resolved.path)
            return
        mark = self._hide(resolved, mark=True)
        if mark is not None:
            self._purging.purge(table, resolved.path, mark.token, after_ms)

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

    def register(self, table: Levels, location: str) -> None:
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

    def rename_table(self, source: Levels, destination: Levels) -> None:
        require_valid_table(destination)
        if self._was_renamed(source, destination):
            self.finish_pending(destination)
            return
        resolved = self._finished(source)
        self._require_free(destination)
        if listed_name(resolved.path) is None:
            self._rows.rename(source, destination, resolved.path)
        else:
            self._mover.move(resolved, destination, self._uuid_to_keep(resolved))

    def _uuid_to_keep(self, table: ResolvedTable) -> Mapping[str, str]:
        """The uuid of a table that somebody else made: it follows from the location, which changes."""
        with suppress(BrokenTable):
            info = Loading(self).read(table, History.REFS).info
            if kept_uuid(info.properties) is None:
                return {TABLE_UUID: str(table_uuid(info))}
        return {}

    def _files(self, path: str) -> TableFiles:
        return TableFiles(self._storage, self._tables, self._version_files, path)

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
        if self._lookup.place(table, snapshot) is not None:
            raise table_exists(table)
        return snapshot.objects

    def _taken(self, table: Levels, path: str) -> Conflict | InvalidInput:
        if path == listed_folder(table[-1]):
            return table_exists(table)
        return InvalidInput(f"Location {self._storage.location(path)} was taken by another table meanwhile")

    def _finished(self, table: Levels) -> ResolvedTable:
        """The table, after a rename and a version were finished that other processes left half done."""
        self.finish_pending(table)
        return finished(self, table)

    def _was_renamed(self, source: Levels, destination: Levels) -> bool:
        row = self._rows.row(destination)
        return row is not None and len(source) == 1 and row.moved_from == listed_folder(source[0])

    def _hide(self, resolved: ResolvedTable, mark: bool) -> Mark | None:
        """Takes the name away. The marker stays in the folder when another process was faster: it says that the
        folder is no table, and whoever makes it one removes the marker."""
        if resolved.properties is not None:
            return self._hide_with_row(resolved, resolved.properties, mark)
        marked = self._folders.hide(resolved.path)
        if marked is None or not marked.is_new:
            raise no_table(resolved.name)
        self._rows.forget_folder(resolved.path)
        return marked

    def _hide_with_row(self, resolved: ResolvedTable, row: Mapping[str, str], mark: bool) -> Mark | None:
        for attempt in range(_ATTEMPTS):
            marked = self._folders.hide(resolved.path) if mark else None
            self._folders.keep_for_later(resolved.path, row)
            try:
                self._rows.forget(
                    resolved.name, resolved.path, partial(self._folders.has_mark, resolved.path, marked)
                )
                return marked
            except Lost:
                time.sleep(0.002 * attempt)
        raise ConcurrentModification(f"Others kept dropping and making {dotted(resolved.name)}: try again")

    def _is_visible(self, path: str) -> bool:
        """Whether directory listing shows the folder as a table."""
        name = listed_name(path)
        place = self._lookup.place((name,), self._manifest.snapshot()) if name else None
        return place is not None and place[0] == path

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
