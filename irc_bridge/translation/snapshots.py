"""Lance versions and tags as Iceberg snapshots, snapshot log and refs."""

from collections.abc import Mapping
from itertools import accumulate

from pyiceberg.schema import Schema
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotLogEntry, Summary

from irc_bridge.catalog.guard import (
    GUARD_ID,
    GUARD_SEQUENCE_NUMBER,
    GUARD_SUMMARY,
    GUARD_TIMESTAMP_MS,
    guard_list,
)
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
    if info.managed_by == "impl" or lag == "serve-latest" or _is_empty_copy(info, info.latest):
        return info.latest
    return newest_mirrored(info) or info.latest


def newest_mirrored(info: TableInfo) -> TableVersion | None:
    return next((version for version in reversed(info.versions) if version.version in info.mirrored), None)


def snapshots(info: TableInfo, schema_ids: Mapping[int, int]) -> list[Snapshot]:
    """One for each version. Iceberg clients take a snapshot that differs in its parent, sequence number or time
    for another snapshot, so these follow from the version alone, whichever versions are still there."""
    return [
        Snapshot(
            snapshot_id=version.version,
            parent_snapshot_id=version.version - 1 or None,
            sequence_number=version.version,
            timestamp_ms=version.timestamp_ms,
            manifest_list=_manifest_list(info, version),
            summary=_summary(version),
            schema_id=schema_ids[version.version],
        )
        for version in info.versions
    ]


def guard(location: str, schema: Schema) -> Snapshot:
    """The snapshot that stops Iceberg clients from cleaning the table up. Its manifest list does not exist, so a
    client that needs to know all files of the table fails, with the name of the list in its message. Nothing
    refers to the snapshot, and readers of other snapshots never open its list."""
    return Snapshot(
        snapshot_id=GUARD_ID,
        parent_snapshot_id=None,
        sequence_number=GUARD_SEQUENCE_NUMBER,
        timestamp_ms=GUARD_TIMESTAMP_MS,
        manifest_list=guard_list(location),
        summary=Summary(Operation.REPLACE, **{GUARD_SUMMARY: "true"}),
        schema_id=schema.schema_id,
    )


def snapshot_log(info: TableInfo, current: TableVersion | None) -> list[SnapshotLogEntry]:
    """Up to the current version: clients refuse a log that ends with another, and one whose times fall."""
    versions = [version for version in info.versions if current is not None and version.version <= current.version]
    times = accumulate((version.timestamp_ms for version in versions), max)
    return [
        SnapshotLogEntry(snapshot_id=version.version, timestamp_ms=time)
        for version, time in zip(versions, times, strict=True)
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


def _manifest_list(info: TableInfo, version: TableVersion) -> str:
    if version.version in info.mirrored:
        return info.mirrored[version.version]
    if info.empty_list is not None and has_no_rows(version):
        return info.empty_list
    return no_manifest_list(info.location, version.version)


def needs_empty_list(info: TableInfo) -> bool:
    """Whether a version without rows has no manifest list that is there."""
    return info.empty_list is None and any(
        has_no_rows(version) and version.version not in info.mirrored for version in info.versions
    )


def has_no_rows(version: TableVersion) -> bool:
    return version.summary.get("total_rows") == "0"


def _is_empty_copy(info: TableInfo, version: TableVersion | None) -> bool:
    return version is not None and info.empty_list is not None and has_no_rows(version)


def no_manifest_list(location: str, version: int) -> str:
    """A file that does not exist: a reader's error message ends with its name."""
    what_to_do = "run-irc-bridge-mirror-or-read-it-with-lance.dataset-of-pylance"
    return f"{location}/_iceberg/Lance-version-{version}-has-no-Parquet-copy--{what_to_do}.avro"


def _summary(version: TableVersion) -> Summary:
    counts = {name: version.summary[word] for word, name in _COUNTS.items() if word in version.summary}
    return Summary(_OPERATIONS.get(version.operation, Operation.OVERWRITE), **counts)


def _ref(version: int, kind: SnapshotRefType) -> SnapshotRef:
    return SnapshotRef.model_validate({"snapshot-id": version, "type": kind})
