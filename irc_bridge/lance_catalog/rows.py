"""Counts of the rows of a table, and rows that a client sends to become the content of a table.

step                                a crash after it leaves
1 the files of the rows are written files that no version names
2 their manifest is staged          the same, and a staged file that goes after a day
3 the staged file is made a version the version, made
"""

from collections.abc import Mapping
from contextlib import suppress

import pyarrow as pa

from irc_bridge.catalog.models import Commit, History, Levels, NewTable, NewVersion, TableInfo
from irc_bridge.errors import CommitFailed, Conflict, InvalidInput, NotFound, TableAlreadyExists
from irc_bridge.lance_catalog.commits import Commits
from irc_bridge.lance_catalog.errors import table_exists
from irc_bridge.lance_catalog.loading import Loading
from irc_bridge.lance_catalog.names import Names
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.staged_rows import write_rows
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.lance_store.table_folders import FirstFile
from irc_bridge.names import dotted

_ATTEMPTS = 20


class _Elsewhere(Exception):
    """The rows were written into a folder that the table has left."""


class Rows:
    def __init__(self, names: Names, loading: Loading, commits: Commits) -> None:
        self._names = names
        self._loading = loading
        self._commits = commits

    def write(self, table: Levels, rows: pa.Table, properties: Mapping[str, str], overwrite: bool) -> None:
        """Again where the table was dropped and made anew, or moved, while the rows were written."""
        for _ in range(_ATTEMPTS):
            with suppress(Lost):
                self._write(table, rows, properties, overwrite)
                return
        raise CommitFailed(f"Others kept dropping and making {dotted(table)}: try again")

    def _write(self, table: Levels, rows: pa.Table, properties: Mapping[str, str], overwrite: bool) -> None:
        resolved = self._loading.resolved_to_commit(table)
        files, location = resolved.files, resolved.location
        has_versions = bool(resolved.versions.list(resolved, True, None, 1).items)
        if has_versions and not overwrite:
            raise table_exists(table)
        try:
            sent = write_rows(files.storage, files.tables, files.path, rows, over=has_versions)
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
            staged = sent.stage(info.latest, properties if self._names.properties_in_manifest else {})
            return Commit(new_version=NewVersion(table, version, staged), set_properties=properties)

        try:
            self._commits.commit(table, decide, History.HEADS)
        except (_Elsewhere, Conflict, NotFound, InvalidInput) as error:
            is_elsewhere = not (sent.are_there() and self._lies_at(table, location))
            sent.discard()
            if is_elsewhere:
                raise Lost(f"{location} is not where the table lies any more") from error
            raise

    def _lies_at(self, table: Levels, location: str) -> bool:
        with suppress(NotFound):
            return self._names.resolve(table).location == location
        return False


def first_version(files: TableFiles, table: Levels, new: NewTable, properties: Mapping[str, str]) -> FirstFile:
    """The file that makes a folder the new table, with its rows written."""
    assert new.schema is not None
    if new.rows is None:
        return files.tables.first_version(files.path, new.schema, properties, field_ids=new.field_ids)
    try:
        sent = write_rows(files.storage, files.tables, files.path, new.rows, over=False)
    except Lost as error:
        raise table_exists(table, ", and is being dropped: try again") from error
    return sent.first(properties)
