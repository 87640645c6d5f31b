"""Versions of a table. Lance writers commit through these operations."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.models import Levels, NewVersion, VersionRange, VersionRecord
from irc_bridge.catalog.ports import CanKeepVersions
from irc_bridge.http import bodies
from irc_bridge.lance_rest import replies
from irc_bridge.lance_rest.calls import LanceCall, require_main, whole_number
from irc_bridge.lance_rest.requests import (
    BatchCreateTableVersionsRequest,
    BatchDeleteTableVersionsRequest,
    CreateTableVersionRequest,
    DescribeTableVersionRequest,
    LanceRequest,
)


def list_table_versions(call: LanceCall) -> Response:
    call.read(LanceRequest)
    require_main(call.http.query.get("branch"))
    descending = call.flag("descending") is not False
    after = None if call.after is None else whole_number("page_token", call.after)
    page = call.able(CanKeepVersions).list_table_versions(
        call.table, descending=descending, after=after, limit=call.limit
    )
    token = names.page_token(str(page.items[-1].version)) if page.more and page.items else None
    return replies.ok({"versions": [_wire(record) for record in page.items], "page_token": token})


def create_table_version(call: LanceCall) -> Response:
    request = call.read(CreateTableVersionRequest)
    (made,) = call.able(CanKeepVersions).create_table_versions([_new(call.table, request)])
    return replies.ok({"version": _wire(made)})


def is_made_at_once(call: LanceCall) -> bool:
    return call.able(CanKeepVersions).makes_versions_at_once()


def batch_create_table_versions(call: LanceCall) -> Response:
    request = bodies.read(call.http.body, BatchCreateTableVersionsRequest)
    for entry in request.entries:
        require_main(entry.branch)
    made = call.able(CanKeepVersions).create_table_versions([_new(entry.id, entry) for entry in request.entries])
    return replies.ok({"versions": [_wire(record) for record in made]})


def describe_table_version(call: LanceCall) -> Response:
    request = call.read(DescribeTableVersionRequest)
    record = call.able(CanKeepVersions).describe_table_version(call.table, request.version)
    return replies.ok({"version": _wire(record)})


def batch_delete_table_versions(call: LanceCall) -> Response:
    request = call.read(BatchDeleteTableVersionsRequest)
    ranges = [VersionRange(versions.start_version, versions.end_version) for versions in request.ranges]
    deleted = call.able(CanKeepVersions).delete_table_versions(call.table, ranges, request.ignore_missing)
    return replies.ok({"deleted_count": deleted})


def _new(table: Levels, request: CreateTableVersionRequest) -> NewVersion:
    return NewVersion(table, request.version, request.manifest_path, request.naming_scheme, request.e_tag)


def _wire(record: VersionRecord) -> Mapping[str, Any]:
    """The record as a reply. Lance expects paths from the root of the storage system, without a slash in front."""
    fields: dict[str, Any] = {
        "version": record.version,
        "manifest_path": unquote(record.manifest_path.partition("://")[2].partition("/")[2]),
        "manifest_size": record.manifest_size,
        "timestamp_millis": record.timestamp_ms,
    }
    if record.e_tag is not None:
        fields["e_tag"] = record.e_tag
    return {**fields, "metadata": dict(record.metadata)} if record.metadata else fields
