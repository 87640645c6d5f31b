"""From the updates of a request to one `Commit`, for the present state of the table."""

from collections.abc import Iterable, Sequence

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssignUUIDUpdate,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)

from irc_bridge.catalog.guard import GUARD_ID
from irc_bridge.catalog.models import Commit, Levels, NewVersion, SchemaChange
from irc_bridge.errors import CommitFailed, InvalidInput
from irc_bridge.iceberg_rest import properties
from irc_bridge.translation.changes import schema_change

LAST_ADDED = -1
UNSORTED = 0
"""The id of the sort order of a table without one."""


class CommitUpdates:
    """Collects the updates of a request one after the other."""

    def __init__(self, table: Levels, metadata: TableMetadata, allow_expire: bool) -> None:
        self._table = table
        self._metadata = metadata
        self._allow_expire = allow_expire
        self._set: dict[str, str] = {}
        self._removed: set[str] = set()
        self._added_schema: Schema | None = None
        self._schema: Schema | None = None
        self._new_version: NewVersion | None = None
        self._main: int | None = None
        self._tags: dict[str, int] = {}
        self._removed_tags: set[str] = set()
        self._removed_versions: set[int] = set()

    def commit(self, updates: Sequence[TableUpdate], identity: str) -> Commit:
        for update in updates:
            self._take(update)
        if self._added_schema is not None and self._schema is None:
            raise InvalidInput(
                "add-schema: set-current-schema must choose it, because a Lance table has one schema"
            )
        self._require_main()
        self._require_one_kind(updates)
        self._require_removable()
        return Commit(
            new_version=self._new_version,
            set_properties=self._set,
            remove_properties=frozenset(self._removed),
            schema=self._schema_change(),
            set_tags=self._tags,
            remove_tags=frozenset(self._removed_tags),
            remove_versions=frozenset(self._removed_versions),
            identity=identity,
        )

    def _take(self, update: TableUpdate) -> None:
        match update:
            case SetPropertiesUpdate():
                added = properties.kept(update.updates)
                self._set |= added
                self._removed -= added.keys()
            case RemovePropertiesUpdate():
                properties.check_removals(update.removals)
                self._removed |= set(update.removals)
                self._set = {key: value for key, value in self._set.items() if key not in self._removed}
            case AddSchemaUpdate():
                self._added_schema = update.schema_
            case SetCurrentSchemaUpdate():
                self._schema = self._chosen_schema(update.schema_id)
            case AddSnapshotUpdate():
                self._add_snapshot(update)
            case SetSnapshotRefUpdate():
                self._set_ref(update)
            case RemoveSnapshotRefUpdate():
                self._remove_ref(update.ref_name)
            case RemoveSnapshotsUpdate():
                self._remove_snapshots(update.snapshot_ids)
            case _:
                self._allow(update)

    def _chosen_schema(self, schema_id: int) -> Schema:
        known = {schema.schema_id: schema for schema in self._metadata.schemas}
        if self._added_schema is not None and schema_id in (LAST_ADDED, self._added_schema.schema_id):
            return self._added_schema
        if schema_id not in known:
            raise InvalidInput(f"set-current-schema: there is no schema {schema_id}, and none was added")
        return known[schema_id]

    def _schema_change(self) -> SchemaChange | None:
        if self._schema is None:
            return None
        old = self._metadata.schema()
        gone = set(self._schema.field_ids) - set(old.field_ids)
        if self._schema is self._added_schema and any(
            field_id <= self._metadata.last_column_id for field_id in gone
        ):
            raise CommitFailed(
                f"Requirement failed: fields that the new schema keeps were dropped meanwhile, those with the ids "
                f"{', '.join(map(str, sorted(gone)))}"
            )
        change = schema_change(old, self._schema)
        if change == SchemaChange():
            return None
        self._require_latest_shown()
        return change

    def _require_latest_shown(self) -> None:
        """CommitFailed if the latest version has another schema than the version that clients see: the change is
        one of the latest schema."""
        latest = self._metadata.snapshots[-1] if self._metadata.snapshots else None
        if latest is not None and latest.schema_id != self._metadata.current_schema_id:
            raise CommitFailed(
                f"The table is shown as of version {self._metadata.current_snapshot_id}, because its mirror is "
                f"behind a change of the schema: its latest version, {latest.snapshot_id}, has other columns. Run "
                f"irc-bridge mirror first, then look at the table again"
            )

    def _add_snapshot(self, update: AddSnapshotUpdate) -> None:
        if self._new_version is not None:
            raise InvalidInput("add-snapshot: one commit makes one version of a Lance table, not several")
        self._new_version = new_version(self._table, self._metadata, update)

    def _set_ref(self, update: SetSnapshotRefUpdate) -> None:
        name = update.ref_name
        if name == MAIN_BRANCH and update.type == SnapshotRefType.BRANCH:
            self._main = update.snapshot_id
            return
        if update.type != SnapshotRefType.TAG or name == MAIN_BRANCH:
            raise InvalidInput(f"set-snapshot-ref: {name} cannot be a {update.type}. A table has one branch, main")
        if self._metadata.snapshot_by_id(update.snapshot_id) is None:
            raise InvalidInput(f"set-snapshot-ref: there is no version {update.snapshot_id} for the tag {name}")
        self._tags[name] = update.snapshot_id
        self._removed_tags.discard(name)

    def _remove_ref(self, name: str) -> None:
        if name == MAIN_BRANCH:
            raise InvalidInput(
                f"remove-snapshot-ref: the branch {MAIN_BRANCH} cannot be removed, because a Lance table is not "
                f"replaced: it keeps its versions. Drop the table and create it again"
            )
        self._tags.pop(name, None)
        self._removed_tags.add(name)

    def _remove_snapshots(self, snapshot_ids: Iterable[int]) -> None:
        if not self._allow_expire:
            raise InvalidInput(
                "remove-snapshots: this would delete versions of a Lance table for good. Clean up with Lance "
                "(cleanup_old_versions of pylance), or let Iceberg clients do it with allow_expire = true in the "
                "settings of the warehouse"
            )
        # the guard stays, although clients that expire by age name it too
        self._removed_versions |= set(snapshot_ids) - {GUARD_ID}

    def _allow(self, update: TableUpdate) -> None:
        """Does nothing for an update that states the present value; InvalidInput for every other update."""
        match update:
            case AssignUUIDUpdate() if update.uuid == self._metadata.table_uuid:
                return
            case SetLocationUpdate() if update.location.rstrip("/") == self._metadata.location:
                return
            case UpgradeFormatVersionUpdate():
                properties.check_format_version(str(update.format_version))
            case SetDefaultSpecUpdate() if update.spec_id == self._metadata.default_spec_id:
                return
            case SetDefaultSortOrderUpdate() if update.sort_order_id == UNSORTED:
                return
            case _:
                raise InvalidInput(f"The update {update.action} cannot be applied to a Lance table")

    def _require_main(self) -> None:
        made = self._new_version.version if self._new_version else self._metadata.current_snapshot_id
        if self._new_version is not None and self._main is None:
            raise InvalidInput(
                f"add-snapshot: the commit must also set {MAIN_BRANCH} to snapshot {made}, with set-snapshot-ref"
            )
        if self._main is not None and self._main != made:
            raise InvalidInput(
                f"set-snapshot-ref: {MAIN_BRANCH} follows the versions of a Lance table: it is on {made} and "
                f"cannot be set to {self._main}. Restore an older version with Lance"
            )

    def _require_one_kind(self, updates: Iterable[TableUpdate]) -> None:
        kinds = (
            self._new_version is not None,
            bool(self._set or self._removed or self._schema),
            bool(self._tags or self._removed_tags or self._removed_versions),
        )
        if sum(kinds) > 1:
            actions = ", ".join(dict.fromkeys(update.action for update in updates))
            raise InvalidInput(
                f"updates: {actions} are several steps for a Lance table. One commit adds a snapshot, or changes "
                f"properties and schema, or changes tags and removes snapshots"
            )

    def _require_removable(self) -> None:
        latest = [snapshot.snapshot_id for snapshot in self._metadata.snapshots[-1:]]
        for version in (self._metadata.current_snapshot_id, *latest):
            if version in self._removed_versions:
                raise InvalidInput(f"remove-snapshots: {version} is the current version and stays")
        tagged = {name: ref.snapshot_id for name, ref in self._metadata.refs.items() if name != MAIN_BRANCH}
        tagged = {name: version for name, version in tagged.items() if name not in self._removed_tags}
        for name, version in {**tagged, **self._tags}.items():
            if version in self._removed_versions:
                raise InvalidInput(f"remove-snapshots: version {version} stays while the tag {name} points to it")


def new_version(table: Levels, metadata: TableMetadata, update: AddSnapshotUpdate) -> NewVersion:
    snapshot = update.snapshot
    staged = snapshot.manifest_list
    if staged.endswith(".avro"):
        raise InvalidInput(
            f"add-snapshot: {staged} is a list of Iceberg manifests. Iceberg engines cannot write rows to a Lance "
            f"table yet; write them with Lance, at {metadata.location}"
        )
    if "://" not in staged and not staged.startswith("/"):
        staged = f"{metadata.location}/{staged}"
    return NewVersion(table, snapshot.snapshot_id, staged)
