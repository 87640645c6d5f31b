"""What a client asks about the rows of a table, and rows that it sends to become a table's content.

step                                a crash after it leaves
1 the files of the rows are written files that no version names
2 their manifest is staged          the same, and a staged file that goes after a day
3 it becomes a version              the version, made, as in every commit
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from irc_bridge.backends.upstream.commits import Commits
from irc_bridge.catalog.models import Commit, Levels, NewVersion, TableInfo, TableStats
from irc_bridge.errors import CommitFailed, Conflict, InvalidInput, NotFound, TableAlreadyExists
from irc_bridge.lance_store import counting
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.mirror_layout import prepare_for_engines
from irc_bridge.lance_store.staged_rows import write_rows
from irc_bridge.names import dotted

_ATTEMPTS = 20


class _Elsewhere(Exception):
    """The rows were written into a folder that the table has left."""


class Rows(Commits):
    def write_rows(self, table: Levels, rows: pa.Table, properties: Mapping[str, str], overwrite: bool) -> None:
        """Again where the table was dropped and made anew, or moved, while the rows were written."""
        for _ in range(_ATTEMPTS):
            with suppress(Lost):
                self._write_rows(table, rows, properties, overwrite)
                return
        raise CommitFailed(f"Others kept dropping and making {dotted(table)}: try again")

    def _write_rows(self, table: Levels, rows: pa.Table, properties: Mapping[str, str], overwrite: bool) -> None:
        files = self._find(table).files
        has_versions = bool(self.list_table_versions(table, limit=1).items)
        if has_versions and not overwrite:
            raise _exists(table)
        try:
            sent = write_rows(files.storage, files.tables, files.path, rows, over=has_versions)
        except TableAlreadyExists as error:
            if overwrite:
                raise Lost(f"Somebody else made a table at {files.location} meanwhile") from error
            raise

        def decide(info: TableInfo) -> Commit:
            if info.latest is not None and not overwrite:
                raise _exists(table)
            if info.location != files.location or not sent.are_there():
                raise _Elsewhere
            version = info.latest.version + 1 if info.latest else 1
            staged = sent.stage(info.latest, {})
            return Commit(new_version=NewVersion(table, version, staged), set_properties=properties)

        try:
            self.commit(table, decide)
        except (_Elsewhere, Conflict, NotFound, InvalidInput) as error:
            is_elsewhere = not (sent.are_there() and self._lies_at(table, files.location))
            sent.discard()
            if is_elsewhere:
                raise Lost(f"{files.location} is not where the table lies any more") from error
            raise

    def prepare_for_engines(self, table: Levels, empty_list: bytes | None) -> str | None:
        files = self._tables.files(self._tables.known(table))
        if empty_list is None and not files.storage.local:
            return None
        return prepare_for_engines(files.storage, files.path, empty_list, lambda: files.newest() is not None)

    def _lies_at(self, table: Levels, location: str) -> bool:
        with suppress(NotFound):
            return self._find(table).files.location == location
        return False

    def count_rows(self, table: Levels, version: int | None, predicate: str | None) -> int:
        files, wanted = self._version_of(table, version)
        return counting.count_rows(files.storage, files.tables, files.path, wanted, predicate)

    def allowed_locations(self) -> Sequence[str]:
        return self._tables.allowed_locations

    def table_stats(self, table: Levels) -> TableStats:
        files, latest = self._version_of(table, None)
        return counting.table_stats(files.storage, files.tables, files.path, latest)


def _exists(table: Levels) -> TableAlreadyExists:
    return TableAlreadyExists(f"Table already exists: {dotted(table)}")
