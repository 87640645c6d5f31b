"""What a client asks about the rows of a table, and rows that it sends to become a table's content.

step                                a crash after it leaves
1 the files of the rows are written files that no version names
2 their manifest is staged          the same, and a staged file that goes after a day
3 it becomes a version              the version, made, as in every commit
"""

from collections.abc import Mapping

import pyarrow as pa

from irc_bridge.backends.upstream.commits import Commits
from irc_bridge.catalog.models import Commit, Levels, NewVersion, TableInfo, TableStats
from irc_bridge.errors import Conflict, InvalidInput, NotFound, TableAlreadyExists
from irc_bridge.lance_store import counting
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.sent_rows import write_rows
from irc_bridge.names import dotted


class Rows(Commits):
    def write_rows(self, table: Levels, rows: pa.Table, properties: Mapping[str, str], overwrite: bool) -> None:
        found = self._find(table)
        files = found.files
        has_versions = bool(self.list_table_versions(table, limit=1).items)
        if has_versions and not overwrite:
            raise _exists(table)
        sent = write_rows(files.storage, files.tables, files.path, rows, over=has_versions)

        def decide(info: TableInfo) -> Commit:
            if info.latest is not None and not overwrite:
                raise _exists(table)
            if info.location != files.location:
                raise Lost(f"{files.location} is not where the table lies any more")
            version = info.latest.version + 1 if info.latest else 1
            staged = sent.stage(info.latest, {})
            return Commit(new_version=NewVersion(table, version, staged), set_properties=properties)

        try:
            self.commit(table, decide)
        except (Conflict, NotFound, InvalidInput):
            sent.discard()
            raise

    def count_rows(self, table: Levels, version: int | None, predicate: str | None) -> int:
        files, wanted = self._version_of(table, version)
        return counting.count_rows(files.storage, files.tables, files.path, wanted, predicate)

    def table_stats(self, table: Levels) -> TableStats:
        files, latest = self._version_of(table, None)
        return counting.table_stats(files.storage, files.tables, files.path, latest)


def _exists(table: Levels) -> TableAlreadyExists:
    return TableAlreadyExists(f"Table already exists: {dotted(table)}")
