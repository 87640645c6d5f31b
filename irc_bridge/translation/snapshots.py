"""Lance versions and tags as Iceberg snapshots, snapshot log and refs."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotLogEntry, Summary

from irc_bridge.catalog.models import MirrorLag, TableInfo, TableVersion

_OPERATIONS = {
    "Append": Operation.APPEND,
    "Delete": Operation.DELETE,
    "CreateIndex": Operation.REPLACE,
    "Project": Operation.REPLACE,
    "ReserveFragments": Operation.REPLACE,
    "Rewrite": Operation.REPLACE,
    "UpdateConfig": Operation.REPLACE,
}

_COUNTS = {
    "total_rows": "total-records",
    "total_data_files": "total-data-files",
    "total_deletion_files": "total-delete-files",
    "total_files_size": "total-files-size",
}
"""total_rows is what a reader sees. Iceberg's count of deletes is not given: clients subtract it."""


def shown(info: TableInfo, lag: MirrorLag) -> TableVersion | None:
    """The version that is the current one to Iceberg clients: seed 004's latest, unless the storage decides about
    versions and the latest has no Parquet copy yet. None for a table that is only declared."""
    if info.managed_by == "impl" or lag == "serve-latest":
        return info.latest
    return newest_mirrored(info) or info.latest


def newest_mirrored(info: TableInfo) -> TableVersion | None:
    return next((version for version in reversed(info.versions) if version.version in info.mirrored), None)


def snapshots(info: TableInfo, schema_ids: Mapping[int, int]) -> list[Snapshot]:
    """One for each version; `schema_ids` tells the schema of a version."""
    times = accumulate((version.timestamp_ms for version in info.versions), max)
    parents = [None, *(version.version for version in info.versions)]
    return [
        Snapshot(
            snapshot_id=version.version,
            parent_snapshot_id=parent,
            sequence_number=version.version,
            timestamp_ms=time,
            manifest_list=info.mirrored.get(version.version) or no_manifest_list(info.location, version.version),
            summary=_summary(version),
            schema_id=schema_ids[version.version],
        )
        for version, parent, time in zip(info.versions, parents, times, strict=False)
    ]


def snapshot_log(snapshots: Sequence[Snapshot], current: TableVersion | None) -> list[SnapshotLogEntry]:
    """Up to the current version: clients refuse a log that ends with another."""
    return [
        SnapshotLogEntry(snapshot_id=snapshot.snapshot_id, timestamp_ms=snapshot.timestamp_ms)
        for snapshot in snapshots
        if current is not None and snapshot.snapshot_id <= current.version
    ]


def refs(info: TableInfo, current: TableVersion | None) -> dict[str, SnapshotRef]:
    """The branch main, and Lance's tags but one of that name."""
    if current is None:
        return {}
    listed = {version.version for version in info.versions}
    tags = {name: version for name, version in sorted(info.tags.items()) if version in listed}
    return {
        **{name: _ref(version, SnapshotRefType.TAG) for name, version in tags.items()},
        MAIN_BRANCH: _ref(current.version, SnapshotRefType.BRANCH),
    }


def no_manifest_list(location: str, version: int) -> str:
    """A file that does not exist: a reader's error message ends with its name."""
    what_to_do = "run-irc-bridge-mirror-or-read-it-with-lance.dataset-of-pylance"
    return f"{location}/_iceberg/Lance-version-{version}-has-no-Parquet-copy--{what_to_do}.avro"


def _summary(version: TableVersion) -> Summary:
    counts = {name: version.summary[word] for word, name in _COUNTS.items() if word in version.summary}
    return Summary(_OPERATIONS.get(version.operation, Operation.OVERWRITE), **counts)


def _ref(version: int, kind: SnapshotRefType) -> SnapshotRef:
    return SnapshotRef.model_validate({"snapshot-id": version, "type": kind})
