"""V2, and compatibility mode when the folders of the root are listed too. The manifest row decides: what a
process that dies leaves behind without a row is no table, unless listing finds a whole one."""

from collections.abc import Mapping
from contextlib import suppress

from irc_bridge.backends.directory import namespaces
from irc_bridge.backends.directory.beginnings import first_properties, its_uuid
from irc_bridge.backends.directory.folders import FolderState
from irc_bridge.backends.directory.layout import (
    asked_folder,
    hashed_folder,
    listed_folder,
    listed_name,
)
from irc_bridge.backends.directory.loading import Found
from irc_bridge.backends.directory.manifest_reads import ManifestReads
from irc_bridge.backends.directory.moving import Mover
from irc_bridge.backends.directory.name_errors import table_exists
from irc_bridge.backends.directory.names import is_valid, levels, object_id, require_valid_table
from irc_bridge.backends.directory.namespaces import require_free, require_namespace
from irc_bridge.backends.directory.objects import Objects
from irc_bridge.backends.directory.registering import registered_folder
from irc_bridge.backends.directory.rows import Rows
from irc_bridge.catalog.models import Levels, NewTable, PropertyChanges, TableInfo
from irc_bridge.errors import Conflict, InvalidInput, NotFound, TableNotFound
from irc_bridge.lance_store.storage import Storage


class ManifestCatalog(ManifestReads, Rows):
    def __init__(self, storage: Storage, listing: bool, manage_versions: bool = False) -> None:
        super().__init__(storage, listing, manage_versions)
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
        properties = first_properties(new)
        if new.schema is None:
            first = self._folders.reservation(path, its_uuid(properties))
        else:
            first = self._first_version(path, new, properties)
        if not first.put():
            raise self._taken(table, path)
        try:
            self._rows.insert(table, path, properties if new.schema is None else {})
        except (Conflict, NotFound, InvalidInput):
            first.remove()
            raise
        if not self._folders.is_whole(path, first):
            with suppress(TableNotFound):
                self._rows.forget(table, path)
            raise table_exists(table, ", and is being dropped: try again")
        return self._info(table)

    def deregister_table(self, table: Levels) -> None:
        self._find_settled(table)
        self._hide(self._synchronised(table))

    def drop_table(self, table: Levels) -> None:
        path = self._deregistered_folder(table)
        if path is None:
            found = self._find_settled(table)
            path = found.path
            self._folders.require_removable(path)
            self._hide(found)
        else:
            self._folders.require_removable(path)
        if self._is_listed(path):
            self._folders.remove_deregistered(path)
        else:
            self._folders.remove(path)
        self._tables.forget(path)

    def register_table(self, table: Levels, location: str) -> TableInfo:
        require_valid_table(table)
        self._require_free(table)
        path = registered_folder(self._storage, self._tables, self._folders, location)
        self._rows.require_unclaimed(self._manifest.objects(), path)
        if self._is_visible(path):
            raise InvalidInput(f"Location {location} is the table {listed_name(path)} already")
        self._rows.insert(table, path, {})
        self._folders.register(path)
        return self._info(table)

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
            self._mover.move(found, destination)

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

    def _info(self, table: Levels) -> TableInfo:
        info = self.load_table(table)
        assert isinstance(info, TableInfo)
        return info

    def _place(self, table: Levels, location: str | None) -> str:
        require_valid_table(table)
        objects = self._require_free(table)
        if location is None:
            return self._own_folder(objects, table)
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

    def _hide(self, found: Found) -> None:
        marked = self._is_listed(found.path) and self._folders.deregister(found.path)
        if found.row is None:
            # whoever just made it there may have written its row since, and looks at the marker after that
            holder = self._rows.holder(found.path)
            if holder is not None:
                with suppress(TableNotFound):
                    self._rows.forget(levels(holder), found.path)
            return
        try:
            self._rows.forget(found.table, found.path)
        except TableNotFound:
            if marked:
                self._folders.register(found.path)
            raise

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
