"""What a client asks about the rows of a table, and rows that it sends to become a table's content.

step                                a crash after it leaves
1 the files of the rows are written files that no version names
2 their manifest is staged          the same, and a staged file that goes after a day
3 the staged file is made a version the version, made
"""

from collections.abc import Mapping

import pyarrow as pa

from irc_bridge.backends.directory.commits import Commits
from irc_bridge.backends.directory.name_errors import table_exists
from irc_bridge.catalog.models import Commit, Levels, NewTable, NewVersion, TableInfo, TableStats
from irc_bridge.errors import Conflict, InvalidInput, NotFound
from irc_bridge.lance_store import counting
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.first_file import FirstFile
from irc_bridge.lance_store.sent_rows import write_rows


class Rows(Commits):
    def write_rows(self, table: Levels, rows: pa.Table, properties: Mapping[str, str], overwrite: bool) -> None:
        path, location, has_versions = self._place_of(table)
        if has_versions and not overwrite:
            raise table_exists(table)
        sent = write_rows(self._storage, self._tables, path, rows, over=has_versions)

        def decide(info: TableInfo) -> Commit:
            if info.latest is not None and not overwrite:
                raise table_exists(table)
            if info.location != location:
                raise Lost(f"{location} is not where the table lies any more")
            version = info.latest.version + 1 if info.latest else 1
            staged = sent.stage(info.latest, properties)
            return Commit(new_version=NewVersion(table, version, staged))

        try:
            self.commit(table, decide)
        except (Conflict, NotFound, InvalidInput):
            sent.discard()
            raise

    def _first_version(self, path: str, new: NewTable, properties: Mapping[str, str]) -> FirstFile:
        assert new.schema is not None
        if new.rows is None:
            return self._tables.first_version(path, new.schema, properties)
        return write_rows(self._storage, self._tables, path, new.rows, over=False).first(properties)

    def count_rows(self, table: Levels, version: int | None, predicate: str | None) -> int:
        wanted = self.describe_table_version(table, version).version
        return counting.count_rows(self._storage, self._tables, self._find(table).path, wanted, predicate)

    def table_stats(self, table: Levels) -> TableStats:
        latest = self.describe_table_version(table).version
        return counting.table_stats(self._storage, self._tables, self._find(table).path, latest)

    def _place_of(self, table: Levels) -> tuple[str, str, bool]:
        found = self._found_to_commit(table)
        has_versions = bool(self.list_table_versions(table, limit=1).items)
        return found.path, self._storage.location(found.path), has_versions
