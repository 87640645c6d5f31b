"""Tables that begin: the server's create decides who gets the name.

step                                    a crash after it leaves
1 the name is declared upstream         a declared table
2 it gets its place                     the same, there
3 it gets a guard snapshot              the same; the next commit of the bridge adds the guard
4 its first version is staged           the same, and a staged file that goes after a day
5 the staged file becomes version 1     the table
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from irc_bridge.backends.upstream.files import TableFiles, below
from irc_bridge.backends.upstream.loading import Found, read
from irc_bridge.backends.upstream.purging import Purging
from irc_bridge.backends.upstream.rows import Rows
from irc_bridge.catalog.models import TABLE_UUID, History, Levels, NewTable, NewVersion, TableInfo
from irc_bridge.catalog.properties import RESERVED_PREFIX
from irc_bridge.errors import (
    BridgeError,
    BrokenTable,
    CommitStateUnknown,
    ConcurrentModification,
    Conflict,
    InvalidInput,
    NotFound,
    TableAlreadyExists,
    TableNotFound,
)
from irc_bridge.lance_store.manifests import VERSIONS, staged_name
from irc_bridge.lance_store.sent_rows import SentRows, write_rows
from irc_bridge.lance_store.tables import first_manifest
from irc_bridge.names import dotted

_MANIFEST = re.compile(r"/_versions/[^/]+\.manifest$")


class NewTables(Rows):
    _root: str | None
    _purging: Purging

    def place_table(self, table: Levels, location: str | None) -> str:
        _require_namespace(table)
        asked = None if location is None else self._tables.place_for(table, location)
        return self._tables.lance_table_at(self._tables.planned(table, asked)).location

    def create_table(self, table: Levels, new: NewTable) -> TableInfo:
        _require_namespace(table)
        if new.location is not None:
            new = replace(new, location=self._tables.place_for(table, new.location))
        if new.schema is not None:
            first_manifest(new.schema)
        try:
            declared = self._tables.declare(table, new.location, new.properties)
        except TableNotFound as error:
            raise _dropped_meanwhile(table) from error
        found = Found(table, declared, self._tables.files(declared))
        if new.location is not None and found.files.newest() is not None:
            self._tables.drop(table, purge=False)
            raise InvalidInput(
                f"The location {new.location} has a Lance table already: register it, or choose another place"
            )
        self._purging.take(found.files)
        if new.schema is None:
            return read(found, History.ALL)
        self._begin(found, new)
        return self._made(found)

    def register_table(self, table: Levels, location: str) -> TableInfo:
        _require_namespace(table)
        place = self._location_of(_MANIFEST.sub("", location).rstrip("/"))
        if not self._purging.is_purged(place):
            self._tables.require_for_clients(place)
        files = self._tables.lance_table_at(place)
        properties = {
            key: each for key, each in _metadata_at(files, location).items() if not key.startswith(RESERVED_PREFIX)
        }
        with self._purging.registering(files) as more:
            self._tables.registered_here(table, files.location, {**properties, **more})
        try:
            return read(self._find(table), History.ALL)
        except NotFound as error:
            raise _dropped_meanwhile(table) from error

    def _made(self, made: Found) -> TableInfo:
        """The table as the caller just made it, whatever others did to it since."""
        try:
            info = self.load_version(made.name, 1)
        except NotFound as error:
            raise _dropped_meanwhile(made.name) from error
        if info.location != made.files.location:
            raise _dropped_meanwhile(made.name)
        return info

    def names_lance(self, location: str) -> bool:
        if _MANIFEST.search(location):
            return True
        place = self._location_of(location.rstrip("/"))
        with suppress(BridgeError):
            if not (self._tables.is_for_clients(place) or self._purging.is_purged(place)):
                return False
            return self._tables.lance_table_at(place).newest() is not None
        return False

    def _location_of(self, place: str) -> str:
        """Without a scheme or a slash before it, one below the root."""
        if self._root is None or ":" in place or place.startswith("/"):
            return place
        return below(self._root, place)

    def _begin(self, found: Found, new: NewTable) -> None:
        """Where that fails the name goes again, unless another writer made the first version meanwhile."""
        sent: list[SentRows] = []
        staged = None
        try:
            staged = _first_staged(found, new, sent)
            self.create_table_versions([NewVersion(found.name, 1, staged)])
        except CommitStateUnknown:
            raise
        except BridgeError as error:
            is_gone = isinstance(error, InvalidInput) and staged is not None and not self._is_there(found, staged)
            with suppress(BridgeError):
                for each in sent:
                    each.discard()
                self._give_up(found)
            if isinstance(error, TableNotFound) or is_gone:
                raise _dropped_meanwhile(found.name) from error
            if isinstance(error, Conflict):
                raise TableAlreadyExists(f"Table already exists: {dotted(found.name)}") from error
            raise

    def _is_there(self, found: Found, staged: str) -> bool:
        """Whether the name still leads to the table that was found, and its folder has the staged manifest."""
        try:
            is_same = self._find(found.name).table.uuid == found.table.uuid
        except NotFound:
            return False
        return is_same and found.files.storage.identity(f"{found.files.path}/{staged}") is not None

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
    first = files.tables.first_version(files.path, new.schema, metadata, field_ids=new.field_ids)
    files.storage.write(f"{files.path}/{staged}", first.content)
    return staged


def _metadata_at(files: TableFiles, location: str) -> Mapping[str, str]:
    try:
        content = files.tables.read(files.path, History.HEADS)
    except BrokenTable as error:
        raise InvalidInput(f"There is no readable Lance table at {location}: {error.message}") from error
    if content is None:
        raise InvalidInput(f"There is no Lance table at {location}")
    return content.metadata


def _dropped_meanwhile(table: Levels) -> ConcurrentModification:
    return ConcurrentModification(f"{dotted(table)} was made, and dropped by somebody else right after that")


def _require_namespace(table: Levels) -> None:
    if len(table) < 2:
        raise InvalidInput(f"In an Iceberg REST catalog a table lies in a namespace: {dotted(table)} names none")
