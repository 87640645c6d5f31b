"""Reading a root with `__manifest`; with `listing`, the folders of the root as well (compatibility mode)."""

from collections.abc import Callable, Iterator, Mapping
from heapq import merge
from itertools import groupby

from irc_bridge.backends.directory.folders import Folders, FolderState
from irc_bridge.backends.directory.layout import listed_folder
from irc_bridge.backends.directory.manifest import Manifest, Snapshot
from irc_bridge.backends.directory.manifest_versions import counted_rows
from irc_bridge.backends.directory.names import DELIMITER, is_valid, object_id
from irc_bridge.backends.directory.namespaces import require_namespace
from irc_bridge.backends.directory.objects import Objects, Row
from irc_bridge.backends.directory.paging import page_of
from irc_bridge.catalog.models import (
    EVERYTHING,
    Levels,
    Page,
    PageRequest,
)
from irc_bridge.lance_catalog.errors import no_namespace, no_table
from irc_bridge.lance_catalog.names import ResolvedTable
from irc_bridge.lance_catalog.versions import Versions
from irc_bridge.lance_store.table_files import TableFiles


class ManifestLookup:
    """Finds names in the rows of `__manifest`, and with `listing` in the folders of the root."""

    def __init__(
        self, manifest: Manifest, folders: Folders, files_at: Callable[[str], TableFiles], listing: bool
    ) -> None:
        self._manifest = manifest
        self._folders = folders
        self._files_at = files_at
        self._listing = listing
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
        return self.place(table, self._manifest.snapshot()) is not None

    def resolve(self, table: Levels, by_file: Versions, by_row: Versions) -> ResolvedTable:
        """`by_file` and `by_row` are the keepers of versions. TableNotFound, NamespaceNotFound."""
        snapshot = self._manifest.snapshot()
        place = self.place(table, snapshot)
        if place is None:
            require_namespace(snapshot.objects, table[:-1])
            raise no_table(table)
        path, row = place
        rows = None if row is None else counted_rows(snapshot, row)
        return ResolvedTable(
            table,
            self._files_at(path),
            by_file if rows is None else by_row,
            None if row is None else row.properties,
            rows,
            snapshot.stamp,
            rows,
        )

    def place(self, table: Levels, snapshot: Snapshot) -> tuple[str, Row | None] | None:
        """The folder of a table, and its row where it has one. None where the name leads nowhere."""
        if not table or not is_valid(table):
            return None
        objects = snapshot.objects
        row = objects.table(object_id(table))
        if row is not None:
            return row.folder, row
        if self._listing and len(table) == 1 and objects.row(table[0]) is None:
            path = listed_folder(table[0])
            if objects.at(path) is None and self._folders.state(path) is FolderState.TABLE:
                return path, None
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
