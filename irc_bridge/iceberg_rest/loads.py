"""LoadTable, and the metadata of a table as a request shows it. A warm LoadTable is one freshness probe and
finished bytes: no table is opened and no JSON is encoded."""

import hashlib
from contextlib import suppress
from dataclasses import replace

from pyiceberg.table.metadata import TableMetadataV2
from starlette.responses import Response

from irc_bridge.catalog.models import History, Levels, TableInfo, Unchanged
from irc_bridge.catalog.ports import CanPrepareForEngines
from irc_bridge.errors import BridgeError, InvalidInput, TableNotFound
from irc_bridge.http.cache import CachedAnswer
from irc_bridge.http.replies import NO_STORE, SlottedReply, encoded
from irc_bridge.iceberg_rest import credentials, replies
from irc_bridge.iceberg_rest.calls import IcebergCall, Identifier
from irc_bridge.iceberg_rest.load_cache import Key, conditional
from irc_bridge.translation.metadata import table_metadata, with_schema_id
from irc_bridge.translation.snapshots import needs_empty_list

NO_CONFIG: dict[str, object] = {"config": {}}
"""The slot of a LoadTableResult without credentials."""


def load_table(call: IcebergCall) -> Response:
    history = _history(call)
    key = _key(call, call.table.in_catalog, history)
    cached = call.loads.answers.get(key)
    info = call.catalog.load_table(call.table.in_catalog, history, cached.token if cached else None)
    answer = _answer(call, call.table.in_catalog, info, cached, history)
    call.loads.answers.put(key, answer)
    call.loads.remember(call.target, call.warehouse, key)
    return _with_credentials(call, call.table, answer.reply) or conditional(
        call.http.headers.get("if-none-match", ""), answer
    )


def cached_answer(call: IcebergCall, table: Levels) -> CachedAnswer | None:
    """The last answer to the same request, None where the cache has none."""
    return call.loads.answers.get(_key(call, table, _history(call)))


def table_exists(call: IcebergCall) -> Response:
    if not call.catalog.table_exists(call.table.in_catalog):
        raise TableNotFound(f"Table does not exist: {call.table}")
    return replies.no_content()


def load_result(call: IcebergCall, table: Identifier, info: TableInfo) -> Response:
    """The LoadTableResult for a table that this request registered."""
    reply = _answer(call, table.in_catalog, info, None, History.ALL).reply
    return _with_credentials(call, table, reply) or reply


def create_result(call: IcebergCall, table: Identifier, info: TableInfo, schema_id: int) -> Response:
    """The LoadTableResult for a table that this request created, with the schema id that its client gave.
    It has a metadata-location, which some clients require here; seed 004 forbids one in LoadTable only."""
    metadata = with_schema_id(metadata_for_engines(call, table.in_catalog, info), schema_id)
    metadata_json = metadata.model_dump_json().encode()
    fields = {"metadata-location": encoded(metadata_location(info, metadata_json)), "metadata": metadata_json}
    reply = SlottedReply(fields, NO_CONFIG)
    return _with_credentials(call, table, reply) or reply


def metadata_location(info: TableInfo, metadata: bytes) -> str:
    """The path of the latest Lance manifest with a digest of the metadata. Iceberg clients take metadata for
    changed when its location is another one."""
    manifest = info.latest.manifest if info.latest else f"{info.location}/.lance-reserved"
    return f"{manifest}#{hashlib.blake2b(metadata, digest_size=8).hexdigest()}"


def metadata_for_engines(
    call: IcebergCall, table: Levels, info: TableInfo, *, full: bool = True
) -> TableMetadataV2:
    """The metadata for an answer after which Iceberg clients scan the table or write files beside it. Makes the
    folders for these files, and the empty manifest list where a version of the table has no rows."""
    return table_metadata(_prepared(call, table, info), call.warehouse.view, full=full)


def _prepared(call: IcebergCall, table: Levels, info: TableInfo) -> TableInfo:
    if info.latest is None or call.warehouse.read_only or not isinstance(call.catalog, CanPrepareForEngines):
        return info
    # a storage that cannot be written to can still be read
    with suppress(BridgeError):
        made = call.catalog.prepare_for_engines(table, _empty_list() if needs_empty_list(info) else None)
        return replace(info, empty_list=made or info.empty_list)
    return info


def _empty_list() -> bytes:
    # imported late, because a server of tables with rows never needs it
    from irc_bridge.mirror.avro import empty_list

    return empty_list()


def _key(call: IcebergCall, table: Levels, history: History) -> Key:
    return call.warehouse.name, table, history


def _history(call: IcebergCall) -> History:
    value = call.http.query.get("snapshots", History.ALL.value)
    if value not in (History.ALL.value, History.REFS.value):
        raise InvalidInput(f"snapshots must be all or refs: {value}")
    return History(value)


def _answer(
    call: IcebergCall, table: Levels, info: TableInfo | Unchanged, cached: CachedAnswer | None, history: History
) -> CachedAnswer:
    if isinstance(info, Unchanged):
        assert cached is not None
        return replace(cached, token=info.token)
    metadata = metadata_for_engines(call, table, info, full=history is History.ALL).model_dump_json().encode()
    reply = SlottedReply({"metadata": metadata}, NO_CONFIG)
    etag = f'"{hashlib.blake2b(history.value.encode() + bytes(reply.body), digest_size=16).hexdigest()}"'
    reply.headers["etag"] = etag
    return CachedAnswer(info.token, reply, etag)


def _with_credentials(call: IcebergCall, table: Identifier, reply: SlottedReply) -> Response | None:
    config = credentials.vended(call, table)
    return reply.filled({"config": config}, NO_STORE) if config else None
