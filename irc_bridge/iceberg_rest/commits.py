"""Commits. The updates of a request become a `Commit` for the present state of the table, and again for the next
state when another writer was first."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertCreate,
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    AssertRefSnapshotId,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetSnapshotRefUpdate,
)
from starlette.responses import Response

from irc_bridge.catalog.forward import CanCommitMixed
from irc_bridge.catalog.models import (
    COMMITS,
    CREATED_SCHEMA_ID,
    Commit,
    History,
    Levels,
    NewVersion,
    TableInfo,
)
from irc_bridge.catalog.ports import CanCommit, CanCommitTogether, CanKeepVersions
from irc_bridge.errors import BridgeError, CommitFailed, CommitStateUnknown, InvalidInput, TableVersionNotFound
from irc_bridge.http import bodies
from irc_bridge.http.replies import SlottedReply, encoded
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import IcebergCall, Identifier
from irc_bridge.iceberg_rest.commit_updates import CommitUpdates, new_version
from irc_bridge.iceberg_rest.loads import metadata_for_engines, metadata_location
from irc_bridge.iceberg_rest.requests import CommitTableRequest, CommitTransactionRequest
from irc_bridge.iceberg_rest.staging import create_staged
from irc_bridge.translation.metadata import table_metadata

Json = Mapping[str, Any]

_NEED_HISTORY = (AddSchemaUpdate, SetCurrentSchemaUpdate, SetSnapshotRefUpdate, RemoveSnapshotsUpdate)
_ASSERT_HISTORY = (AssertLastAssignedFieldId, AssertCurrentSchemaId)


def update_table(call: IcebergCall) -> Response:
    table, request = call.table, call.read(CommitTableRequest)
    if _creates(request):
        return _committed(call, table, create_staged(call, table, request.updates), created=True)
    attempt = CommitAttempt(call, table, request)
    call.able(CanCommit).commit(table.in_catalog, attempt.decide, attempt.history)
    try:
        info = call.catalog.load_table(table.in_catalog, History.ALL)
    except BridgeError as error:
        raise CommitStateUnknown(f"The commit was made, but {table} cannot be read: {error.message}") from error
    assert isinstance(info, TableInfo)
    return _committed(call, table, info)


def commit_transaction(call: IcebergCall) -> Response:
    attempts = _attempts(call, call.read(CommitTransactionRequest).table_changes)
    if len(attempts) == 1:
        _commit_one(call, attempts[0])
    elif attempts:
        _commit_several(call, attempts)
    return replies.no_content()


def commit_mixed_transaction(call: IcebergCall, lance: Sequence[Json], others: Sequence[Json]) -> Response:
    """Commits changes of Lance tables, and in the same transaction changes of other tables, which the server
    behind the warehouse keeps."""
    request = bodies.read(json.dumps({"table-changes": lance}).encode(), CommitTransactionRequest)
    attempts = _attempts(call, request.table_changes)
    if others or len(attempts) > 1:
        _commit_several(call, attempts, others)
    else:
        _commit_one(call, attempts[0])
    return replies.no_content()


def _attempts(call: IcebergCall, changes: Sequence[CommitTableRequest]) -> list["CommitAttempt"]:
    attempts: dict[Levels, CommitAttempt] = {}
    for number, change in enumerate(changes):
        if change.identifier is None:
            raise InvalidInput(f"table-changes.{number}.identifier: Field required")
        table = call.identifier(change.identifier.namespace, change.identifier.name)
        if table.in_catalog in attempts:
            raise InvalidInput(f"table-changes.{number}.identifier: {table} is named twice")
        attempts[table.in_catalog] = CommitAttempt(call, table, change)
    return list(attempts.values())


def _commit_one(call: IcebergCall, attempt: "CommitAttempt") -> None:
    if _creates(attempt.request):
        create_staged(call, attempt.table, attempt.request.updates)
    else:
        call.able(CanCommit).commit(attempt.table.in_catalog, attempt.decide, attempt.history)


def _commit_several(call: IcebergCall, attempts: list["CommitAttempt"], others: Sequence[Json] = ()) -> None:
    if not isinstance(call.catalog, CanCommitTogether):
        raise InvalidInput(
            f"table-changes: warehouse {call.warehouse.name} commits to one table at a time, and this names "
            f"{len(attempts)}. A directory with table_version_management commits to several"
        )
    if any(_creates(attempt.request) for attempt in attempts):
        raise InvalidInput("table-changes: a table is created by a commit of its own, with no other table in it")
    history = History.ALL if any(attempt.history is History.ALL for attempt in attempts) else History.HEADS
    changes = {attempt.table.in_catalog: attempt.decide for attempt in attempts}
    if others:
        call.able(CanCommitMixed).commit_mixed(changes, others, history)
    else:
        call.catalog.commit_together(changes, history)


def _creates(request: CommitTableRequest) -> bool:
    return any(isinstance(requirement, AssertCreate) for requirement in request.requirements)


def _committed(call: IcebergCall, table: Identifier, info: TableInfo, created: bool = False) -> Response:
    metadata = (
        metadata_for_engines(call, table.in_catalog, info)
        if created
        else table_metadata(info, call.warehouse.view)
    )
    metadata_json = metadata.model_dump_json().encode()
    location = encoded(metadata_location(info, metadata_json))
    return SlottedReply({"metadata-location": location, "metadata": metadata_json}, slot={})


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


class CommitAttempt:
    """The commit of a request to one table. `decide` is called again for each state that the commit meets."""

    def __init__(self, call: IcebergCall, table: Identifier, request: CommitTableRequest) -> None:
        self._call = call
        self.table = table
        self.request = request
        self._identity = _digest(request.model_dump_json(include={"requirements", "updates"}).encode())

    @property
    def history(self) -> History:
        needed = any(isinstance(update, _NEED_HISTORY) and not _is_main(update) for update in self.request.updates)
        needed |= any(isinstance(requirement, _ASSERT_HISTORY) for requirement in self.request.requirements)
        return History.ALL if needed else History.HEADS

    def decide(self, info: TableInfo) -> Commit:
        """The `Commit` of this request, empty if the table has this commit already."""
        warehouse = self._call.warehouse
        metadata = table_metadata(info, warehouse.view, full=False)
        try:
            self._require(metadata, info)
            updates = CommitUpdates(self.table.in_catalog, metadata, warehouse.allow_expire)
            commit = updates.commit(self.request.updates, self._identity)
        except CommitFailed:
            if self._was_made(info, metadata):
                return Commit()
            raise
        if commit.new_version is not None:
            self._require_asserted(info, commit.new_version)
        return commit

    def _require(self, metadata: TableMetadata, info: TableInfo) -> None:
        for requirement in self.request.requirements:
            if isinstance(requirement, AssertCurrentSchemaId) and _is_created(requirement, metadata, info):
                continue
            try:
                requirement.validate(metadata)
            except CommitFailedException as error:
                raise CommitFailed(_in_known_words(str(error))) from error

    def _was_made(self, info: TableInfo, metadata: TableMetadata) -> bool:
        for update in self.request.updates:
            if isinstance(update, AddSnapshotUpdate):
                with suppress(InvalidInput):
                    new = new_version(self.table.in_catalog, metadata, update)
                    return self._call.able(CanKeepVersions).was_made(new)
                return False
        return self._identity in _identities(info) or self._follows_the_asserted_version(info)

    def _follows_the_asserted_version(self, info: TableInfo) -> bool:
        """Whether the version after the asserted one is this commit. The table keeps the identities of the last
        commits only, so they cannot tell this when many others have followed."""
        asserted = self._asserted_version()
        if asserted is None or info.latest is None or asserted + 1 >= info.latest.version:
            return False
        try:
            next_one = self._call.able(CanKeepVersions).load_version(self.table.in_catalog, asserted + 1)
        except TableVersionNotFound:
            return False
        return _identities(next_one)[-1:] == [self._identity]

    def _asserted_version(self) -> int | None:
        """0 for a table without a version, None where no version is asserted."""
        for requirement in self.request.requirements:
            if isinstance(requirement, AssertRefSnapshotId) and requirement.ref == MAIN_BRANCH:
                return requirement.snapshot_id or 0
        return None

    def _require_asserted(self, info: TableInfo, new: NewVersion) -> None:
        if info.managed_by != "impl":
            raise InvalidInput(
                f"add-snapshot: {self.table} is managed by its storage: writers commit there, with Lance. Set its "
                f"property managed_by to impl to make this catalog decide"
            )
        asserted = self._asserted_version()
        if asserted is None:
            raise InvalidInput(
                f"requirements: add-snapshot needs assert-ref-snapshot-id for {MAIN_BRANCH}, with the version "
                f"that the new one follows"
            )
        if new.version != asserted + 1:
            raise InvalidInput(
                f"add-snapshot: the snapshot-id must be {asserted + 1}, one more than the version that "
                f"assert-ref-snapshot-id names, and is {new.version}"
            )


_KNOWN_WORDS = {
    "current schema id has changed": "current schema changed",
    "default spec id has changed": "default partition spec changed",
    "default sort order id has changed": "default sort order changed",
    "last assigned field id has changed": "last assigned field id changed",
    "last assigned partition id has changed": "last assigned partition id changed",
}
"""pyiceberg's words for a requirement that failed, and the words of the reference server, which clients search."""


def _in_known_words(failed: str) -> str:
    failed = failed.removeprefix("Requirement failed: ").removeprefix("Table ")
    for words, known in _KNOWN_WORDS.items():
        failed = failed.replace(words, known)
    return f"Requirement failed: {failed}"


def _is_created(requirement: AssertCurrentSchemaId, metadata: TableMetadata, info: TableInfo) -> bool:
    """Whether a client means the schema of version 1 by the id that it had in the client's create request."""
    created = info.properties.get(CREATED_SCHEMA_ID)
    return metadata.current_schema_id == 1 and created == str(requirement.current_schema_id)


def _identities(info: TableInfo) -> list[str]:
    return info.properties.get(COMMITS, "").split()


def _is_main(update: object) -> bool:
    return isinstance(update, SetSnapshotRefUpdate) and update.ref_name == MAIN_BRANCH
