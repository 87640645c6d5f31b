"""Another IRC server as a catalog of Lance tables. It need not know Lance: names, locations, properties and, for
tables that it manages, versions are the server's; schemas, history and tags are read from Lance's own files."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from irc_bridge.backends.upstream import listing, loading
from irc_bridge.backends.upstream.files import one_form
from irc_bridge.backends.upstream.loading import Found
from irc_bridge.backends.upstream.new_tables import NewTables
from irc_bridge.backends.upstream.purging import Purging
from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.backends.upstream.versions import Versions
from irc_bridge.catalog.forward import Upstream
from irc_bridge.catalog.models import (
    EVERYTHING,
    Deregistered,
    History,
    Levels,
    Page,
    PageRequest,
    PropertyChanges,
    Purge,
    TableInfo,
    Unchanged,
)
from irc_bridge.catalog.ports import Catalog
from irc_bridge.catalog.properties import GC_ENABLED, check_keys
from irc_bridge.errors import (
    BrokenTable,
    NamespaceNotFound,
    PermissionDenied,
    TableNotFound,
    Unauthenticated,
)
from irc_bridge.irc_client.lance_tables import LOCATION

TablesOf = Callable[[str | None], Tables]
"""As the client that sent an Authorization sees them."""
_ATTEMPTS = 3


class UpstreamCatalog(NewTables):
    probes_inline = False

    def __init__(
        self,
        tables: Tables,
        upstream: Upstream,
        warehouse: str | None = None,
        root: str | None = None,
        tables_of: TablesOf | None = None,
    ) -> None:
        """`tables_of` where clients are passed through."""
        self._tables = tables
        self._versions = Versions(tables)
        self._upstream = upstream
        self._warehouse = warehouse
        self._root = root
        self._purging = Purging(tables, root)
        self._tables_of = tables_of

    @property
    def upstream(self) -> Upstream:
        return self._upstream

    @property
    def warehouse(self) -> str | None:
        return self._warehouse

    @property
    def forwards_identity(self) -> bool:
        return self._tables_of is not None

    def acting_for(self, authorization: str | None) -> Catalog:
        return self if self._tables_of is None else self._over(self._tables_of(authorization))

    def with_loaded(self, table: Levels, loaded: Mapping[str, Any], authorization: str | None) -> Catalog:
        tables = self._tables if self._tables_of is None else self._tables_of(authorization)
        return self._over(tables.told(table, loaded))

    def properties_of_lance(self, location: str) -> Mapping[str, str]:
        self._tables.require_for_clients(location)
        return {LOCATION: one_form(location), GC_ENABLED: "false"}

    def same_files(self, token: Hashable) -> bool:
        return loading.same_files(token)

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
        """Those of Iceberg tables too: to tell them apart each would have to be loaded."""
        return _cut(partial(self._tables.server.list_tables, namespace), page) if namespace else Page(())

    def table_exists(self, table: Levels) -> bool:
        try:
            self._tables.load(table)
        except (TableNotFound, NamespaceNotFound):
            return False
        return True

    def load_table(
        self, table: Levels, history: History = History.ALL, known: Hashable | None = None
    ) -> TableInfo | Unchanged:
        found = self._find(table)
        for _ in range(_ATTEMPTS):
            try:
                return loading.load(found, history, known)
            except BrokenTable:
                # dropped, or changed, since the server was asked
                before, found = found, self._find(table)
                if found.table == before.table:
                    raise
        return loading.load(found, history, known)

    def is_current(self, token: Hashable) -> bool:
        return False

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
            self._purging.purge(self._find(table), after_ms)

    def drop_table(self, table: Levels) -> None:
        self._tables.drop(table, purge=True)

    def deregistered(self) -> Iterator[Deregistered]:
        """Those that were purged: of others the server behind knows nothing any more."""
        return self._purging.deregistered()

    def purges(self) -> Sequence[Purge]:
        """None where only clients have credentials: the server cannot be asked whether it has a table again."""
        return () if self.forwards_identity else self._purging.pending()

    def remove_purged(self, purge: Purge) -> bool:
        return self._purging.remove(purge)

    def rename_table(self, source: Levels, destination: Levels) -> None:
        self._tables.rename(source, destination)

    def storage_options(self, table: Levels) -> Mapping[str, str]:
        return self._tables.options(self._tables.known(table))

    def _find(self, table: Levels) -> Found:
        found = self._tables.load(table)
        return Found(table, found, self._tables.files(found))

    def _over(self, tables: Tables) -> "UpstreamCatalog":
        return UpstreamCatalog(tables, self._upstream, self._warehouse, self._root, self._tables_of)


def _cut(ask: listing.Ask, page: PageRequest) -> Page[str]:
    names = sorted(each[-1] for each in listing.everything(ask))
    wanted = [name for name in names if page.after is None or name > page.after]
    return Page(tuple(wanted[: page.limit]), page.limit is not None and len(wanted) > page.limit)
