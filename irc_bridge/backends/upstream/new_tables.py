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
from typing import Protocol

from irc_bridge.backends.upstream.files import below
from irc_bridge.backends.upstream.purging import Purging
from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.catalog.models import TABLE_UUID, History, Levels, NewTable, NewVersion
from irc_bridge.catalog.properties import RESERVED_PREFIX
from irc_bridge.errors import (
    BridgeError,
    BrokenTable,
    CommitStateUnknown,
    Conflict,
    InvalidInput,
    NotFound,
    TableNotFound,
)
from irc_bridge.irc_client.lance_tables import LanceTable
from irc_bridge.lance_catalog.errors import dropped_meanwhile, table_exists
from irc_bridge.lance_catalog.names import ResolvedTable
from irc_bridge.lance_catalog.versions import TableChange
from irc_bridge.lance_store.staged_rows import SentRows, write_rows
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.lance_store.tables import first_manifest
from irc_bridge.names import dotted
from irc_bridge.storage.layout import VERSIONS, staged_name

_MANIFEST = re.compile(r"/_versions/[^/]+\.manifest$")


class Resolving(Protocol):
    def resolve(self, table: Levels) -> ResolvedTable: ...

    def resolved(self, table: Levels, found: LanceTable) -> ResolvedTable: ...


class NewTables:
    def __init__(self, tables: Tables, purging: Purging, root: str | None, names: Resolving) -> None:
        self._tables = tables
        self._purging = purging
        self._root = root
        self._names = names

    def place(self, table: Levels, location: str | None) -> str:
        _require_namespace(table)
        asked = None if location is None else self._tables.place_for(table, location)
        return self._tables.lance_table_at(self._tables.planned(table, asked)).location

    def create(self, table: Levels, new: NewTable) -> ResolvedTable:
        _require_namespace(table)
        if new.location is not None:
            new = replace(new, location=self._tables.place_for(table, new.location))
        if new.schema is not None:
            first_manifest(new.schema)
        try:
            declared = self._tables.declare(table, new.location, new.properties)
        except TableNotFound as error:
            raise dropped_meanwhile(table) from error
        resolved = self._names.resolved(table, declared)
        if new.location is not None and resolved.files.newest() is not None:
            self._tables.drop(table, purge=False)
            raise InvalidInput(
                f"The location {new.location} has a Lance table already: register it, or choose another place"
            )
        self._purging.take(resolved.files)
        if new.schema is not None:
            self._begin(resolved, new)
        return resolved

    def register(self, table: Levels, location: str) -> None:
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
        """The location that a place means: a place without a scheme or a leading slash is below the root."""
        if self._root is None or ":" in place or place.startswith("/"):
            return place
        return below(self._root, place)

    def _begin(self, found: ResolvedTable, new: NewTable) -> None:
        """Where that fails the name goes again, unless another writer made the first version meanwhile."""
        sent: list[SentRows] = []
        staged = None
        try:
            staged = _first_staged(found, new, sent)
            found.versions.make([TableChange(found, NewVersion(found.name, 1, staged))])
        except CommitStateUnknown:
            raise
        except BridgeError as error:
            is_gone = isinstance(error, InvalidInput) and staged is not None and not self._is_there(found, staged)
            with suppress(BridgeError):
                for each in sent:
                    each.discard()
                self._give_up(found)
            if isinstance(error, TableNotFound) or is_gone:
                raise dropped_meanwhile(found.name) from error
            if isinstance(error, Conflict):
                raise table_exists(found.name) from error
            raise

    def _is_there(self, found: ResolvedTable, staged: str) -> bool:
        """Whether the name still leads to the table that was found, and its folder has the staged manifest."""
        try:
            is_same = bool(self._names.resolve(found.name).entry.uuid == found.entry.uuid)
        except NotFound:
            return False
        return is_same and found.files.storage.identity(f"{found.path}/{staged}") is not None

    def _give_up(self, found: ResolvedTable) -> None:
        now = self._names.resolve(found.name)
        is_same = now.entry.uuid == found.entry.uuid
        if is_same and now.entry.current is None and now.files.newest() is None:
            self._tables.drop(found.name, purge=True)


def _first_staged(found: ResolvedTable, new: NewTable, sent: list[SentRows]) -> str:
    files, metadata = found.files, {TABLE_UUID: new.properties.get(TABLE_UUID, found.entry.uuid)}
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


def _require_namespace(table: Levels) -> None:
    if len(table) < 2:
        raise InvalidInput(f"In an Iceberg REST catalog a table lies in a namespace: {dotted(table)} names none")
