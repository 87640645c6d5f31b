"""The keeper of names, which a backend brings. It says where the name of a table leads and which keeper decides
about the table's versions."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from irc_bridge.catalog.models import EVERYTHING, Levels, NewTable, Page, PageRequest, TableInfo
from irc_bridge.lance_store.table_files import TableFiles

if TYPE_CHECKING:
    from irc_bridge.lance_catalog.versions import TableChange, Versions


@dataclass(frozen=True, slots=True)
class ResolvedTable:
    """Where the name of a table leads."""

    name: Levels
    files: TableFiles
    versions: "Versions"
    """The keeper that decides about the versions of this table."""
    properties: Mapping[str, str] | None = None
    """The properties kept with the name; None where they lie in the folder of the table."""
    counted: Collection[int] | None = None
    """The versions that count; None where every file of a version counts."""
    stamp: Hashable | None = None
    """The stamp of what the name was looked up in. `Names.is_current` compares it."""
    entry: Any = None
    """What the backend itself knows of the table. Only the backend reads it."""

    @property
    def path(self) -> str:
        return self.files.path

    @property
    def location(self) -> str:
        return self.files.location


class CreatedTable(NamedTuple):
    properties: Mapping[str, str]
    """Those that the table begins with, its uuid among them."""
    table: ResolvedTable | None = None
    """The table, where its name is decided by the time it is made."""


class Names(Protocol):
    """A keeper of names."""

    probes_inline: bool
    """True when `is_current` never waits for a network."""
    properties_in_manifest: bool
    """True when the properties of a table with versions are Lance table metadata; False when the backend keeps
    them with the name."""

    @property
    def abilities(self) -> Sequence[str]:
        """The attributes of further ports (`irc_bridge.catalog.ports`) that the catalog gets from this keeper."""

    def list_namespaces(self, parent: Levels, page: PageRequest = EVERYTHING) -> Page[str]: ...

    def load_namespace(self, namespace: Levels) -> Mapping[str, str]: ...

    def namespace_exists(self, namespace: Levels) -> bool: ...

    def list_tables(self, namespace: Levels, page: PageRequest = EVERYTHING) -> Page[str]: ...

    def table_exists(self, table: Levels) -> bool: ...

    def check(self) -> None: ...

    def resolve(self, table: Levels) -> ResolvedTable:
        """Reads only. TableNotFound, NamespaceNotFound."""

    def resolve_known(self, table: Levels) -> ResolvedTable:
        """As `resolve`; what the backend was told in the same request need not be asked again."""

    def resolve_to_make(self, table: Levels, version: int) -> ResolvedTable | None:
        """The table as the backend last saw it, where that is enough to make this version. None where the table
        has to be resolved."""

    def is_current(self, stamp: Hashable | None) -> bool:
        """Whether every name still leads where it led when the stamp was given out. False when unsure."""

    def state(self, table: ResolvedTable) -> Hashable:
        """The state of the table outside its files. It compares equal while the backend says the same of the
        table."""

    def kept_properties(self, table: ResolvedTable) -> Mapping[str, str]:
        """The properties that the backend keeps: all of them, or those that wait for the first version."""

    def shown_properties(self, kept: Mapping[str, str], metadata: Mapping[str, str]) -> dict[str, str]:
        """The properties of a table whose latest version has this Lance table metadata."""

    def updated_ms(self, table: ResolvedTable, latest_ms: int | None) -> int:
        """When the table last changed; `latest_ms` is the time of its latest version. BrokenTable where there is
        no version and the folder is that of no table."""

    def identity(self, table: ResolvedTable, version: int) -> Hashable:
        """Which table a version is made for. A table that was dropped and made again has another identity."""

    def lies_there(self, table: ResolvedTable) -> bool:
        """Whether the table still lies where it was resolved to."""

    def store_properties(self, change: "TableChange") -> None:
        """Stores the properties of a commit that its version does not hold. Lost when others changed them."""

    def finish_pending(self, table: Levels) -> None:
        """Finishes a change of the name that a process began and did not finish. TableNotFound."""

    def may_move_versions(self, table: ResolvedTable) -> bool:
        """Whether the properties of a table may say that another keeper decides about its versions."""

    def move_versions(self, table: ResolvedTable, info: TableInfo) -> bool:
        """Gives the versions to the keeper that the property `managed_by` names. False when that one has them."""

    def declare_before_last(self, table: ResolvedTable) -> object:
        """Called before the last version is deleted: the table stays as one that is declared."""

    def keeper_of_several(self) -> "Versions | None":
        """The keeper that makes versions of several tables in one step, all or none. None where versions are made
        one after the other."""

    def makes_versions_at_once(self) -> bool: ...

    def place_table(self, table: Levels, location: str | None) -> str: ...

    def create(self, table: Levels, new: NewTable) -> CreatedTable: ...

    def register(self, table: Levels, location: str) -> None: ...

    def deregister_table(self, table: Levels) -> None: ...

    def purge_table(self, table: Levels, after_ms: int | None) -> None: ...

    def drop_table(self, table: Levels) -> None: ...

    def allowed_locations(self) -> Sequence[str]: ...

    def storage_options(self, table: Levels) -> Mapping[str, str]: ...


def finished(names: Names, name: Levels) -> ResolvedTable:
    """The table, after a version was finished that a process made only half."""
    return finish(names, names.resolve(name))


def finish(names: Names, table: ResolvedTable) -> ResolvedTable:
    while table.versions.finish_pending(table):
        table = names.resolve(table.name)
    return table
