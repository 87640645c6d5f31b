"""Tables leave `__manifest`: deregistered, purged, dropped. The folder is marked first and the row goes then, so
that a process that registers the folder meanwhile sees one of the two."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from irc_bridge.backends.directory.folders import Folders, FolderState
from irc_bridge.backends.directory.layout import listed_folder
from irc_bridge.backends.directory.manifest import Manifest
from irc_bridge.backends.directory.names import is_valid
from irc_bridge.backends.directory.purging import Purging, registered_again
from irc_bridge.backends.directory.table_rows import TableRows
from irc_bridge.catalog.models import Levels
from irc_bridge.errors import BrokenTable, ConcurrentModification
from irc_bridge.lance_catalog.errors import no_table
from irc_bridge.lance_catalog.names import Names, ResolvedTable, finished
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.purges import Mark
from irc_bridge.names import dotted

_ATTEMPTS = 100


class Drops:
    def __init__(
        self,
        names: Names,
        manifest: Manifest,
        rows: TableRows,
        folders: Folders,
        purging: Purging,
        is_listed: Callable[[str], bool],
    ) -> None:
        """`is_listed` says whether directory listing would find a folder once no row claims it."""
        self._names = names
        self._manifest = manifest
        self._rows = rows
        self._folders = folders
        self._purging = purging
        self._is_listed = is_listed

    def deregister(self, table: Levels) -> None:
        self._names.finish_pending(table)
        resolved = finished(self._names, table)
        is_listed = self._is_listed(resolved.path)
        if is_listed:
            self._folders.require_no_link(resolved.path)
        if self._purging.is_pending(resolved.path):
            # a purge before somebody registered the table; one that is under way has taken the name already
            resolved = self._names.resolve(table)
            self._purging.forget(resolved.path)
        self._hide(resolved, mark=is_listed)

    def purge(self, table: Levels, after_ms: int | None) -> None:
        """The name is gone when this returns. Who registers the table afterwards has it."""
        self._names.finish_pending(table)
        resolved = self._names.resolve(table)
        with suppress(BrokenTable):
            resolved = finished(self._names, table)
        self._folders.require_removable(resolved.path)
        if self._folders.is_link(resolved.path):
            if resolved.properties is not None:
                self._hide(resolved, mark=False)
            self._folders.unlink(resolved.path)
            return
        mark = self._hide(resolved, mark=True)
        if mark is not None:
            self._purging.purge(table, resolved.path, mark.token, after_ms)

    def drop(self, table: Levels) -> None:
        path = self._deregistered_folder(table)
        if path is None:
            self.purge(table, after_ms=0)
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

    def _deregistered_folder(self, table: Levels) -> str | None:
        if len(table) != 1 or not is_valid(table) or not self._is_listed(listed_folder(table[0])):
            return None
        path = listed_folder(table[0])
        objects = self._manifest.objects()
        if objects.row(table[0]) is not None or objects.at(path) is not None:
            return None
        return path if self._folders.state(path) is FolderState.DEREGISTERED else None
