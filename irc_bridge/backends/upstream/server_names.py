"""The names of another IRC server. It need not know Lance: names, locations, properties and, for tables that say
`managed_by=impl`, versions are the server's; schemas, history and tags are read from Lance's own files.

Where the server decides about versions (`managed_by=impl`), version and properties are one commit there. Where the
storage decides, put-if-absent of the manifest comes before the properties:

step                                      a crash after it leaves
1 a schema is staged                      a staged file that goes after a day
2 impl: the commit upstream               the version, made; its manifest is staged until the next look at it
  storage: the manifest's final name      the version, without the properties that came in the same commit
3 storage: the properties upstream        nothing
  managed_by=impl was set                 a version made meanwhile past the catalog, which does not count
  tags are set and removed                those that were; the same commit again does the rest
  versions are removed                    the same
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from irc_bridge.backends.upstream import listing
from irc_bridge.backends.upstream.files import one_form
from irc_bridge.backends.upstream.new_tables import NewTables
from irc_bridge.backends.upstream.property_commit import (
    adopt_late,
    hands_over,
    properties_attempt,
    property_updates,
)
from irc_bridge.backends.upstream.purging import Purging
from irc_bridge.backends.upstream.server_versions import ServerVersions
from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.backends.upstream.version_commit import Attempt
from irc_bridge.catalog.forward import Upstream
from irc_bridge.catalog.guard import GUARD_SUMMARY
from irc_bridge.catalog.models import (
    COMMITS,
    EVERYTHING,
    TABLE_TYPE,
    TABLE_UUID,
    Commit,
    Deregistered,
    Levels,
    NewTable,
    Page,
    PageRequest,
    PropertyChanges,
    Purge,
    TableInfo,
)
from irc_bridge.catalog.properties import GC_ENABLED, check_keys
from irc_bridge.errors import (
    BridgeError,
    CommitFailed,
    CommitStateUnknown,
    ConcurrentModification,
    InvalidInput,
    NamespaceNotFound,
    PermissionDenied,
    TableNotFound,
    Unauthenticated,
    Unsupported,
)
from irc_bridge.irc_client.lance_tables import LOCATION, Json, LanceTable
from irc_bridge.irc_client.server import TRANSACTION
from irc_bridge.lance_catalog.catalog import LanceCatalog
from irc_bridge.lance_catalog.loading import Token
from irc_bridge.lance_catalog.names import CreatedTable, ResolvedTable
from irc_bridge.lance_catalog.versions import FileVersions, TableChange, Versions
from irc_bridge.lance_store.failures import Lost
from irc_bridge.names import dotted

TablesOf = Callable[[str | None], Tables]
"""Gives the tables as the client that sent an Authorization header sees them."""
_ATTEMPTS = 50
_OF_THE_SERVER = (TABLE_TYPE, LOCATION, GC_ENABLED, GUARD_SUMMARY)
"""What a table is to the server behind. To clients the bridge says it of every Lance table."""


class ServerNames:
    probes_inline = False
    properties_in_manifest = False
    commits_beside_others = True
    abilities = (
        *("create_namespace", "drop_namespace", "update_namespace_properties", "rename_table"),
        *("deregistered", "purges", "remove_purged"),
        *("upstream", "warehouse", "forwards_identity", "acting_for", "with_loaded"),
        *("properties_of_lance", "names_lance", "same_files"),
    )

    def __init__(
        self,
        tables: Tables,
        upstream: Upstream,
        warehouse: str | None = None,
        root: str | None = None,
        tables_of: TablesOf | None = None,
    ) -> None:
        """`tables_of` where clients are passed through."""
        self.upstream = upstream
        self.warehouse = warehouse
        self.forwards_identity = tables_of is not None
        self._tables = tables
        self._root = root
        self._tables_of = tables_of
        self._purging = Purging(tables, root)
        self._new_tables = NewTables(tables, self._purging, root, self)
        self._by_server = ServerVersions(tables)
        self._by_file = FileVersions(self)
        self.place_table = self._new_tables.place
        self.register = self._new_tables.register
        self.names_lance = self._new_tables.names_lance

    def catalog(self) -> LanceCatalog:
        return LanceCatalog(self, self)

    def acting_for(self, authorization: str | None) -> LanceCatalog:
        """This catalog with the rights of the client that sent this header."""
        names = self if self._tables_of is None else self._over(self._tables_of(authorization))
        return names.catalog()

    def with_loaded(self, table: Levels, loaded: Mapping[str, Any], authorization: str | None) -> LanceCatalog:
        """A copy of this catalog that uses `loaded` instead of asking the server."""
        tables = self._tables if self._tables_of is None else self._tables_of(authorization)
        return self._over(tables.with_loaded(table, loaded)).catalog()

    def properties_of_lance(self, location: str) -> Mapping[str, str]:
        self._tables.require_for_clients(location)
        return {LOCATION: one_form(location), GC_ENABLED: "false"}

    def same_files(self, token: Hashable) -> bool:
        """Says no when unsure."""
        with suppress(BridgeError):
            return isinstance(token, Token) and token.storage is not None and token.files_are_current()
        return False

    def resolve(self, table: Levels) -> ResolvedTable:
        return self.resolved(table, self._tables.load(table))

    def resolve_known(self, table: Levels) -> ResolvedTable:
        return self.resolved(table, self._tables.known(table))

    def resolve_to_make(self, table: Levels, version: int) -> ResolvedTable | None:
        return self.resolved(table, self._tables.last_loaded(table, version - 1 or None))

    def resolved(self, table: Levels, found: LanceTable) -> ResolvedTable:
        """Versions above the server's do not count: others may have used the place."""
        files, properties = self._tables.files(found), found.properties
        if found.by_catalog:
            counted = range(1, (found.current or 0) + 1)
            return ResolvedTable(table, files, self._by_server, properties, counted, entry=found)
        return ResolvedTable(table, files, self._by_file, properties, entry=found)

    def is_current(self, stamp: Hashable | None) -> bool:
        return False

    def state(self, table: ResolvedTable) -> Hashable:
        found: LanceTable = table.entry
        properties = tuple(sorted(found.properties.items()))
        return found.uuid, found.location, found.current, found.updated_ms, properties

    def kept_properties(self, table: ResolvedTable) -> Mapping[str, str]:
        found: LanceTable = table.entry
        return {TABLE_UUID: found.uuid, **found.properties}

    def shown_properties(self, kept: Mapping[str, str], metadata: Mapping[str, str]) -> dict[str, str]:
        """The server's. The identities of commits that made a version stand in the version."""
        shown = dict(kept)
        identities = [*shown.pop(COMMITS, "").split(), *metadata.get(COMMITS, "").split()]
        if identities:
            shown[COMMITS] = " ".join(identities)
        return {key: shown[key] for key in sorted(shown) if key not in _OF_THE_SERVER}

    def updated_ms(self, table: ResolvedTable, latest_ms: int | None) -> int:
        found: LanceTable = table.entry
        return max(found.updated_ms, latest_ms or 0)

    def identity(self, table: ResolvedTable, version: int) -> Hashable:
        return table.entry.uuid, table.entry.location

    def lies_there(self, table: ResolvedTable) -> bool:
        return table.files.newest() is not None

    def store_properties(self, change: TableChange) -> None:
        """Stores the properties of a commit without a version, and properties that came with a version that a file
        made."""
        table, found = change.table, change.table.entry
        if change.new is None:
            updates = property_updates(found, change.commit, change.identity)
            if updates:
                self._send(self._property_attempt(table, change, updates))
        elif not found.by_catalog:
            self._store_after_version(change)
        self._adopt_late(change)

    def require_transactions(self) -> None:
        if not self._tables.server.offers(TRANSACTION):
            raise Unsupported("The server behind commits to one table at a time: it has no transactions/commit")

    def require_able(self, table: ResolvedTable, info: TableInfo, commit: Commit) -> None:
        changes_schema = commit.schema is not None or commit.schema_metadata not in (None, info.schema_metadata)
        why = None
        if (commit.new_version is not None or changes_schema) and not table.entry.by_catalog:
            why = "it is not managed_by=impl, so its storage decides about its versions"
        elif commit.set_tags or commit.remove_tags or commit.remove_versions:
            why = "tags and removals of snapshots are not the server's to decide"
        if why is not None:
            raise InvalidInput(
                f"table-changes: {dotted(table.name)} cannot change in one commit with other tables: {why}. "
                f"Commit to it alone"
            )

    def commit_all(self, changes: Sequence[TableChange], others: Sequence[Mapping[str, Any]]) -> None:
        attempts = [each for each in map(self._attempt, changes) if each is not None]
        if attempts or others:
            self._by_server.commits.send_all(attempts, others)

    def after_all(self, changes: Sequence[TableChange]) -> None:
        for each in changes:
            self._adopt_late(each)

    def finish_pending(self, table: Levels) -> None:
        """A change of a name is one request to the server."""

    def may_move_versions(self, table: ResolvedTable) -> bool:
        return False

    def move_versions(self, table: ResolvedTable, info: TableInfo) -> bool:
        return False

    def declare_before_last(self, table: ResolvedTable) -> object:
        return None

    def keeper_of_several(self) -> Versions | None:
        return self._by_server if self._tables.server.offers(TRANSACTION) else None

    def makes_versions_at_once(self) -> bool:
        return False

    def create(self, table: Levels, new: NewTable) -> CreatedTable:
        created = self._new_tables.create(table, new)
        return CreatedTable(self.kept_properties(created), created)

    def list_namespaces(self, parent: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        return _cut(partial(self._tables.server.list_namespaces, parent), page)

    def load_namespace(self, namespace: Levels) -> Mapping[str, str]:
        if not namespace:
            return {}
        return dict(self._tables.server.load_namespace(namespace).get("properties") or {})

    def namespace_exists(self, namespace: Levels) -> bool:
        try:
            self.load_namespace(namespace)
        except NamespaceNotFound:
            return False
        return True

    def create_namespace(self, namespace: Levels, properties: Mapping[str, str]) -> None:
        check_keys(properties)
        self._tables.server.create_namespace(namespace, properties)

    def drop_namespace(self, namespace: Levels) -> None:
        self._tables.server.drop_namespace(namespace)

    def update_namespace_properties(
        self, namespace: Levels, removals: frozenset[str], updates: Mapping[str, str]
    ) -> PropertyChanges:
        check_keys([*removals, *updates])
        changed = self._tables.server.update_namespace_properties(namespace, sorted(removals), updates)
        return PropertyChanges(
            *(tuple(each or ()) for each in (changed.updated, changed.removed, changed.missing))
        )

    def list_tables(self, namespace: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        """The names of Lance tables and of Iceberg tables: the server tells them apart only when a table is
        loaded."""
        return _cut(partial(self._tables.server.list_tables, namespace), page) if namespace else Page(())

    def table_exists(self, table: Levels) -> bool:
        try:
            self._tables.load(table)
        except (TableNotFound, NamespaceNotFound):
            return False
        return True

    def check(self) -> None:
        try:
            self._tables.server.check()
        except (Unauthenticated, PermissionDenied):
            # it answers, and nobody is there to be passed through
            if not self.forwards_identity:
                raise

    def deregister_table(self, table: Levels) -> None:
        self._tables.drop(table, purge=False)

    def purge_table(self, table: Levels, after_ms: int | None) -> None:
        if after_ms == 0:
            self._tables.drop(table, purge=True)
        else:
            self._purging.purge(self.resolve(table), after_ms)

    def drop_table(self, table: Levels) -> None:
        self._tables.drop(table, purge=True)

    def deregistered(self) -> Iterator[Deregistered]:
        """The purged tables. The server behind keeps nothing about tables that were deregistered in another
        way."""
        return self._purging.deregistered()

    def purges(self) -> Sequence[Purge]:
        """None where only clients have credentials: the server cannot be asked whether it has a table again."""
        return () if self.forwards_identity else self._purging.pending()

    def remove_purged(self, purge: Purge) -> bool:
        return self._purging.remove(purge)

    def rename_table(self, source: Levels, destination: Levels) -> None:
        self._tables.rename(source, destination)

    def allowed_locations(self) -> Sequence[str]:
        return self._tables.allowed_locations

    def storage_options(self, table: Levels) -> Mapping[str, str]:
        return self._tables.options(self._tables.known(table))

    def _over(self, tables: Tables) -> "ServerNames":
        return ServerNames(tables, self.upstream, self.warehouse, self._root, self._tables_of)

    def _attempt(self, change: TableChange) -> Attempt | None:
        """The commit to the server. None when there is nothing left to do."""
        updates = property_updates(change.table.entry, change.commit, change.identity)
        if change.new is not None:
            return self._by_server.commits.prepared(change.new, change.table.entry, updates)
        return self._property_attempt(change.table, change, updates) if updates else None

    def _property_attempt(self, table: ResolvedTable, change: TableChange, updates: Sequence[Json]) -> Attempt:
        return properties_attempt(self._tables, table, change.commit, updates, change.identity)

    def _send(self, attempt: Attempt) -> None:
        try:
            self._by_server.commits.send(attempt)
        except (ConcurrentModification, CommitFailed) as error:
            raise Lost(str(error)) from error

    def _store_after_version(self, change: TableChange) -> None:
        if not property_updates(change.table.entry, change.commit, change.identity):
            return
        name = change.table.name
        for _ in range(_ATTEMPTS):
            table = self.resolve(name)
            updates = property_updates(table.entry, change.commit, change.identity)
            if not updates:
                return
            with suppress(Lost):
                self._send(self._property_attempt(table, change, updates))
                return
        raise CommitStateUnknown(f"A version of {dotted(name)} was made, and its properties could not be set")

    def _adopt_late(self, change: TableChange) -> None:
        if hands_over(change.table.entry, change.commit):
            adopt_late(self._tables, self.resolve, change.table.name)


def _cut(ask: listing.Ask, page: PageRequest) -> Page[str]:
    names = sorted(each[-1] for each in listing.everything(ask))
    wanted = [name for name in names if page.after is None or name > page.after]
    return Page(tuple(wanted[: page.limit]), page.limit is not None and len(wanted) > page.limit)
