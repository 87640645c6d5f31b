"""V2, and compatibility mode when the folders of the root are listed too. The manifest row decides: what a
process that dies leaves behind without a row is no table, unless listing finds a whole one."""

from collections.abc import Mapping
from contextlib import suppress

from irc_bridge.backends.directory import namespaces
from irc_bridge.backends.directory.changes import commit_properties, first_properties, its_uuid
from irc_bridge.backends.directory.folders import FolderState
from irc_bridge.backends.directory.layout import (
    asked_folder,
    hashed_folder,
    listed_folder,
    listed_name,
    overlap,
)
from irc_bridge.backends.directory.loading import Found
from irc_bridge.backends.directory.manifest import TABLE, Row, Snapshot, metadata_text, values
from irc_bridge.backends.directory.manifest_reads import ManifestReads
from irc_bridge.backends.directory.name_errors import no_table, table_exists
from irc_bridge.backends.directory.names import is_valid, levels, object_id, require_valid_table
from irc_bridge.backends.directory.namespaces import (
    confirm_parent,
    delete_row,
    require_free,
    require_namespace,
)
from irc_bridge.backends.directory.registering import registered_folder
from irc_bridge.catalog.models import Commit, Levels, NewTable, PropertyChanges, TableInfo
from irc_bridge.errors import (
    Conflict,
    InvalidInput,
    NamespaceNotFound,
    NotFound,
    TableAlreadyExists,
    TableNotFound,
)
from irc_bridge.lance_store.rows import KeyedTable


