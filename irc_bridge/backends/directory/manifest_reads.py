"""Reading a root with `__manifest`; with `listing`, the folders of the root as well (compatibility mode)."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby

from irc_bridge.backends.directory.deregistered import unclaimed
from irc_bridge.backends.directory.folders import Folders, FolderState
from irc_bridge.backends.directory.governing import Governing, governing_rows
from irc_bridge.backends.directory.layout import listed_folder
from irc_bridge.backends.directory.loading import Found, Loader, Token
from irc_bridge.backends.directory.managed import ManagedVersions
from irc_bridge.backends.directory.manifest import Manifest, Snapshot
from irc_bridge.backends.directory.manifest_versions import VersionsInManifest
from irc_bridge.backends.directory.names import DELIMITER, is_valid, object_id
from irc_bridge.backends.directory.namespaces import require_namespace
from irc_bridge.backends.directory.objects import Objects
from irc_bridge.backends.directory.paging import page_of
from irc_bridge.backends.directory.purging import Purging
from irc_bridge.backends.directory.table_rows import TableRows
from irc_bridge.catalog.models import (
    EVERYTHING,
    Deregistered,
    History,
    Levels,
    Page,
    PageRequest,
    Purge,
    TableInfo,
    Unchanged,
)
from irc_bridge.lance_catalog.errors import no_namespace, no_table
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.lance_store.version_files import VersionFiles
from irc_bridge.storage.base import Storage


class ManifestReads(VersionsInManifest):
    def __init__(self, storage: Storage, tables: LanceTables, listing: bool, manage_versions: bool) -> None:
        self.probes_inline = storage.local
        self._storage = storage
        self._listing = listing
        self._tables = tables
        self._folders = Folders(storage)
        self._loader = Loader(storage, self._tables, self._folders)
        self._versions = VersionFiles(storage, self._tables)
        self._manifest = Manifest(storage, self._tables, manage_versions)
        self._managed = ManagedVersions(storage, self._manifest, self._versions)
        self._governing = Governing(self._manifest, self._versions, self._managed)
        self._rows = TableRows(storage, self._manifest, self._folders)
        self._purging = Purging(storage, self._tables, self._folders, self._rows.is_claimed)
        self._unclaimed: tuple[object, object, list[str]] = (None, None, [])

    def list_namespaces(self, parent: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        objects = self._manifest.objects()
        require_namespace(objects, parent)
        return page_of(objects.namespaces(_prefix(parent), page.after), page)

    def load_namespace(self, namespace: Levels) -> Mapping[str, str]:
        if not namespace:
            return {}
        row = self._manifest.objects().namespace(object_id(namespace)) if is_valid(namespace) else None
        if row is None:
            raise no_namespace(namespace)
        return row.properties

    def namespace_exists(self, namespace: Levels) -> bool:
        if not namespace:
            return True
        return is_valid(namespace) and self._manifest.objects().namespace(object_id(namespace)) is not None

    def list_tables(self, namespace: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        objects = self._manifest.objects()
        require_namespace(objects, namespace)
        names = objects.tables(_prefix(namespace), page.after)
        if not namespace and self._listing:
            names = self._with_folders(objects, names, page.after)
        return page_of(names, page)

    def table_exists(self, table: Levels) -> bool:
        return self._lookup(table, self._manifest.snapshot()) is not None

    def load_table(
        self, table: Levels, history: History = History.ALL, known: Hashable | None = None
    ) -> TableInfo | Unchanged:
        info = self._loader.load_found(lambda: self._synchronised(table), history, known)
        if isinstance(info, TableInfo) and self._settled(info, table):
            return self._loader.load_found(lambda: self._synchronised(table), history, None)
        return info

    def deregistered(self) -> Iterator[Deregistered]:
        return self._purging.among(unclaimed(self._storage, self._folders, self._manifest, self._listing))

    def purges(self) -> Sequence[Purge]:
        return self._purging.pending()

    def remove_purged(self, purge: Purge) -> bool:
        return self._purging.remove(purge)

    def is_current(self, token: Hashable) -> bool:
        return (
            isinstance(token, Token)
            and self._manifest.is_current(token.names)
            and self._loader.files_are_current(token)
        )

    def check(self) -> None:
        self._storage.check()
        self._manifest.snapshot()

    def storage_options(self, table: Levels) -> Mapping[str, str]:
        self._find(table)
        return self._storage.options

    def _find(self, table: Levels) -> Found:
        snapshot = self._manifest.snapshot()
        found = self._lookup(table, snapshot)
        if found is None:
            require_namespace(snapshot.objects, table[:-1])
            raise no_table(table)
        return found

    def _lookup(self, table: Levels, snapshot: Snapshot) -> Found | None:
        if not table or not is_valid(table):
            return None
        objects = snapshot.objects
        row = objects.table(object_id(table))
        if row is not None:
            return Found(table, row.folder, row.properties, snapshot.stamp, governing_rows(snapshot, row))
        if self._listing and len(table) == 1 and objects.row(table[0]) is None:
            path = listed_folder(table[0])
            if objects.at(path) is None and self._folders.state(path) is FolderState.TABLE:
                return Found(table, path, None, snapshot.stamp)
        return None

    def _with_folders(self, objects: Objects, names: Iterator[str], after: str | None) -> Iterator[str]:
        in_folders = self._folders.tables(self._folders_without_row(objects), after)
        return (name for name, _ in groupby(merge(names, in_folders)))

    def _folders_without_row(self, objects: Objects) -> list[str]:
        names = self._folders.names()
        if self._unclaimed[0] is not objects or self._unclaimed[1] is not names:
            free = (name for name in names if objects.row(name) is None)
            left = [name for name in free if objects.at(listed_folder(name)) is None]
            self._unclaimed = objects, names, left
        return self._unclaimed[2]


def _prefix(namespace: Levels) -> str:
    return object_id(namespace) + DELIMITER if namespace else ""
