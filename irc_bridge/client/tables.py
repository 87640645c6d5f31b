"""The Lance tables of an IRC server: found, declared, registered, dropped, renamed."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

from irc_bridge.catalog.models import Levels
from irc_bridge.client.files import Files, TableFiles, below, place
from irc_bridge.client.properties import Properties
from irc_bridge.client.storage_options import (
    expires_at_ms,
    holds_credentials,
    lance_options,
    without_expiry,
)
from irc_bridge.errors import (
    Internal,
    InvalidInput,
    NamespaceNotFound,
    NotFound,
    Unprocessable,
    Unsupported,
)
from irc_bridge.irc_client.lance_tables import (
    LOCATION,
    MANAGED_BY,
    Json,
    LanceTable,
    change,
    declaration,
    next_version,
    read_table,
)
from irc_bridge.irc_client.server import REGISTER, IrcServer
from irc_bridge.names import dotted

_KEPT = 1024
_SOON_MS = 30_000


class Tables:
    def __init__(self, server: IrcServer, properties: Properties) -> None:
        self.server = server
        self._properties = properties
        self._files = Files()
        self._delegate = not holds_credentials(properties.storage)
        self._seen: dict[Levels, LanceTable] = {}

    def load(self, table: Levels, snapshots: str = "refs", delegate: bool = True) -> LanceTable:
        """Who configured credentials asks the server for none."""
        result = self.server.load_table(table, snapshots, delegate and self._delegate)
        return self._saw(table, read_table(table, result))

    def seen(self, table: Levels, current: int | None) -> LanceTable:
        """As it was last seen, if its current version was the one that the caller starts from."""
        known = self._seen.get(table)
        if known is None or known.current != current or self._expires_soon(known):
            return self.load(table)
        return known

    def commit(self, table: Levels, before: LanceTable, body: Json) -> LanceTable:
        result = self.server.commit(table, dict(body))
        after = replace(read_table(table, result, before.knows_lance), config=before.config)
        return self._saw(table, after)

    def options(self, table: LanceTable) -> dict[str, str]:
        return lance_options(self._properties.storage, table.config)

    def files(self, table: LanceTable) -> TableFiles:
        return self._files.of(table.location, without_expiry(self.options(table)))

    def declare(self, table: Levels, location: str | None, properties: Mapping[str, str]) -> LanceTable:
        """Who dies on the way leaves a table without versions, at the server's own location or at ours."""
        if location is None and self._properties.root is not None:
            # a name that was used before may have left files behind
            location = below(self._properties.root, "/".join(table) + f"-{uuid4().hex[:8]}")
        wanted = {**self._default_properties(), **properties}
        result = self.server.create_table(table, dict(declaration(table[-1], location, wanted)))
        declared = self._saw(table, read_table(table, result))
        return declared if location is None else self._placed(table, declared, location)

    def register(self, table: Levels, location: str, properties: Mapping[str, str]) -> LanceTable:
        """A server that knows Lance takes the table's root for what it asks for; to another the table is declared
        there, with the version that its storage has."""
        if not self.server.offers(REGISTER):
            return self._registered_here(table, location, properties)
        try:
            registered = self._saw(table, read_table(table, self.server.register_table(table, location)))
        except (InvalidInput, NotFound, Internal) as refused:
            if isinstance(refused, NamespaceNotFound):
                raise
            return self._registered_here(table, location, properties)
        wanted = {**self._default_properties(), **properties}
        wanted = {key: each for key, each in wanted.items() if registered.properties.get(key) != each}
        if not wanted:
            return registered
        body = change(registered, [], {"action": "set-properties", "updates": wanted})
        return self.commit(table, registered, body)

    def drop(self, table: Levels, purge: bool) -> LanceTable:
        """A server that does not know Lance could not find a Lance table's files: they are removed from here,
        after the name is gone. Who dies in between leaves files without a name."""
        found = self.load(table)
        self.server.drop_table(table, purge and found.knows_lance)
        self._seen.pop(table, None)
        if purge and not found.knows_lance:
            files = self.files(found)
            files.storage.delete_tree(files.path, None)
        return found

    def rename(self, source: Levels, destination: Levels) -> None:
        self.load(source)
        self.server.rename_table(source, destination)
        self._seen.pop(source, None)

    def _registered_here(self, table: Levels, location: str, properties: Mapping[str, str]) -> LanceTable:
        """Who dies on the way leaves a table without versions: dropped without its files, it can be registered
        again."""
        files = self._files.of(location, without_expiry(self._properties.storage))
        version = files.newest()
        if version is None:
            raise InvalidInput(f"There is no Lance table at {location}")
        declared = self.declare(table, files.location, properties)
        if not declared.by_catalog:
            return declared
        manifest = files.record(version).manifest_path
        return self.commit(table, declared, next_version(declared, version, manifest, declared.updated_ms))

    def _placed(self, table: Levels, declared: LanceTable, location: str) -> LanceTable:
        """Some servers choose the location of a new table whatever they are asked for."""
        if _same_place(declared.location, location):
            return declared
        for update in (
            {"action": "set-location", "location": location},
            {"action": "set-properties", "updates": {LOCATION: location}},
        ):
            with suppress(InvalidInput, Unsupported, Unprocessable):
                declared = self.commit(table, declared, change(declared, [], update))
            if _same_place(declared.location, location):
                return declared
        raise Unsupported(f"The server keeps {dotted(table)} at {declared.location}, not at {location} as asked")

    def _default_properties(self) -> Mapping[str, str]:
        return {} if self._properties.managed_by is None else {MANAGED_BY: self._properties.managed_by}

    def _expires_soon(self, table: LanceTable) -> bool:
        at = expires_at_ms(self.options(table))
        return at is not None and at < time.time() * 1000 + _SOON_MS

    def _saw(self, table: Levels, state: LanceTable) -> LanceTable:
        if len(self._seen) >= _KEPT:
            self._seen.clear()
        self._seen[table] = state
        return state


def _same_place(one: str, other: str) -> bool:
    return place(one) == place(other)
