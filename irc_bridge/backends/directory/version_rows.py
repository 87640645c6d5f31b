"""A version of a table as a row of `__manifest`. Its id is that of the table and the number, `users$7`."""

import json
from typing import Any

from irc_bridge.backends.directory.folders import json_object
from irc_bridge.backends.directory.names import object_id
from irc_bridge.backends.directory.objects import TABLE_VERSION, Row, version_id, version_of_id
from irc_bridge.catalog.models import Levels, VersionRecord
from irc_bridge.storage.layout import VERSIONS, names_of, version_of


def row_of(record: VersionRecord, table: Levels) -> Row:
    """For a version that has its file."""
    name = record.manifest_path.rpartition("/")[2]
    return _row(table, record.version, f"{VERSIONS}/{name}", record.manifest_size, record.timestamp_ms)


def staged_row(table: Levels, version: int, staged: str, size: int, timestamp_ms: int, final: str) -> Row:
    """For a version that its row makes. `staged` is relative to the table."""
    return _row(table, version, staged, size, timestamp_ms, staged=staged, final=final)


def with_final_name(row: Row) -> Row:
    values = {**json_object(row.metadata), "manifest_path": f"{VERSIONS}/{final_name(row)}"}
    return Row(row.object_id, row.object_type, row.location, json.dumps(values), row.address)


def staged_path(row: Row) -> str | None:
    """Of the manifest that still has to get its final name, relative to the table. None when it has that."""
    path = _text(row, "manifest_path")
    name = path.rpartition("/")[2]
    if not name or version_of(name) is not None:
        return None
    return path if path == _text(row, "staged") else f"{VERSIONS}/{name}"


def was_staged_at(row: Row) -> str:
    """Empty for a version that its file made."""
    return _text(row, "staged")


def final_name(row: Row) -> str:
    """Older Lance wrote longer paths; the file lies among the table's versions all the same."""
    name = _text(row, "manifest_path").rpartition("/")[2]
    if version_of(name) is not None:
        return name
    return _text(row, "final") or names_of(version_of_id(row.object_id)[1])["V2"]


def record_of(row: Row, folder: str) -> VersionRecord:
    """`folder` is the location of the table's versions."""
    values: dict[str, Any] = json_object(row.metadata)
    size, stamp = values.get("manifest_size"), values.get("timestamp_millis")
    return VersionRecord(
        version=version_of_id(row.object_id)[1],
        manifest_path=f"{folder}/{final_name(row)}",
        manifest_size=size if isinstance(size, int) else 0,
        e_tag=values.get("e_tag"),
        timestamp_ms=stamp if isinstance(stamp, int) else 0,
    )


def _row(table: Levels, version: int, path: str, size: int, timestamp_ms: int, **more: str) -> Row:
    values = {"manifest_path": path, "manifest_size": size, "timestamp_millis": timestamp_ms, **more}
    return Row(version_id(object_id(table), version), TABLE_VERSION, metadata=json.dumps(values))


def _text(row: Row, key: str) -> str:
    value = json_object(row.metadata).get(key)
    return value if isinstance(value, str) else ""
