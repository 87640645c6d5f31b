"""The version operations where the files of a table are its versions, seed 001 without version management."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence

from irc_bridge.backends.directory.folders import Folders
from irc_bridge.backends.directory.loading import Found, Loader
from irc_bridge.catalog.models import (
    TABLE_UUID,
    Levels,
    NewVersion,
    Page,
    TableInfo,
    VersionRange,
    VersionRecord,
)
from irc_bridge.lance_store.version_files import VersionFiles
from irc_bridge.storage.base import Storage


class VersionsInFiles(ABC):
    _storage: Storage
    _folders: Folders
    _loader: Loader
    _versions: VersionFiles

    @abstractmethod
    def _find(self, table: Levels) -> Found: ...

    def create_table_versions(self, entries: Sequence[NewVersion]) -> tuple[VersionRecord, ...]:
        return tuple(self._create_version(each) for each in entries)

    def makes_versions_at_once(self) -> bool:
        return self._storage.local

    def was_made(self, new: NewVersion) -> bool:
        return self._versions.was_made(self._find(new.table).path, new)

    def list_table_versions(
        self, table: Levels, *, descending: bool = True, after: int | None = None, limit: int | None = None
    ) -> Page[VersionRecord]:
        return self._versions.list(self._find(table).path, descending, after, limit)

    def describe_table_version(self, table: Levels, version: int | None = None) -> VersionRecord:
        return self._versions.describe(self._find(table).path, version)

    def delete_table_versions(self, table: Levels, ranges: Sequence[VersionRange], ignore_missing: bool) -> int:
        path = self._find(table).path
        # without versions a table is one that is declared
        declare = self._folders.reservation(path, {}).put
        return self._versions.delete(path, ranges, ignore_missing, declare)

    def load_version(self, table: Levels, version: int) -> TableInfo:
        found = self._find(table)
        info = self._loader.load_version(found, version)
        if info is None:
            raise self._versions.no_version(found.path, version)
        return info

    def _create_version(self, new: NewVersion) -> VersionRecord:
        found = self._find(new.table)
        before = self._declaration(found, new.version)

        def still_there() -> bool:
            again = self._find(new.table)
            is_same = again.path == found.path and self._declaration(again, new.version) == before
            return is_same and self._made_by_file(again, new.version)

        return self._versions.finalise(found.path, new, still_there)

    def _made_by_file(self, found: Found, version: int) -> bool:
        """Whether a file makes a version of the table."""
        return True

    def _declaration(self, found: Found, version: int) -> Hashable:
        """What a first version is made for: a table dropped and declared again is another one."""
        if version > 1:
            return None
        return self._loader.kept(found).get(TABLE_UUID), self._folders.is_reserved(found.path)
