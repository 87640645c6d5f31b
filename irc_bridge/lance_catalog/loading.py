"""From the name of a table to what a catalog says about the table, with the token that tells whether that is still
right."""

import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from irc_bridge.catalog.models import History, Levels, TableInfo, Unchanged
from irc_bridge.errors import BrokenTable
from irc_bridge.lance_catalog.names import Names, ResolvedTable, finish, finished
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.lance_store.tables import Content

_ATTEMPTS = 6
_NO_METADATA: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Token:
    """Equal to a later token of the table while neither backend nor files changed."""

    state: Hashable
    """What the backend said of the table."""
    storage: Hashable | None
    """The stamp of the table's files."""
    stamp: Hashable | None = field(compare=False)
    files: TableFiles = field(compare=False)

    def files_are_current(self) -> bool:
        return self.files.storage.same_table_stamp(self.files.path, self.storage)


@dataclass(frozen=True, slots=True)
class LoadedTable:
    table: ResolvedTable
    info: TableInfo
    metadata: Mapping[str, str]
    """The Lance table metadata of the latest version; empty where there is no version."""


class Loading:
    def __init__(self, names: Names) -> None:
        self._names = names

    def load(self, name: Levels, history: History) -> TableInfo:
        return self._with_moved_versions(self._load(self.finished, name, history), history)

    def refresh(self, name: Levels, history: History, known: Hashable) -> TableInfo | Unchanged:
        """Unchanged where `known` is the token of an answer that is still right."""
        with suppress(BrokenTable):
            table = self._names.resolve(name)
            token = self._token(table)
            if token.storage is not None and token == known:
                return Unchanged(token)
            return self._with_moved_versions(self.read(finish(self._names, table), history), history)
        return self.load(name, history)

    def load_to_commit(self, name: Levels, history: History) -> LoadedTable:
        return self._load(self.resolved_to_commit, name, history)

    def load_version(self, table: ResolvedTable, version: int) -> TableInfo | None:
        """The table with one version only, None when that version is not there."""
        token, kept = self._token(table), self._names.kept_properties(table)
        content = table.files.tables.read_version(table.path, version)
        return None if content is None else self._info(table, kept, content, token)

    def finished(self, name: Levels) -> ResolvedTable:
        """The table, after a version was finished that a process made only half."""
        return finished(self._names, name)

    def with_versions(self, name: Levels) -> ResolvedTable:
        """The table, after the keeper has its versions that its properties name."""
        table = self.finished(name)
        if self._names.may_move_versions(table):
            self.load(name, History.HEADS)
            table = self.finished(name)
        return table

    def resolved_to_commit(self, name: Levels) -> ResolvedTable:
        """The table, after everything was finished that other processes left half done."""
        self._names.finish_pending(name)
        table = self.with_versions(name)
        return self.with_versions(name) if table.versions.adopt_versions(table) else table

    def _load(self, resolve: Callable[[Levels], ResolvedTable], name: Levels, history: History) -> LoadedTable:
        for attempt in range(1, _ATTEMPTS):
            # a table that somebody drops, or gives up making, looks broken until its name is gone too
            with suppress(BrokenTable):
                return self.read(resolve(name), history)
            time.sleep(0.01 * attempt)
        return self.read(resolve(name), history)

    def _with_moved_versions(self, loaded: LoadedTable, history: History) -> TableInfo:
        """The first read after `managed_by` changed moves the versions to the other keeper."""
        if self._names.move_versions(loaded.table, loaded.info):
            loaded = self._load(self.finished, loaded.table.name, history)
        return loaded.info

    def _token(self, table: ResolvedTable) -> Token:
        stored = table.files.storage.table_stamp(table.path)
        return Token(self._names.state(table), stored, table.stamp, table.files)

    def read(self, table: ResolvedTable, history: History) -> LoadedTable:
        token = self._token(table)
        # first, because a commit moves them into the table
        kept = self._names.kept_properties(table)
        content = table.files.tables.read(table.path, history, table.counted)
        if content is not None:
            return LoadedTable(table, self._info(table, kept, content, token), content.metadata)
        updated_ms = self._names.updated_ms(table, None)
        properties = self._names.shown_properties(kept, _NO_METADATA)
        return LoadedTable(table, TableInfo(table.location, properties, (), {}, updated_ms, token), _NO_METADATA)

    def _info(self, table: ResolvedTable, kept: Mapping[str, str], content: Content, token: Token) -> TableInfo:
        return TableInfo(
            location=table.location,
            properties=self._names.shown_properties(kept, content.metadata),
            versions=content.versions,
            tags=content.tags,
            updated_ms=self._names.updated_ms(table, content.versions[-1].timestamp_ms),
            token=token,
            schema_metadata=content.schema_metadata,
            mirrored=content.mirrored,
            schema_starts=content.schema_starts,
            empty_list=content.empty_list,
        )