class ManifestCatalog(ManifestReads):
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
            first = self._tables.first_version(path, new.schema, properties)
        if not first.put():
            raise self._taken(table, path)
        try:
            self._insert(table, path, properties if new.schema is None else {})
        except (Conflict, NotFound, InvalidInput):
            first.remove()
            raise
        if not self._folders.is_whole(path, first):
            with suppress(TableNotFound):
                self._forget_row(table, path)
            raise table_exists(table, ", and is being dropped: try again")
        return self._info(table)

    def deregister_table(self, table: Levels) -> None:
        self._hide(self._find(table))

    def drop_table(self, table: Levels) -> None:
        path = self._deregistered_folder(table)
        if path is None:
            found = self._find(table)
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
        snapshot = self._manifest.snapshot()
        self._require_free(snapshot, table)
        path = registered_folder(self._storage, self._tables, location)
        self._require_unclaimed(snapshot, path)
        if self._is_listed(path) and self._folders.state(path) is FolderState.TABLE:
            raise InvalidInput(f"Location {location} is the table {listed_name(path)} already")
        self._insert(table, path, {})
        self._folders.register(path)
        return self._info(table)

    def rename_table(self, source: Levels, destination: Levels) -> None:
        require_valid_table(destination)
        found = self._find(source)
        self._require_free(self._manifest.snapshot(), destination)
        if found.row is None:
            with suppress(TableAlreadyExists, InvalidInput):
                self._insert(source, found.path, self._folders.kept(found.path))
        self._switch(source, destination, found.path)
        try:
            require_namespace(self._manifest.snapshot(), destination[:-1])
        except NamespaceNotFound:
            self._switch(destination, source, found.path)
            raise

    def commit(self, table: Levels, commit: Commit) -> TableInfo:
        found = self._find(table)

        def keep(properties: Mapping[str, str]) -> None:
            if found.row is None:
                self._folders.keep(found.path, properties)
            else:
                self._keep_in_row(found, properties)

        commit_properties(self._tables, found.path, commit, self._loader.kept(found), keep)
        return self._info(table)

    def _info(self, table: Levels) -> TableInfo:
        info = self.load_table(table)
        assert isinstance(info, TableInfo)
        return info

    def _place(self, table: Levels, location: str | None) -> str:
        require_valid_table(table)
        snapshot = self._manifest.snapshot()
        self._require_free(snapshot, table)
        if location is None:
            return self._own_folder(snapshot, table)
        path = asked_folder(self._storage, location)
        self._require_unclaimed(snapshot, path)
        if self._folders.state(path) is not FolderState.NOTHING:
            raise InvalidInput(f"Location {location} is not empty. Register the table that lies there instead")
        return path

    def _own_folder(self, snapshot: Snapshot, table: Levels) -> str:
        if self._listing and len(table) == 1:
            path = listed_folder(table[0])
            if snapshot.at(path) is None and self._folders.state(path) is not FolderState.DEREGISTERED:
                return path
        return hashed_folder(object_id(table))

    def _require_free(self, snapshot: Snapshot, table: Levels) -> None:
        require_namespace(snapshot, table[:-1])
        require_free(snapshot, table)
        if self._lookup(table, snapshot) is not None:
            raise table_exists(table)

    def _require_unclaimed(self, snapshot: Snapshot, path: str) -> None:
        other = next((each for each in snapshot.locations() if overlap(path, each)), None)
        if other is None:
            parts = path.split("/")
            above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
            other = next((each for each in above if self._folders.is_lance(each)), None)
        if other is not None:
            raise InvalidInput(
                f"Location {self._storage.location(path)} overlaps that of another table, "
                f"{self._storage.location(other)}"
            )

    def _taken(self, table: Levels, path: str) -> Conflict | InvalidInput:
        if path == listed_folder(table[-1]):
            return table_exists(table)
        return InvalidInput(f"Location {self._storage.location(path)} was taken by another table meanwhile")

    def _insert(self, table: Levels, path: str, properties: Mapping[str, str]) -> None:
        def insert(snapshot: Snapshot, rows: KeyedTable) -> None:
            require_namespace(snapshot, table[:-1])
            require_free(snapshot, table)
            self._require_unclaimed(snapshot, path)
            assert snapshot.state is not None
            rows.insert(snapshot.state, values(object_id(table), TABLE, path, properties))

        self._manifest.change(insert)
        self._confirm(table, path)

    def _confirm(self, table: Levels, path: str) -> None:
        """Commits on different rows never conflict, so what they have in common is looked at afterwards."""
        confirm_parent(self._manifest, table)
        if len(self._manifest.snapshot().holders(path)) > 1:
            self._manifest.change(lambda snapshot, rows: delete_row(snapshot, rows, object_id(table)))
            raise InvalidInput(f"Location {self._storage.location(path)} was taken by another table meanwhile")

    def _hide(self, found: Found) -> None:
        marked = self._is_listed(found.path) and self._folders.deregister(found.path)
        if found.row is None:
            # whoever just made it there may have written its row since, and looks at the marker after that
            for holder in self._manifest.snapshot().holders(found.path):
                with suppress(TableNotFound):
                    self._forget_row(levels(holder), found.path)
            return
        try:
            self._forget_row(found.table, found.path)
        except TableNotFound:
            if marked:
                self._folders.register(found.path)
            raise

    def _forget_row(self, table: Levels, path: str) -> None:
        def delete(snapshot: Snapshot, rows: KeyedTable) -> None:
            self._require_row(snapshot, table, path)
            delete_row(snapshot, rows, object_id(table))

        self._manifest.change(delete)

    def _switch(self, old: Levels, new: Levels, path: str) -> None:
        def switch(snapshot: Snapshot, rows: KeyedTable) -> None:
            require_free(snapshot, new)
            self._require_row(snapshot, old, path)
            assert snapshot.state is not None
            rows.rename(snapshot.state, object_id(old), {"object_id": object_id(new)})

        self._manifest.change(switch)

    def _keep_in_row(self, found: Found, properties: Mapping[str, str]) -> None:
        def keep(snapshot: Snapshot, rows: KeyedTable) -> None:
            row = self._require_row(snapshot, found.table, found.path)
            assert snapshot.state is not None
            rows.update(snapshot.state, row.object_id, {"metadata": metadata_text(row.metadata, properties)})

        self._manifest.change(keep)

    @staticmethod
    def _require_row(snapshot: Snapshot, table: Levels, path: str) -> Row:
        row = snapshot.table(object_id(table))
        if row is None or row.location != path:
            raise no_table(table)
        return row

    def _is_listed(self, path: str) -> bool:
        """Whether directory listing would find the folder once no row claims it."""
        return self._listing and listed_name(path) is not None

    def _deregistered_folder(self, table: Levels) -> str | None:
        if not self._listing or len(table) != 1 or not is_valid(table):
            return None
        path = listed_folder(table[0])
        snapshot = self._manifest.snapshot()
        if snapshot.row(table[0]) is not None or snapshot.at(path) is not None:
            return None
        return path if self._folders.state(path) is FolderState.DEREGISTERED else None
