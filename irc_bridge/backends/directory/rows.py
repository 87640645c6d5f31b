"""What a client asks about the rows of a table, and rows that it sends to become a table's content.

step                                a crash after it leaves
1 the files of the rows are written files that no version names
2 their manifest is staged          the same, and a staged file that goes after a day
3 the staged file is made a version the version, made
"""

import time
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from irc_bridge.backends.directory.commits import Commits
from irc_bridge.catalog.models import (
    TABLE_UUID,
    Commit,
    History,
    Levels,
    NewTable,
    NewVersion,
    TableInfo,
    TableStats,
    Unchanged,
)
from irc_bridge.errors import CommitFailed, Conflict, InvalidInput, NotFound, TableAlreadyExists
from irc_bridge.lance_catalog.errors import dropped_meanwhile, table_exists
from irc_bridge.lance_store import counting
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.mirror_layout import prepare_for_engines
from irc_bridge.lance_store.staged_rows import write_rows
from irc_bridge.lance_store.table_folders import FirstFile
from irc_bridge.names import dotted

_LOOKS = 20
_ATTEMPTS = 20


class _Elsewhere(Exception):
    """The rows were written into a folder that the table has left."""


class Rows(Commits):
    @abstractmethod
    def load_table(
        self, table: Levels, history: History = History.ALL, known: Hashable | None = None
    ) -> TableInfo | Unchanged: ...

    def write_rows(self, table: Levels, rows: pa.Table, properties: Mapping[str, str], overwrite: bool) -> None:
        """Again where the table was dropped and made anew, or moved, while the rows were written."""
        for _ in range(_ATTEMPTS):
            with suppress(Lost):
                self._write_rows(table, rows, properties, overwrite)
                return
        raise CommitFailed(f"Others kept dropping and making {dotted(table)}: try again")

    def _write_rows(self, table: Levels, rows: pa.Table, properties: Mapping[str, str], overwrite: bool) -> None:
        path, location, has_versions = self._place_of(table)
        if has_versions and not overwrite:
            raise table_exists(table)
        try:
            sent = write_rows(self._storage, self._tables, path, rows, over=has_versions)
        except TableAlreadyExists as error:
            if overwrite:
                raise Lost(f"Somebody else made a table at {location} meanwhile") from error
            raise

        def decide(info: TableInfo) -> Commit:
            if info.latest is not None and not overwrite:
                raise table_exists(table)
            if info.location != location or not sent.are_there():
                raise _Elsewhere
            version = info.latest.version + 1 if info.latest else 1
            staged = sent.stage(info.latest, properties)
            return Commit(new_version=NewVersion(table, version, staged))

        try:
            self.commit(table, decide)
        except (_Elsewhere, Conflict, NotFound, InvalidInput) as error:
            is_elsewhere = not (sent.are_there() and self._lies_at(table, path))
            sent.discard()
            if is_elsewhere:
                raise Lost(f"{location} is not where the table lies any more") from error
            raise

    def _lies_at(self, table: Levels, path: str) -> bool:
        with suppress(NotFound):
            return self._find(table).path == path
        return False

    def _first_version(self, table: Levels, path: str, new: NewTable, properties: Mapping[str, str]) -> FirstFile:
        assert new.schema is not None
        if new.rows is None:
            return self._tables.first_version(path, new.schema, properties, field_ids=new.field_ids)
        try:
            return write_rows(self._storage, self._tables, path, new.rows, over=False).first(properties)
        except Lost as error:
            raise table_exists(table, ", and is being dropped: try again") from error

    def _made(self, table: Levels, new: NewTable, properties: Mapping[str, str]) -> TableInfo:
        """The table as the caller just made it, whatever others did to it since."""
        for attempt in range(_LOOKS):
            try:
                info = self._now(table) if new.schema is None else self.load_version(table, 1)
            except NotFound as error:
                raise dropped_meanwhile(table) from error
            if info.properties.get(TABLE_UUID) == properties[TABLE_UUID]:
                return info
            # a creator that lost the name to this declared table may not have removed its first version yet
            time.sleep(0.002 * attempt)
        raise dropped_meanwhile(table)

    def _now(self, table: Levels) -> TableInfo:
        """The table that the caller just made or registered, as it is now."""
        try:
            info = self.load_table(table)
        except NotFound as error:
            raise dropped_meanwhile(table) from error
        assert isinstance(info, TableInfo)
        return info

    def count_rows(self, table: Levels, version: int | None, predicate: str | None) -> int:
        wanted = self.describe_table_version(table, version).version
        return counting.count_rows(self._storage, self._tables, self._find(table).path, wanted, predicate)

    def allowed_locations(self) -> Sequence[str]:
        return self._tables.allowed_locations

    def table_stats(self, table: Levels) -> TableStats:
        latest = self.describe_table_version(table).version
        return counting.table_stats(self._storage, self._tables, self._find(table).path, latest)

    def prepare_for_engines(self, table: Levels, empty_list: bytes | None) -> str | None:
        if empty_list is None and not self._storage.local:
            return None
        path = self._find(table).path

        def is_still_there() -> bool:
            with suppress(NotFound):
                return self._find(table).path == path
            return False

        return prepare_for_engines(self._storage, path, empty_list, is_still_there)

    def _place_of(self, table: Levels) -> tuple[str, str, bool]:
        found = self._found_to_commit(table)
        has_versions = bool(self.list_table_versions(table, limit=1).items)
        return found.path, self._storage.location(found.path), has_versions
