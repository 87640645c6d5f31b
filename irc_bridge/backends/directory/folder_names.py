"""V1: the tables are the `.lance` folders of the root. There are no namespaces."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress

from irc_bridge.backends.directory.deregistered import marked
from irc_bridge.backends.directory.folders import Folders, FolderState
from irc_bridge.backends.directory.layout import listed_folder, requested_folder, require_folder
from irc_bridge.backends.directory.names import is_valid, require_valid_table
from irc_bridge.backends.directory.paging import page_of
from irc_bridge.backends.directory.properties import TableProperties, first_properties, its_uuid
from irc_bridge.backends.directory.purging import Purging, registered_again
from irc_bridge.backends.directory.registering import registered_folder
from irc_bridge.catalog.models import (
    EVERYTHING,
    Deregistered,
    Levels,
    NewTable,
    Page,
    PageRequest,
    Purge,
    TableInfo,
)
from irc_bridge.errors import InvalidInput, NotFound
from irc_bridge.lance_catalog.errors import no_namespace, no_table, table_exists
from irc_bridge.lance_catalog.names import CreatedTable, ResolvedTable
from irc_bridge.lance_catalog.rows import first_version
from irc_bridge.lance_catalog.versions import FileVersions, TableChange, Versions
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.lance_store.version_files import VersionFiles
from irc_bridge.names import quoted
from irc_bridge.storage.base import Storage


class FolderNames:
    properties_in_manifest = True
    abilities = ("deregistered", "purges", "remove_purged")

    def __init__(self, storage: Storage, tables: LanceTables, shown_in: str) -> None:
        """`shown_in` is what commands call the place of the tables: warehouse and namespace."""
        self.probes_inline = storage.local
        self._storage = storage
        self._tables = tables
        self._folders = Folders(storage)
        self._properties = TableProperties(self._folders)
        self._version_files = VersionFiles(storage, self._tables)
        self._versions = FileVersions(self)
        self._purging = Purging(storage, self._tables, self._folders, is_claimed=lambda _: False)
        self._shown_in = shown_in

    def list_namespaces(self, parent: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        self._require_root(parent)
        return Page(())

    def load_namespace(self, namespace: Levels) -> Mapping[str, str]:
        self._require_root(namespace)
        return {}

    def namespace_exists(self, namespace: Levels) -> bool:
        return namespace == ()

    def list_tables(self, namespace: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        self._require_root(namespace)
        return page_of(self._folders.tables(self._folders.names(), page.after), page)

    def table_exists(self, table: Levels) -> bool:
        return len(table) == 1 and self._state(table) is FolderState.TABLE

    def resolve(self, table: Levels) -> ResolvedTable:
        self._require_root(table[:-1])
        if self._state(table) is not FolderState.TABLE:
            raise no_table(table)
        return ResolvedTable(table, self._files(listed_folder(table[0])), self._versions)

    def resolve_known(self, table: Levels) -> ResolvedTable:
        return self.resolve(table)

    def resolve_to_make(self, table: Levels, version: int) -> ResolvedTable | None:
        return None

    def is_current(self, stamp: Hashable | None) -> bool:
        return True

    def state(self, table: ResolvedTable) -> Hashable:
        return table.path

    def kept_properties(self, table: ResolvedTable) -> Mapping[str, str]:
        return self._properties.kept(table)

    def shown_properties(self, kept: Mapping[str, str], metadata: Mapping[str, str]) -> dict[str, str]:
        return self._properties.shown(kept, metadata)

    def updated_ms(self, table: ResolvedTable, latest_ms: int | None) -> int:
        return self._properties.updated_ms(table, latest_ms)

    def identity(self, table: ResolvedTable, version: int) -> Hashable:
        return self._properties.identity(table, version)

    def lies_there(self, table: ResolvedTable) -> bool:
        with suppress(NotFound):
            return self.resolve(table.name).path == table.path
        return False

    def store_properties(self, change: TableChange) -> None:
        properties = self._properties.waiting_after(change)
        if properties is not None:
            self._folders.keep(change.table.path, properties)

    def finish_pending(self, table: Levels) -> None:
        """A change of a name is one step here."""

    def may_move_versions(self, table: ResolvedTable) -> bool:
        return False

    def move_versions(self, table: ResolvedTable, info: TableInfo) -> bool:
        return False

    def declare_before_last(self, table: ResolvedTable) -> object:
        # without versions a table is one that is declared
        return self._folders.reservation(table.path, {}).put()

    def keeper_of_several(self) -> Versions | None:
        return None

    def makes_versions_at_once(self) -> bool:
        return self._storage.local

    def allowed_locations(self) -> Sequence[str]:
        return self._tables.allowed_locations

    def check(self) -> None:
        self._storage.check()

    def place_table(self, table: Levels, location: str | None) -> str:
        return self._storage.location(self._place(table, location))

    def create(self, table: Levels, new: NewTable) -> CreatedTable:
        path = self._place(table, new.location)
        properties = first_properties(new)
        # the marker decides between those who create a name and those who declare it
        marker = self._folders.reservation(path, properties if new.schema is None else its_uuid(properties))
        if new.schema is not None:
            first = first_version(self._files(path), table, new, properties)
            if not first.put():
                raise table_exists(table)
            if not marker.put() or not self._folders.is_whole(path, first):
                first.remove()
                marker.remove()
                raise table_exists(table)
        elif not marker.put() or not self._folders.is_whole(path, marker):
            marker.remove()
            raise table_exists(table)
        return CreatedTable(properties)

    def deregister_table(self, table: Levels) -> None:
        path = self.resolve(table).path
        self._folders.require_no_link(path)
        self._hide(table, path)

    def purge_table(self, table: Levels, after_ms: int | None) -> None:
        """The name is gone when this returns. Who registers the table afterwards has it."""
        path = self.resolve(table).path
        self._folders.require_removable(path)
        if self._folders.unlink(path):
            return
        # whoever registered the table is not done with the folder as long as it has the lock
        self._purging.wait_until_free(path)
        self._purging.purge(table, path, self._hide(table, path), after_ms)

    def drop_table(self, table: Levels) -> None:
        self._require_root(table[:-1])
        if self._state(table) is FolderState.NOTHING:
            raise no_table(table)
        path = listed_folder(table[0])
        self._folders.require_removable(path)
        if self._folders.unlink(path):
            return
        self._purging.wait_until_free(path)
        mark = self._folders.hide(path)
        if mark is None:
            raise no_table(table)
        is_gone = self._purging.purge(table, path, mark.token, after_ms=0)
        if not (is_gone or mark.is_new):
            raise registered_again(table)

    def deregistered(self) -> Iterator[Deregistered]:
        return self._purging.among(marked(self._folders))

    def purges(self) -> Sequence[Purge]:
        return self._purging.pending()

    def remove_purged(self, purge: Purge) -> bool:
        return self._purging.remove(purge)

    def register(self, table: Levels, location: str) -> None:
        self._require_root(table[:-1])
        require_valid_table(table)
        if self._state(table) is FolderState.TABLE:
            raise table_exists(table)
        path = registered_folder(self._storage, self._tables, self._folders, location)
        if path != listed_folder(table[0]):
            raise InvalidInput(
                f"Without a manifest a table lies in the folder of its name: {location} is not "
                f"{self._storage.location(listed_folder(table[0]))}"
            )
        with self._purging.registering(path):
            if self._state(table) is not FolderState.DEREGISTERED or not self._folders.is_hidden(path):
                raise table_exists(table)
            self._folders.show(path)
            self._purging.forget(path)

    def storage_options(self, table: Levels) -> Mapping[str, str]:
        self.resolve(table)
        return self._storage.options

    def _hide(self, table: Levels, path: str) -> str:
        """The token of the marker. TableNotFound when another process took the name first."""
        mark = self._folders.hide(path)
        if mark is None or not mark.is_new:
            raise no_table(table)
        return mark.token

    def _files(self, path: str) -> TableFiles:
        return TableFiles(self._storage, self._tables, self._version_files, path)

    def _state(self, table: Levels) -> FolderState:
        if not table or not is_valid(table):
            return FolderState.NOTHING
        return self._folders.state(listed_folder(table[0]))

    def _place(self, table: Levels, location: str | None) -> str:
        self._require_root(table[:-1])
        require_valid_table(table)
        path = listed_folder(table[0])
        require_folder(self._storage, path, f"The folder of the table {table[0]!r}")
        if location is not None and requested_folder(self._storage, location) != path:
            raise InvalidInput(
                f"Without a manifest a table lies in the folder of its name: leave the location out, or ask for "
                f"{self._storage.location(path)}"
            )
        state = self._state(table)
        if state is FolderState.DEREGISTERED:
            self._purging.free_if_due(path)
            state = self._state(table)
        if state is FolderState.DEREGISTERED:
            raise table_exists(table, self._how_to_free(table, path))
        if state is FolderState.TABLE:
            raise table_exists(table)
        return path

    def _how_to_free(self, table: Levels, path: str) -> str:
        if self._purging.is_pending(path):
            command = f"irc-bridge expire --now {self._shown_in}.{quoted(table[0])}"
            return f", purged, and its files are still there: register it again, or remove them with {command}"
        return ", deregistered: register it again, or drop it with its files"

    def _require_root(self, namespace: Levels) -> None:
        if namespace:
            raise no_namespace(namespace)
