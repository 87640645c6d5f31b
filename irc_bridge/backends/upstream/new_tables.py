"""Tables that begin: the server's create decides who gets the name.

step                                    a crash after it leaves
1 the name is declared upstream         a declared table
2 it gets its place                     the same, there
3 its first version is staged           the same, and a staged file that goes after a day
4 the staged file becomes version 1     the table
"""

import re
from collections.abc import Mapping
from contextlib import suppress

from irc_bridge.backends.upstream.files import TableFiles, below
from irc_bridge.backends.upstream.loading import Found, read
from irc_bridge.backends.upstream.rows import Rows
from irc_bridge.catalog.models import TABLE_UUID, History, Levels, NewTable, NewVersion, TableInfo
from irc_bridge.catalog.properties import RESERVED_PREFIX
from irc_bridge.errors import (
    BridgeError,
    BrokenTable,
    CommitStateUnknown,
    Conflict,
    InvalidInput,
    TableAlreadyExists,
)
from irc_bridge.lance_store.manifests import VERSIONS, staged_name
from irc_bridge.lance_store.sent_rows import SentRows, write_rows
from irc_bridge.lance_store.tables import first_manifest
from irc_bridge.names import dotted

_MANIFEST = re.compile(r"/_versions/[^/]+\.manifest$")


class NewTables(Rows):
    _root: str | None

    def place_table(self, table: Levels, location: str | None) -> str:
        _require_namespace(table)
        place = self._tables.planned(table, location)
        return self._tables.lance_table_at(place).location

    def create_table(self, table: Levels, new: NewTable) -> TableInfo:
        _require_namespace(table)
        if new.location is not None:
            self._tables.lance_table_at(new.location)
        if new.schema is not None:
            first_manifest(new.schema)
        declared = self._tables.declare(table, new.location, new.properties)
        found = Found(table, declared, self._tables.files(declared))
        if new.location is not None and found.files.newest() is not None:
            self._tables.drop(table, purge=False)
            raise InvalidInput(
                f"The location {new.location} has a Lance table already: register it, or choose another place"
            )
        if new.schema is None:
            return read(found, History.ALL)
        self._begin(found, new)
        return read(self._find(table), History.ALL)

    def register_table(self, table: Levels, location: str) -> TableInfo:
        _require_namespace(table)
        files = self._tables.lance_table_at(self._location_of(_MANIFEST.sub("", location).rstrip("/")))
        properties = {
            key: each for key, each in _metadata_at(files, location).items() if not key.startswith(RESERVED_PREFIX)
        }
        self._tables.registered_here(table, files.location, properties)
        return read(self._find(table), History.ALL)

    def _location_of(self, place: str) -> str:
        """Without a scheme or a slash before it, one below the root."""
        if self._root is None or ":" in place or place.startswith("/"):
            return place
        return below(self._root, place)

    def _begin(self, found: Found, new: NewTable) -> None:
        """Where that fails the name goes again, unless another writer made the first version meanwhile."""
        sent: list[SentRows] = []
        try:
            self.create_table_versions([NewVersion(found.name, 1, _first_staged(found, new, sent))])
        except CommitStateUnknown:
            raise
        except BridgeError as error:
            with suppress(BridgeError):
                for each in sent:
                    each.discard()
                self._give_up(found)
            if isinstance(error, Conflict):
                raise TableAlreadyExists(f"Table already exists: {dotted(found.name)}") from error
            raise

    def _give_up(self, found: Found) -> None:
        now = self._find(found.name)
        is_same = now.table.uuid == found.table.uuid
        if is_same and now.table.current is None and now.files.newest() is None:
            self._tables.drop(found.name, purge=True)


def _first_staged(found: Found, new: NewTable, sent: list[SentRows]) -> str:
    files, metadata = found.files, {TABLE_UUID: new.properties.get(TABLE_UUID, found.table.uuid)}
    if new.rows is not None:
        sent.append(write_rows(files.storage, files.tables, files.path, new.rows, over=False))
        return sent[0].stage(None, metadata)
    assert new.schema is not None
    staged = f"{VERSIONS}/{staged_name(1)}"
    first = files.tables.first_version(files.path, new.schema, metadata)
    files.storage.write(f"{files.path}/{staged}", first.content)
    return staged


def _metadata_at(files: TableFiles, location: str) -> Mapping[str, str]:
    try:
        content = files.tables.read(files.path, History.REFS)
    except BrokenTable as error:
        raise InvalidInput(f"There is no readable Lance table at {location}: {error.message}") from error
    if content is None:
        raise InvalidInput(f"There is no Lance table at {location}")
    return content.metadata


def _require_namespace(table: Levels) -> None:
    if len(table) < 2:
        raise InvalidInput(f"In an Iceberg REST catalog a table lies in a namespace: {dotted(table)} names none")
