"""Commits: requirements are checked against the table as it is, updates become one `Commit`."""

import json

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCreate,
    AssignUUIDUpdate,
    RemovePropertiesUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)
from starlette.responses import Response

from irc_bridge.catalog.models import Commit, History, TableInfo
from irc_bridge.catalog.ports import CanCommit
from irc_bridge.errors import CommitFailed, InvalidInput
from irc_bridge.iceberg_rest import properties, replies
from irc_bridge.iceberg_rest.calls import Call, Identifier
from irc_bridge.iceberg_rest.requests import CommitTableRequest, CommitTransactionRequest
from irc_bridge.iceberg_rest.staging import create_staged
from irc_bridge.translation.metadata import table_metadata


def update_table(call: Call) -> Response:
    info = _commit(call, call.table, call.read(CommitTableRequest))
    location = info.latest.manifest if info.latest else f"{info.location}/.lance-reserved"
    metadata = table_metadata(info).model_dump_json().encode()
    return replies.ok_bytes(
        b'{"metadata-location":' + json.dumps(location).encode() + b',"metadata":' + metadata + b"}"
    )


def commit_transaction(call: Call) -> Response:
    changes = call.read(CommitTransactionRequest).table_changes
    if len(changes) != 1:
        raise InvalidInput(
            f"table-changes: this warehouse commits to one table at a time, and this request names {len(changes)}"
        )
    identifier = changes[0].identifier
    if identifier is None:
        raise InvalidInput("table-changes.0.identifier: Field required")
    _commit(call, call.identifier(identifier.namespace, identifier.name), changes[0])
    return replies.no_content()


def _commit(call: Call, table: Identifier, request: CommitTableRequest) -> TableInfo:
    if any(isinstance(requirement, AssertCreate) for requirement in request.requirements):
        return create_staged(call, table, request.updates)
    info = call.catalog.load_table(table.in_catalog, History.ALL)
    assert isinstance(info, TableInfo)
    metadata = table_metadata(info)
    for requirement in request.requirements:
        _require(requirement, metadata)
    commit = _as_commit(request.updates, metadata)
    if commit == Commit():
        return info
    return call.able(CanCommit).commit(table.in_catalog, commit)


def _require(requirement: TableRequirement, metadata: TableMetadata) -> None:
    try:
        requirement.validate(metadata)
    except CommitFailedException as error:
        reason = str(error).removeprefix("Requirement failed: ").removeprefix("Table ")
        raise CommitFailed(f"Requirement failed: {reason}") from None


def _as_commit(updates: tuple[TableUpdate, ...], metadata: TableMetadata) -> Commit:
    set_properties: dict[str, str] = {}
    removals: set[str] = set()
    for update in updates:
        match update:
            case SetPropertiesUpdate():
                added = properties.kept(update.updates)
                set_properties |= added
                removals -= added.keys()
            case RemovePropertiesUpdate():
                properties.check_keys(update.removals)
                removals |= set(update.removals)
                set_properties = {k: v for k, v in set_properties.items() if k not in removals}
            case _:
                _allow(update, metadata)
    return Commit(set_properties, frozenset(removals))


def _allow(update: TableUpdate, metadata: TableMetadata) -> None:
    """Updates that state what is so already change nothing; all others cannot be done."""
    match update:
        case AssignUUIDUpdate() if update.uuid == metadata.table_uuid:
            return
        case SetLocationUpdate() if update.location.rstrip("/") == metadata.location:
            return
        case UpgradeFormatVersionUpdate():
            properties.check_format_version(str(update.format_version))
        case AddSnapshotUpdate():
            raise InvalidInput(
                "add-snapshot: data cannot be written to a Lance table through this server; "
                f"write it with a Lance client at {metadata.location}"
            )
        case _:
            raise InvalidInput(
                f"The update {update.action} cannot be applied to a Lance table: commits set and remove properties"
            )
