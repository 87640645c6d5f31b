"""V2, and compatibility mode when the folders of the root are listed too. The manifest row decides: what a
process that dies leaves behind without a row is no table, unless listing finds a whole one."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from irc_bridge.backends.directory import namespaces
from irc_bridge.backends.directory.deregistered import unclaimed
from irc_bridge.backends.directory.drops import Drops
from irc_bridge.backends.directory.folders import Folders, FolderState
from irc_bridge.backends.directory.layout import (
    hashed_folder,
    listed_folder,
    listed_name,
    requested_folder,
    require_folder,
)
from irc_bridge.backends.directory.manifest import Manifest
from irc_bridge.backends.directory.manifest_lookup import ManifestLookup
from irc_bridge.backends.directory.manifest_versions import ManifestVersions
from irc_bridge.backends.directory.moving import Mover
from irc_bridge.backends.directory.names import object_id, require_valid_table
from irc_bridge.backends.directory.namespaces import require_free, require_namespace
from irc_bridge.backends.directory.objects import Objects
from irc_bridge.backends.directory.properties import TableProperties, first_properties, its_uuid
from irc_bridge.backends.directory.purging import Purging
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
from irc_bridge.lance_catalog.errors import LocationOverlaps, table_exists
from irc_bridge.lance_catalog.loading import Loading
from irc_bridge.lance_catalog.names import CreatedTable, ResolvedTable, finished
from irc_bridge.lance_catalog.rows import first_version
from irc_bridge.lance_catalog.versions import FileVersions, TableChange, Versions
from irc_bridge.lance_store.folder_locks import FolderLock, locked
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.lance_store.version_files import VersionFiles
from irc_bridge.names import dotted
from irc_bridge.storage.base import Storage

_ATTEMPTS = 100


class ManifestNames:
    properties_in_manifest = True
    commits_beside_others = False
    abilities = (
        *("create_namespace", "drop_namespace", "update_namespace_properties", "rename_table"),
        *("deregistered", "purges", "remove_purged"),
    )

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
        drops = Drops(self, self._manifest, self._rows, self._folders, self._purging, self._is_listed)
        self.deregister_table = drops.deregister
        self.purge_table = drops.purge
        self.drop_table = drops.drop
        self.list_namespaces = self._lookup.list_namespaces
        self.load_namespace = self._lookup.load_namespace
        self.namespace_exists = self._lookup.namespace_exists
        self.list_tables = self._lookup.list_tables
        self.table_exists = self._lookup.table_exists
        self.kept_properties = self._properties.kept
        self.shown_properties = self._properties.shown
        self.updated_ms = self._properties.updated_ms
        self.identity = self._properties.identity
        self.require_able = self.versions.require_able

    def resolve(self, table: Levels) -> ResolvedTable:
        return self._lookup.resolve(table, self._by_file, self.versions)

    def resolve_known(self, table: Levels) -> ResolvedTable:
        return self.resolve(table)

    def resolve_to_make(self, table: Levels, version: int) -> ResolvedTable | None:
        return None

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

    def require_transactions(self) -> None:
        """One commit of `__manifest` has rows of several tables."""

    def commit_all(self, changes: Sequence[TableChange], others: Sequence[Mapping[str, Any]]) -> None:
        self.versions.make([each for each in changes if each.new is not None])

    def after_all(self, changes: Sequence[TableChange]) -> None:
        for each in changes:
            self.store_properties(each)

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

    def create(self, table: Levels, new: NewTable) -> CreatedTable:
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

    def _create_at(self, path: str, table: Levels, new: NewTable) -> CreatedTable:
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
        return CreatedTable(properties)

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
        path = requested_folder(self._storage, location)
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

    def _is_visible(self, path: str) -> bool:
        """Whether directory listing shows the folder as a table."""
        name = listed_name(path)
        place = self._lookup.place((name,), self._manifest.snapshot()) if name else None
        return place is not None and place[0] == path

    def _is_listed(self, path: str) -> bool:
        """Whether directory listing would find the folder once no row claims it."""
        return self._listing and listed_name(path) is not None
