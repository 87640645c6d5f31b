"""A backend made of a dict: names live in this process, tables in folders of a disk. It shows what a new keeper of
names has to bring (`irc_bridge.lance_catalog.names.Names`)."""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple
from uuid import uuid4

from irc_bridge.backends import OpenBackend
from irc_bridge.catalog.models import EVERYTHING, TABLE_UUID, Levels, NewTable, Page, PageRequest, TableInfo
from irc_bridge.errors import InvalidInput
from irc_bridge.lance_catalog.catalog import LanceCatalog
from irc_bridge.lance_catalog.commits import properties_after
from irc_bridge.lance_catalog.errors import no_namespace, no_table, table_exists
from irc_bridge.lance_catalog.names import CreatedTable, ResolvedTable
from irc_bridge.lance_catalog.rows import first_version
from irc_bridge.lance_catalog.versions import FileVersions, TableChange
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.lance_store.version_files import VersionFiles
from irc_bridge.settings_fields import WarehouseSettings
from irc_bridge.storage.base import open_storage


class Entry(NamedTuple):
    path: str
    properties: Mapping[str, str]
    """Those that wait for the first version."""


class DictNames:
    probes_inline = True
    properties_in_manifest = True
    abilities = ()

    def __init__(self, root: str) -> None:
        self._entries: dict[Levels, Entry] = {}
        self._changes = 0
        self._storage = open_storage(root, {})
        self._tables = LanceTables(self._storage, [root])
        self._version_files = VersionFiles(self._storage, self._tables)
        self._by_file = FileVersions(self)

    def list_namespaces(self, parent: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        self.load_namespace(parent)
        return Page(())

    def load_namespace(self, namespace: Levels) -> Mapping[str, str]:
        if namespace:
            raise no_namespace(namespace)
        return {}

    def namespace_exists(self, namespace: Levels) -> bool:
        return not namespace

    def list_tables(self, namespace: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        self.load_namespace(namespace)
        names = sorted(name for (name,) in self._entries if name > (page.after or ""))
        return Page(tuple(names[: page.limit]), page.limit is not None and len(names) > page.limit)

    def table_exists(self, table: Levels) -> bool:
        return table in self._entries

    def check(self) -> None: ...

    def resolve(self, table: Levels) -> ResolvedTable:
        self.load_namespace(table[:-1])
        if table not in self._entries:
            raise no_table(table)
        entry = self._entries[table]
        return ResolvedTable(table, self._files(entry.path), self._by_file, entry.properties, None, self._changes)

    resolve_known = resolve

    def resolve_to_make(self, table: Levels, version: int) -> None: ...

    def is_current(self, stamp: Hashable | None) -> bool:
        return stamp == self._changes

    def state(self, table: ResolvedTable) -> Hashable:
        return table.path, tuple((table.properties or {}).items())

    def kept_properties(self, table: ResolvedTable) -> Mapping[str, str]:
        return table.properties or {}

    def shown_properties(self, kept: Mapping[str, str], metadata: Mapping[str, str]) -> dict[str, str]:
        return {**kept, **metadata}

    def updated_ms(self, table: ResolvedTable, latest_ms: int | None) -> int:
        return latest_ms or 0

    def identity(self, table: ResolvedTable, version: int) -> Hashable:
        return table.path

    def lies_there(self, table: ResolvedTable) -> bool:
        return table.name in self._entries

    def store_properties(self, change: TableChange) -> None:
        if change.info is not None and (change.is_staged_here or (change.new, change.info.latest) == (None, None)):
            waiting = properties_after(change.info, change.commit) if change.new is None else {}
            self._entries[change.table.name] = Entry(change.table.path, waiting)
            self._changes += 1

    def finish_pending(self, table: Levels) -> None: ...

    def may_move_versions(self, table: ResolvedTable, info: TableInfo | None = None) -> bool:
        return False

    move_versions = may_move_versions

    def declare_before_last(self, table: ResolvedTable) -> object: ...

    def keeper_of_several(self) -> None: ...

    def makes_versions_at_once(self) -> bool:
        return True

    def place_table(self, table: Levels, location: str | None) -> str:
        self.load_namespace(table[:-1])
        if table in self._entries:
            raise table_exists(table)
        path = f"{table[0]}-{uuid4().hex}" if location is None else self._storage.path_of(location)
        if path is None:
            raise InvalidInput(f"Location {location} is not inside the warehouse root")
        return self._storage.location(path)

    def create(self, table: Levels, new: NewTable) -> CreatedTable:
        path = self._storage.path_of(self.place_table(table, new.location)) or ""
        properties = {TABLE_UUID: str(uuid4()), **new.properties}
        if new.schema is not None:
            first_version(self._files(path), table, new, properties).put()
        entry = Entry(path, properties if new.schema is None else {})
        if self._entries.setdefault(table, entry) is not entry:
            raise table_exists(table)
        self._changes += 1
        return CreatedTable(properties)

    def register(self, table: Levels, location: str) -> None:
        self._entries[table] = Entry(self._storage.path_of(location) or "", {})
        self._changes += 1

    def deregister_table(self, table: Levels) -> None:
        self.resolve(table)
        del self._entries[table]
        self._changes += 1

    def purge_table(self, table: Levels, after_ms: int | None) -> None:
        files = self.resolve(table).files
        self.deregister_table(table)
        files.remove(self._storage.tree(files.path))

    def drop_table(self, table: Levels) -> None:
        self.purge_table(table, 0)

    def allowed_locations(self) -> Sequence[str]:
        return self._tables.allowed_locations

    def storage_options(self, table: Levels) -> Mapping[str, str]:
        return self._storage.options

    def _files(self, path: str) -> TableFiles:
        return TableFiles(self._storage, self._tables, self._version_files, path)


def open(name: str, settings: WarehouseSettings) -> OpenBackend:
    return OpenBackend(LanceCatalog(DictNames(str(settings.root))), "default")
