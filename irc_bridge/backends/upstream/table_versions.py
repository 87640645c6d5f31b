"""The version operations of the Lance namespace."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from irc_bridge.backends.upstream.loading import Found, info_of, token_of
from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.backends.upstream.versions import Versions
from irc_bridge.catalog.models import Levels, NewVersion, Page, TableInfo, VersionRange, VersionRecord
from irc_bridge.irc_client.server import TRANSACTION
from irc_bridge.lance_store.table_files import TableFiles


class TableVersions(ABC):
    _tables: Tables
    _versions: Versions

    @abstractmethod
    def _find(self, table: Levels) -> Found: ...

    def create_table_versions(self, entries: Sequence[NewVersion]) -> tuple[VersionRecord, ...]:
        if len(entries) > 1 and self._decided_upstream(entries):
            return self._versions.create_all(entries)
        return tuple(self._versions.create(each) for each in entries)

    def makes_versions_at_once(self) -> bool:
        return False

    def was_made(self, new: NewVersion) -> bool:
        found, files, latest = self._versions.current(new.table)
        if found.by_catalog and new.version > (latest or 0):
            return False
        return files.versions.was_made(files.path, new)

    def list_table_versions(
        self, table: Levels, *, descending: bool = True, after: int | None = None, limit: int | None = None
    ) -> Page[VersionRecord]:
        return self._versions.list(table, descending, after, limit)

    def describe_table_version(self, table: Levels, version: int | None = None) -> VersionRecord:
        files, wanted = self._version_of(table, version)
        return files.versions.describe(files.path, wanted)

    def delete_table_versions(self, table: Levels, ranges: Sequence[VersionRange], ignore_missing: bool) -> int:
        return self._versions.delete(table, ranges, ignore_missing)

    def load_version(self, table: Levels, version: int) -> TableInfo:
        table_then, files, latest = self._versions.current(table)
        found = Found(table, table_then, files)
        token = token_of(found)
        content = files.tables.read_version(files.path, version) if version <= (latest or 0) else None
        if content is None:
            raise files.versions.no_version(files.path, version)
        return info_of(found, content, token)

    def _version_of(self, table: Levels, version: int | None) -> tuple[TableFiles, int]:
        """The latest when none is named. TableVersionNotFound for one that the table has not come to."""
        _, files, latest = self._versions.current(table)
        wanted = latest if version is None else version
        if wanted is None or latest is None or wanted > latest:
            raise files.versions.no_version(files.path, version)
        return files, wanted

    def _decided_upstream(self, entries: Sequence[NewVersion]) -> bool:
        offered = self._tables.server.offers(TRANSACTION)
        return offered and all(self._tables.load(each.table).by_catalog for each in entries)
