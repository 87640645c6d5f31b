"""What a backend offers. `Catalog` is what every one has; the rest are abilities that some have.

A protocol asks `isinstance(catalog, CanRenameTables)` once, at start: what a backend cannot do is not
advertised. Names are lists of levels below the backend's root namespace, whose own name is the empty list.
"""

from collections.abc import Hashable, Mapping
from typing import Protocol, runtime_checkable

from irc_bridge.catalog.models import (
    EVERYTHING,
    Commit,
    History,
    Levels,
    NewTable,
    Page,
    PageRequest,
    PropertyChanges,
    TableInfo,
    Unchanged,
)


class Catalog(Protocol):
    probes_inline: bool
    """True when `is_current` never waits for a network, so that the event loop may call it."""

    def list_namespaces(self, parent: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        """The names of the children of `parent`. NamespaceNotFound."""

    def load_namespace(self, namespace: Levels) -> Mapping[str, str]:
        """Its properties. NamespaceNotFound."""

    def namespace_exists(self, namespace: Levels) -> bool: ...

    def list_tables(self, namespace: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        """The names of its tables. No table is opened. NamespaceNotFound."""

    def table_exists(self, table: Levels) -> bool: ...

    def load_table(
        self, table: Levels, history: History = History.ALL, known: Hashable | None = None
    ) -> TableInfo | Unchanged:
        """The table, or Unchanged where `known` is the token of an answer for the same table and history that
        is still right. TableNotFound, NamespaceNotFound, BrokenTable."""

    def is_current(self, token: Hashable) -> bool:
        """Whether nobody has changed the table since `token` was given out. Says no when unsure."""

    def check(self) -> None:
        """Raises what keeps the catalog from answering."""


@runtime_checkable
class CanChangeNamespaces(Protocol):
    def create_namespace(self, namespace: Levels, properties: Mapping[str, str]) -> None:
        """NamespaceAlreadyExists, NamespaceNotFound (the parent), TableAlreadyExists."""

    def drop_namespace(self, namespace: Levels) -> None:
        """NamespaceNotFound, NamespaceNotEmpty."""

    def update_namespace_properties(
        self, namespace: Levels, removals: frozenset[str], updates: Mapping[str, str]
    ) -> PropertyChanges:
        """NamespaceNotFound."""


@runtime_checkable
class CanCreateTables(Protocol):
    def place_table(self, table: Levels, location: str | None) -> str:
        """The location that `create_table` would use, taken by nobody yet. Changes nothing.
        TableAlreadyExists, NamespaceNotFound, InvalidInput for a location that cannot be."""

    def create_table(self, table: Levels, new: NewTable) -> TableInfo:
        """TableAlreadyExists, NamespaceNotFound, InvalidInput."""


@runtime_checkable
class CanDropTables(Protocol):
    def deregister_table(self, table: Levels) -> None:
        """The name goes, the files stay. TableNotFound."""

    def drop_table(self, table: Levels) -> None:
        """Name and files go. TableNotFound."""


@runtime_checkable
class CanRegisterTables(Protocol):
    def register_table(self, table: Levels, location: str) -> TableInfo:
        """`location` is the root of a Lance table or one of its manifests.
        TableAlreadyExists, NamespaceNotFound, InvalidInput."""


@runtime_checkable
class CanRenameTables(Protocol):
    def rename_table(self, source: Levels, destination: Levels) -> None:
        """TableNotFound, TableAlreadyExists, NamespaceNotFound (the destination's)."""


@runtime_checkable
class CanCommit(Protocol):
    def commit(self, table: Levels, commit: Commit) -> TableInfo:
        """The table after the commit. TableNotFound, CommitFailed."""


@runtime_checkable
class CanVendCredentials(Protocol):
    def storage_options(self, table: Levels) -> Mapping[str, str]:
        """The storage options with which a client reads the table, secrets included."""
