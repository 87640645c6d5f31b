from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, Literal, TypeVar

import pyarrow as pa

T = TypeVar("T")

Levels = tuple[str, ...]
"""The names below the root namespace down to an object: the list style identifier of seed 000."""

TABLE_TYPE = "table_type"
MANAGED_BY = "managed_by"
TABLE_UUID = "irc-bridge.table-uuid"
"""Lance table metadata that holds the uuid of a table made through the bridge."""
CREATED_SCHEMA_ID = "irc-bridge.created-schema-id"
"""Lance table metadata that holds the id which the client that created the table gave its schema."""
COMMITS = "irc-bridge.commits"
"""Lance table metadata that holds the identities of the last commits of properties and schema."""


ManagedBy = Literal["storage", "impl"]

MirrorLag = Literal["serve-mirrored", "serve-latest"]
"""Which version is the current one of a table whose latest has no Parquet copy yet."""

SchemaIds = Literal["first-version", "always-1"]
"""A schema's id is the first version in storage that has it, or the current schema always has id 1."""


@dataclass(frozen=True, slots=True)
class IcebergView:
    """How a warehouse shows Lance tables to Iceberg clients."""

    mirror_lag: MirrorLag = "serve-mirrored"
    schema_ids: SchemaIds = "first-version"
    guard_snapshot: bool = True
    """Whether a full list of snapshots has one more, which stops clients from cleaning the table up."""


def managed_by(properties: Mapping[str, str]) -> str:
    """`storage` or `impl`, seed 004."""
    return properties.get(MANAGED_BY, "storage").lower()


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Names after `after`, at most `limit` of them; everything when there is no limit."""

    after: str | None = None
    limit: int | None = None


EVERYTHING = PageRequest()


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items in order; `more` tells whether others follow the last."""

    items: tuple[T, ...]
    more: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a Lance schema. `id` is Lance's own, None where it gives none (items of fixed-size lists)."""

    id: int | None
    name: str
    type: pa.DataType
    nullable: bool
    metadata: Mapping[str, str] = field(default_factory=dict)
    children: tuple["Field", ...] = ()


Schema = tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One Lance version. It never changes, so what is computed for it is computed once."""

    version: int
    timestamp_ms: int
    schema: Schema
    operation: str
    """Lance's own word for the change: Append, Delete, Overwrite, Rewrite ..."""
    summary: Mapping[str, str]
    """Lance's counts: total_rows, total_data_files, total_files_size ..."""
    manifest: str
    """Where the manifest of this version lies: a URI below the table's location."""
    max_field_id: int


class History(Enum):
    """Which versions of a table are loaded."""

    ALL = "all"
    """Every version still in storage."""
    REFS = "refs"
    """The latest version, the latest that has a Parquet copy, and the tagged ones; with `schema_starts`."""
    HEADS = "heads"
    """The same versions as REFS, without `schema_starts`, which may cost a look at every version."""


