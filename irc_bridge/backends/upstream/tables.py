"""The Lance tables of an IRC server: found, declared, registered, dropped, renamed."""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from uuid import uuid4

from irc_bridge.backends.upstream.files import (
    Files,
    files_of_table,
    is_local,
    is_used,
    one_form,
    place_below,
    same_place,
)
from irc_bridge.backends.upstream.places import Places, may_be_choice, not_allowed
from irc_bridge.backends.upstream.storage_options import (
    expires_at_ms,
    holds_credentials,
    lance_options,
    without_expiry,
)
from irc_bridge.catalog.models import MANAGED_BY, Levels
from irc_bridge.errors import (
    BadGateway,
    BridgeError,
    CommitStateUnknown,
    Internal,
    InvalidInput,
    NamespaceNotFound,
    NotFound,
    PermissionDenied,
    TableNotFound,
    Unauthenticated,
    Unprocessable,
    Unsupported,
)
from irc_bridge.irc_client.lance_tables import (
    LOCATION,
    Json,
    LanceTable,
    change,
    declaration,
    guard_commit,
    next_version,
    read_table,
)
from irc_bridge.irc_client.server import REGISTER, IrcServer
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.names import dotted

log = logging.getLogger(__name__)

_KEPT = 1024
_SOON_MS = 30_000
_NO_CHOICE = (BadGateway, Internal, InvalidInput, PermissionDenied, Unauthenticated, Unprocessable, Unsupported)
"""How servers refuse to stage a table, and storages to show its place without credentials for a table."""


