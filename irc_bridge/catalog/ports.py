"""The ports of a backend. Every backend has `Catalog`; the others are abilities that some backends have.

A protocol asks `isinstance(catalog, CanRenameTables)` at start, and `can` for each request: what a backend cannot
do is not advertised. Names are lists of levels below the backend's root namespace, whose own name is the empty
list.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, runtime_checkable

import pyarrow as pa

from irc_bridge.catalog.models import (
    EVERYTHING,
    Commit,
    Deregistered,
    History,
    Levels,
    NewTable,
    NewVersion,
    Page,
    PageRequest,
    PropertyChanges,
    Purge,
    TableInfo,
    TableStats,
    Unchanged,
    VersionRange,
    VersionRecord,
)

Decide = Callable[[TableInfo], Commit]
"""Sees a table as it is and says what to change, or raises."""


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

    def purge_table(self, table: Levels, after_ms: int | None) -> None:
        """The name goes at once, the files `after_ms` milliseconds later, or never for None. Until then
        `register_table` brings the table back. TableNotFound."""

    def drop_table(self, table: Levels) -> None:
        """Name and files go at once, also those of a table that was deregistered or purged where the catalog still
        knows it by its name (seed 001). TableNotFound."""


@runtime_checkable
class CanRegisterTables(Protocol):
    def register_table(self, table: Levels, location: str) -> TableInfo:
        """`location` is the root of a Lance table or one of its manifests.
        TableAlreadyExists, NamespaceNotFound, InvalidInput."""


@runtime_checkable
class CanAllowLocations(Protocol):
    def allowed_locations(self) -> Sequence[str]:
        """Prefixes of the places where versions of a table may name files, beside the table's own folder."""


@runtime_checkable
class CanRenameTables(Protocol):
    def rename_table(self, source: Levels, destination: Levels) -> None:
        """TableNotFound, TableAlreadyExists, NamespaceNotFound (the destination's)."""


@runtime_checkable
class CanListDeregistered(Protocol):
    def deregistered(self) -> Iterator[Deregistered]:
        """The tables that `register_table` would bring back."""


@runtime_checkable
class CanKeepPurged(Protocol):
    def purges(self) -> Sequence[Purge]:
        """The purged tables whose files are still there. Cheap: the files are not looked at."""

    def remove_purged(self, purge: Purge) -> bool:
        """Removes the files of a purged table, due or not. False when there is nothing to remove any more: the
        table was registered again, or another process removed them. InvalidInput when a writer changed the table
        after it was purged, ConcurrentModification while another process removes or registers it."""


@runtime_checkable
class CanCommit(Protocol):
    def commit(self, table: Levels, decide: Decide, history: History = History.HEADS) -> None:
        """`decide` is asked again when another writer came first: what it saw is what it changes. TableNotFound,
        InvalidInput, CommitFailed when nothing was changed, CommitStateUnknown when nobody can tell."""


@runtime_checkable
class CanCommitTogether(Protocol):
    def commit_together(self, changes: Mapping[Levels, Decide], history: History = History.HEADS) -> None:
        """All or none of them, each as `commit` does it. InvalidInput for what cannot take part."""


@runtime_checkable
class CanKeepVersions(Protocol):
    """The version operations of the Lance namespace. All of them: TableNotFound, NamespaceNotFound."""

    def create_table_versions(self, entries: Sequence[NewVersion]) -> tuple[VersionRecord, ...]:
        """Makes staged manifests versions: one is CreateTableVersion, several are BatchCreateTableVersions. All or
        none of them where the catalog manages versions itself; elsewhere one after the other up to the first that
        fails. A repeat of what was done succeeds. InvalidInput for a staged manifest that cannot be that version,
        TableVersionAlreadyExists, ConcurrentModification when the version is not the next one."""

    def makes_versions_at_once(self) -> bool:
        """Whether that takes less time than handing it to a thread."""

    def was_made(self, new: NewVersion) -> bool:
        """Whether that very staged manifest became a version, also when its file is gone and others followed."""

    def list_table_versions(
        self, table: Levels, *, descending: bool = True, after: int | None = None, limit: int | None = None
    ) -> Page[VersionRecord]:
        """The versions that follow `after` in the requested order. No table is opened."""

    def describe_table_version(self, table: Levels, version: int | None = None) -> VersionRecord:
        """The latest when none is named. TableVersionNotFound, BrokenTable."""

    def delete_table_versions(self, table: Levels, ranges: Sequence[VersionRange], ignore_missing: bool) -> int:
        """The entries go, the data stays; tells how many. InvalidInput for a range that cannot be, and
        TableVersionNotFound for a version that is not there, unless missing ones are ignored."""

    def load_version(self, table: Levels, version: int) -> TableInfo:
        """The table as `load_table` gives it, as it was at that version and with no other.
        TableVersionNotFound, BrokenTable."""


@runtime_checkable
class CanWriteRows(Protocol):
    def write_rows(self, table: Levels, rows: pa.Table, properties: Mapping[str, str], overwrite: bool) -> None:
        """The rows become the content of a table that is only declared, or with `overwrite` of any: its next
        version, which these properties are added to. TableNotFound, TableAlreadyExists without `overwrite`,
        InvalidInput for rows that Lance cannot store, CommitFailed."""


@runtime_checkable
class CanCountRows(Protocol):
    def count_rows(self, table: Levels, version: int | None, predicate: str | None) -> int:
        """At a version or the latest. TableNotFound, TableVersionNotFound, InvalidInput for the predicate."""

    def table_stats(self, table: Levels) -> TableStats:
        """Of the latest version. TableNotFound, TableVersionNotFound."""


@runtime_checkable
class CanPrepareForEngines(Protocol):
    def prepare_for_engines(self, table: Levels, empty_list: bytes | None) -> str | None:
        """Makes the folders in which Iceberg clients may leave files, where a file needs one. Stores the manifest
        list of versions without rows if it is given and not there yet, and gives its URI. TableNotFound."""


@runtime_checkable
class CanVendCredentials(Protocol):
    def storage_options(self, table: Levels) -> Mapping[str, str]:
        """The storage options with which a client reads the table, secrets included."""


def can(catalog: Catalog, ability: type) -> bool:
    """`isinstance(catalog, ability)` for each request: isinstance with a Protocol takes much longer."""
    return all(hasattr(catalog, name) for name in _members(ability))


@lru_cache
def _members(ability: type) -> tuple[str, ...]:
    return tuple(name for name in dir(ability) if not name.startswith("_"))