@dataclass(frozen=True, slots=True)
class TableInfo:
    location: str
    properties: Mapping[str, str]
    """Lance table metadata; for a declared table what was kept for it until its first version."""
    versions: tuple[TableVersion, ...]
    """In rising order, the latest last; empty for a table that is only declared."""
    tags: Mapping[str, int]
    """Lance tags on versions that are listed in `versions`."""
    updated_ms: int
    """When the table last changed: its latest version, or its declaration."""
    token: Hashable
    schema_metadata: Mapping[str, str] = field(default_factory=dict)
    """Lance's metadata of the latest schema."""
    mirrored: Mapping[int, str] = field(default_factory=dict)
    """Those of `versions` that `load_table` found a Parquet copy of, and the URI of its manifest list."""
    schema_starts: tuple[tuple[int, Schema], ...] = ()
    """The first version in storage of each schema, in rising order: of every schema that `versions` have and of
    every older one. Empty where `load_table` was not asked for it."""
    empty_list: str | None = None
    """The URI of the table's manifest list without manifests, if any: the copy of each version without rows."""

    @property
    def latest(self) -> TableVersion | None:
        return self.versions[-1] if self.versions else None

    @property
    def managed_by(self) -> str:
        return managed_by(self.properties)


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The answer to a load with a known token: what the caller holds is still right, under this token."""

    token: Hashable


NamingScheme = Literal["V1", "V2"]
"""How Lance names manifests: by the version, or by a padded number that falls as versions rise."""


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """The entry of one version, with the properties of seed 000."""

    version: int
    manifest_path: str
    """The location of the manifest."""
    manifest_size: int
    e_tag: str | None
    timestamp_ms: int
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewVersion:
    table: Levels
    version: int
    staged_path: str
    """The manifest that the writer staged inside the table: a URI, a path that is absolute or relative to the root
    of the storage system, or one that begins with `_versions/`."""
    naming_scheme: NamingScheme | None = None
    e_tag: str | None = None
    """That of the staged manifest. A repeat whose first answer was lost is known by it."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """From `start`, 0 for the first there is, up to but not including `end`, or with the latest where it is -1."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NewTable:
    properties: Mapping[str, str]
    location: str | None = None
    schema: pa.Schema | None = None
    """None declares the table: name and place are taken, the first version comes from a writer."""
    rows: pa.Table | None = None
    """Those of the first version, of that schema; None for none."""
    field_ids: tuple[int | None, ...] = ()
    """The Lance ids of the fields of `schema`, depth first; None for a field whose id is free to choose. Empty
    leaves all ids to Lance."""


FieldPath = tuple[str, ...]
"""The names from a column down to a field inside it."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """The changes of a field that stays; None leaves a property of the field as it is."""

    path: FieldPath
    name: str | None = None
    optional: bool = False
    """It may hold nulls from now on."""
    doc: str | None = None
    """Empty removes it."""


@dataclass(frozen=True, slots=True)
class Addition:
    """A field without values, at the end of the table or of the struct `parent`."""

    parent: FieldPath
    field: pa.Field


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """Fields go first, those that stay change next, new ones come last. Paths are those from before."""

    drop: tuple[FieldPath, ...] = ()
    alter: tuple[Alteration, ...] = ()
    add: tuple[Addition, ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """The changes of one commit. It does one of three things: it makes a new version, it changes properties and
    schema, which make a version too, or it sets and removes tags and then removes versions."""

    new_version: NewVersion | None = None
    set_properties: Mapping[str, str] = field(default_factory=dict)
    remove_properties: frozenset[str] = frozenset()
    schema: SchemaChange | None = None
    schema_metadata: Mapping[str, str] | None = None
    """Lance's metadata of the schema, all of it."""
    set_tags: Mapping[str, int] = field(default_factory=dict)
    remove_tags: frozenset[str] = frozenset()
    remove_versions: frozenset[int] = frozenset()
    identity: str | None = None
    """Tells whether a commit of properties and schema is in already, when it is sent again."""


@dataclass(frozen=True, slots=True)
class Purge:
    """A purged table: its name is gone, and its files go later."""

    table: Levels
    location: str
    purged_ms: int
    due_ms: int | None
    """When the files go; None for never."""


@dataclass(frozen=True, slots=True)
class Deregistered:
    """A table whose files are there and whose name is gone."""

    table: Levels
    """The name that it had, or was made with."""
    location: str
    purge: Purge | None = None
    """None for a table that was only deregistered: its files stay."""
    changed: bool = False
    """Whether a writer changed the table after it was purged: then its files stay."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """The outcome of the migration of a folder that looks like a table."""

    name: str
    location: str
    skipped: str | None
    """Why it got no row."""


@dataclass(frozen=True, slots=True)
class PropertyChanges:
    updated: tuple[str, ...]
    removed: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many rows the fragments of a table have."""

    min: int
    max: int
    mean: int
    p25: int
    p50: int
    p75: int
    p99: int


@dataclass(frozen=True, slots=True)
class TableStats:
    total_bytes: int
    rows: int
    indices: int
    fragments: int
    small_fragments: int
    lengths: Lengths