class Tables:
    def __init__(
        self,
        server: IrcServer,
        files: Files,
        storage: Mapping[str, str],
        root: str | None = None,
        managed_by: str | None = None,
        knows_lance: bool | None = None,
        places: Places | None = None,
        guards: bool = True,
    ) -> None:
        """`storage` are Lance storage options. Tables that do not say are declared below `root` with `managed_by`.
        `knows_lance` is what is held of the server whatever it answers. Without `places` a table may lie anywhere:
        in a user's own process the rights are the user's. `guards` says whether tables whose storage decides about
        their versions get a guard snapshot."""
        self.server = server
        self._files = files
        self._storage = storage
        self._root = root
        self._managed_by = managed_by
        self._knows_lance = knows_lance
        self._places = places
        self._guards = guards
        self._delegate = not holds_credentials(storage)
        self._seen: dict[Levels, LanceTable] = {}
        self._loaded: dict[Levels, LanceTable] = {}
        self._has_loaded = False

    @property
    def allowed_locations(self) -> Sequence[str]:
        return self._files.allowed_locations or ()

    def with_loaded(self, table: Levels, result: Json) -> "Tables":
        """A copy whose first load of the table uses `result`, a LoadTableResult, and does not ask the server."""
        tables = copy(self)
        tables._seen, tables._loaded = {}, {}
        tables._has_loaded = True
        loaded = read_table(table, result, self._knows_lance)
        if not self._delegate or loaded.config or is_local(loaded.location):
            tables._loaded[table] = tables._saw(table, loaded)
        return tables

    def load(self, table: Levels, snapshots: str = "refs", delegate: bool = True) -> LanceTable:
        """Loads the table from the server. Credentials are requested only where none are configured."""
        if len(table) < 2:
            raise TableNotFound(f"Table does not exist: {dotted(table)}: here a table lies in a namespace")
        loaded = self._loaded.pop(table, None)
        if loaded is not None:
            return loaded
        result = self.server.load_table(table, snapshots, delegate and self._delegate)
        return self._saw(table, read_table(table, result, self._knows_lance))

    def known(self, table: Levels) -> LanceTable:
        """The table as `with_loaded` has it, also after the first load; without it the server is asked."""
        return self._seen[table] if self._has_loaded and table in self._seen else self.load(table)

    def last_loaded(self, table: Levels, current: int | None) -> LanceTable:
        """The table as this process loaded it last, if its current version was the one that the caller starts
        from; otherwise the table is loaded."""
        known = self._seen.get(table)
        if known is None or known.latest != current or self._expires_soon(known):
            return self.load(table)
        return known

    def commit(self, table: Levels, before: LanceTable, body: Json) -> LanceTable:
        result = self.server.commit(table, dict(body))
        try:
            after = replace(read_table(table, result, before.knows_lance), config=before.config)
        except (BadGateway, TableNotFound) as error:
            raise CommitStateUnknown(f"{error.message}. Whether the commit was made is not known", 502) from error
        return self._guarded(table, self._saw(table, after))

    def _guarded(self, table: Levels, state: LanceTable) -> LanceTable:
        """The table as it is when it has a guard snapshot, or as it was where the server takes none. A table whose
        versions are snapshots of the server needs none: the manifest lists that these name are gone."""
        is_needed = self._guards and not (state.knows_lance or state.by_catalog or state.is_guarded)
        if not is_needed or state.main is not None:
            return state
        try:
            result = self.server.commit(table, dict(guard_commit(state)))
            guarded = replace(read_table(table, result, state.knows_lance), config=state.config)
        except BridgeError as error:
            log.info("%s has no guard snapshot yet: %s", dotted(table), error.message)
            return state
        return self._saw(table, guarded)

    def options(self, table: LanceTable) -> dict[str, str]:
        return lance_options(self._storage, table.config)

    def files(self, table: LanceTable) -> TableFiles:
        """InvalidInput for a table whose place nobody vouches for."""
        if self._places is not None:
            self._places.require_trusted(table)
        return self._files.of(table.location, without_expiry(self.options(table)))

    def declare(self, table: Levels, location: str | None, properties: Mapping[str, str]) -> LanceTable:
        """Makes a table without versions. Its place is chosen before its name is there: from then on other writers
        may write into the place. A crash on the way leaves a table without versions, at the server's own location
        or at ours."""
        place = self._own_place(table) if location is None else location
        chosen, free = (None, None) if place is not None or self._knows_lance else self._choice(table)
        place = place if free == chosen else free
        result = self.server.create_table(table, dict(declaration(table[-1], place, self._wanted(properties))))
        declared = self._saw(table, read_table(table, result, self._knows_lance))
        try:
            is_checked = chosen is not None and same_place(chosen, declared.location)
            if place is None and not (declared.knows_lance or is_checked):
                place = self.unused(declared)
            if place is not None:
                declared = self._placed(table, declared, place)
            return self._guarded(table, declared)
        except BridgeError:
            with suppress(BridgeError):
                self.server.drop_table(table, purge=False)
            raise

    def _choice(self, table: Levels) -> tuple[str | None, str | None]:
        """The location that the server would choose for a new table, and a free one beside it if files lie there.
        None twice where that cannot be learned before the table is made."""
        try:
            staged = self._preview(table, None)
            return self.files(staged).location, self.unused(staged)
        except _NO_CHOICE:
            return None, None

    def planned(self, table: Levels, location: str | None) -> str:
        """Where `declare` would put a table. Changes nothing."""
        place = self._own_place(table) if location is None else location
        staged = self._staged(table, place)
        planned = place or self.unused(staged)
        if self._places is not None:
            self._places.plan(table, planned)
        return planned

    def place_for(self, table: Levels, location: str) -> str:
        """The location that a client names for a new table, in one form. InvalidInput unless clients may name it,
        or the server behind chose it when the client staged the table."""
        if not (self.is_for_clients(location) or self._is_planned(table, location)):
            self._require_choice(table, location)
        return one_form(location)

    def _is_planned(self, table: Levels, location: str) -> bool:
        with suppress(InvalidInput):
            return self._places is not None and self._places.is_planned(table, location)
        return False

    def require_for_clients(self, location: str) -> None:
        """InvalidInput for a location that clients may not name."""
        if not self.is_for_clients(location):
            raise not_allowed(location)

    def is_for_clients(self, location: str) -> bool:
        return self._places is None or self._places.are_for_clients(location)

    def _require_choice(self, table: Levels, location: str) -> None:
        chosen = one_form(self._staged(table, None).location)
        try:
            place = one_form(location)
        except InvalidInput:
            raise not_allowed(location) from None
        if not may_be_choice(table[-1], chosen, place) or is_used(self.lance_table_at(place)):
            raise not_allowed(location)

    def _staged(self, table: Levels, location: str | None) -> LanceTable:
        self.server.load_namespace(table[:-1])
        return self._preview(table, location)

    def _preview(self, table: Levels, location: str | None) -> LanceTable:
        """The table as the server would make it, by a create that makes nothing."""
        body = {**declaration(table[-1], location, {}), "stage-create": True}
        return read_table(table, self.server.create_table(table, body), self._knows_lance)

    def unused(self, declared: LanceTable) -> str:
        """The server's own choice, or one beside it where files lie already: of a table that had the name before,
        or of one in a namespace of this name."""
        files = self.files(declared)
        return (
            f"{files.location}-{uuid4().hex[:8]}" if is_used(files, declared.metadata_location) else files.location
        )

    def register(self, table: Levels, location: str, properties: Mapping[str, str]) -> LanceTable:
        """A server that knows Lance takes the table's root for what it asks for; to another the table is declared
        there, with the version that its storage has."""
        if not self.server.offers(REGISTER):
            self.require_for_clients(location)
            return self.registered_here(table, location, properties)
        try:
            answered = self.server.register_table(table, location)
            registered = self._saw(table, read_table(table, answered, self._knows_lance))
        except (InvalidInput, NotFound, Internal) as refused:
            if isinstance(refused, NamespaceNotFound):
                raise
            self.require_for_clients(location)
            return self.registered_here(table, location, properties)
        wanted = self._wanted(properties)
        wanted = {key: each for key, each in wanted.items() if registered.properties.get(key) != each}
        if not wanted:
            return registered
        body = change(registered, [], {"action": "set-properties", "updates": wanted})
        return self.commit(table, registered, body)

    def drop(self, table: Levels, purge: bool) -> LanceTable:
        """A server that does not know Lance could not find a Lance table's files: they are removed from here,
        after the name is gone. Who dies in between leaves files without a name."""
        found = self.load(table)
        files = self.files(found) if purge and not found.knows_lance else None
        doomed = files_of_table(files, found.uuid, {found.metadata_location, *found.old_metadata}) if files else []
        self.server.drop_table(table, purge and found.knows_lance)
        self._seen.pop(table, None)
        if files:
            files.remove(doomed)
        return found

    def rename(self, source: Levels, destination: Levels) -> None:
        self.load(source)
        self.server.rename_table(source, destination)
        self._seen.pop(source, None)

    def lance_table_at(self, location: str) -> TableFiles:
        """With the options that the user configured: what the server vends is for tables that it knows."""
        return self._files.of(location, without_expiry(self._storage))

    def registered_here(self, table: Levels, location: str, properties: Mapping[str, str]) -> LanceTable:
        """Declares a table at a location that has Lance files. A crash on the way leaves a table without versions:
        it can be dropped without its files and registered again."""
        files = self.lance_table_at(location)
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
        if same_place(declared.location, location):
            return declared
        for update in (
            {"action": "set-location", "location": location},
            {"action": "set-properties", "updates": {LOCATION: location}},
        ):
            with suppress(InvalidInput, Unsupported, Unprocessable):
                declared = self.commit(table, declared, change(declared, [], update))
            if same_place(declared.location, location):
                return declared
        raise Unsupported(f"The server keeps {dotted(table)} at {declared.location}, not at {location} as asked")

    def _wanted(self, properties: Mapping[str, str]) -> dict[str, str]:
        default = {} if self._managed_by is None else {MANAGED_BY: self._managed_by}
        return {**default, **properties}

    def _own_place(self, table: Levels) -> str | None:
        """A name that was used before may have left files behind."""
        return None if self._root is None else place_below(self._root, table)

    def _expires_soon(self, table: LanceTable) -> bool:
        at = expires_at_ms(self.options(table))
        return at is not None and at < time.time() * 1000 + _SOON_MS

    def _saw(self, table: Levels, state: LanceTable) -> LanceTable:
        if len(self._seen) >= _KEPT:
            self._seen.clear()
        self._seen[table] = state
        return state
