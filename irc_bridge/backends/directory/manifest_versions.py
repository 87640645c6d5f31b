"""The version operations in a root with a manifest: rows decide about the tables that they govern."""

from abc import abstractmethod
from collections.abc import Hashable, Sequence

from irc_bridge.backends.directory.governing import Governing
from irc_bridge.backends.directory.loading import Found
from irc_bridge.backends.directory.managed import ManagedVersions
from irc_bridge.backends.directory.manifest import Manifest
from irc_bridge.backends.directory.versions import VersionsInFiles
from irc_bridge.catalog.models import (
    History,
    Levels,
    NewVersion,
    Page,
    TableInfo,
    Unchanged,
    VersionRange,
    VersionRecord,
)


class VersionsInManifest(VersionsInFiles):
    _manifest: Manifest
    _managed: ManagedVersions
    _governing: Governing

    @abstractmethod
    def load_table(
        self, table: Levels, history: History = History.ALL, known: Hashable | None = None
    ) -> TableInfo | Unchanged: ...

    def create_table_versions(self, entries: Sequence[NewVersion]) -> tuple[VersionRecord, ...]:
        if not self._manifest.manages_versions():
            return super().create_table_versions(entries)
        found = {new: self._governed(new.table) for new in entries}
        governed = [(found[new], new) for new in entries if found[new].versions is not None]
        made = dict(zip((new for _, new in governed), self._managed.create(governed), strict=True))
        return tuple(made.get(new) or self._create_version(new) for new in entries)

    def makes_versions_at_once(self) -> bool:
        return super().makes_versions_at_once() and not self._manifest.snapshot().manages_versions

    def was_made(self, new: NewVersion) -> bool:
        found = self._synchronised(new.table)
        return (found.versions is not None and self._managed.was_made(found, new)) or super().was_made(new)

    def list_table_versions(
        self, table: Levels, *, descending: bool = True, after: int | None = None, limit: int | None = None
    ) -> Page[VersionRecord]:
        found = self._governed(table)
        if found.versions is None:
            return self._versions.list(found.path, descending, after, limit)
        return self._managed.list(found, descending, after, limit)

    def describe_table_version(self, table: Levels, version: int | None = None) -> VersionRecord:
        found = self._governed(table)
        if found.versions is None:
            return self._versions.describe(found.path, version)
        return self._versions.describe(found.path, self._kept(found, version))

    def delete_table_versions(self, table: Levels, ranges: Sequence[VersionRange], ignore_missing: bool) -> int:
        # a version that cannot be finished can be deleted
        found = self._find(table)
        if found.versions is None:
            found = self._governed(table)
        if found.versions is None:
            return super().delete_table_versions(table, ranges, ignore_missing)
        declare = self._folders.reservation(found.path, {}).put
        return self._managed.delete(found, ranges, ignore_missing, declare)

    def load_version(self, table: Levels, version: int) -> TableInfo:
        found = self._synchronised(table)
        if found.versions is not None:
            self._kept(found, version)
        return super().load_version(table, version)

    def _synchronised(self, table: Levels) -> Found:
        """The table, after a version that was made only half was finished."""
        found = self._find(table)
        while found.versions is not None and self._managed.synchronise(table, found.path):
            found = self._find(table)
        return found

    def _governed(self, table: Levels) -> Found:
        """The table, after it got rows for its versions where it should have some."""
        found = self._synchronised(table)
        if found.row is None or found.versions is not None or not self._manifest.manages_versions():
            return found
        self.load_table(table, History.HEADS)
        return self._synchronised(table)

    def _settled(self, info: TableInfo, table: Levels) -> bool:
        return self._manifest.snapshot().manages_versions and self._governing.settle(self._find(table), info)

    def _made_by_file(self, found: Found, version: int) -> bool:
        return found.versions is None or self._governing.counts(found, version)

    def _kept(self, found: Found, version: int | None) -> int:
        versions = found.versions or {}
        wanted = max(versions, default=0) if version is None else version
        if wanted not in versions:
            raise self._versions.no_version(found.path, version)
        return wanted
