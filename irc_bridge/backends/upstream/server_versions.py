"""Versions that are snapshots of the server behind: a version is made by one commit there. Its manifest is staged
until the next look at the table gives it its final name."""

from collections.abc import Sequence

from irc_bridge.backends.upstream.promote import finish
from irc_bridge.backends.upstream.property_commit import property_updates
from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.backends.upstream.versions import Versions
from irc_bridge.catalog.models import NewVersion, Page, VersionRange, VersionRecord
from irc_bridge.lance_catalog.names import ResolvedTable
from irc_bridge.lance_catalog.versions import TableChange


class ServerVersions:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._versions = Versions(tables)
        self.commits = self._versions.commits

    def make(self, changes: Sequence[TableChange]) -> tuple[VersionRecord, ...]:
        """Properties of the same commit go with the version."""
        if len(changes) > 1:
            return self._versions.create_all([each.new for each in changes if each.new is not None])
        return tuple(record for each in changes for record in self._make(each))

    def was_made(self, table: ResolvedTable, new: NewVersion) -> bool:
        is_counted = table.counted is not None and new.version in table.counted
        return is_counted and table.files.versions.was_made(table.path, new)

    def list(
        self, table: ResolvedTable, descending: bool, after: int | None, limit: int | None
    ) -> Page[VersionRecord]:
        return self._versions.list_of(table.entry, table.files, table.entry.current, descending, after, limit)

    def delete(self, table: ResolvedTable, ranges: Sequence[VersionRange], ignore_missing: bool) -> int:
        finish(table.entry, table.files)
        return self._versions.delete_of(
            table.name, table.entry, table.files, table.entry.current, ranges, ignore_missing
        )

    def finish_pending(self, table: ResolvedTable) -> bool:
        finish(table.entry, table.files)
        return False

    def adopt_versions(self, table: ResolvedTable) -> bool:
        return False

    def accepts(self, table: ResolvedTable, version: int) -> bool:
        """Tells the server of a version that its file made while the server took over, unless another has the
        number."""
        return self._versions.accepts(table.name, version, table.entry, table.files, table.entry)

    def _make(self, change: TableChange) -> tuple[VersionRecord, ...]:
        """The record of a version that was asked for alone; a commit needs none."""
        table, new = change.table, change.new
        if new is None:
            return ()
        is_alone = change.info is None
        updates = () if is_alone else property_updates(table.entry, change.commit, change.identity)
        attempt = self.commits.prepared(new, table.entry, updates)
        if attempt is not None:
            self.commits.send(attempt)
        return (table.files.record(new.version),) if is_alone else ()
