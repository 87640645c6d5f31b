"""LoadTable. A warm request is one freshness probe and finished bytes; nothing is opened or encoded."""

import hashlib
import json
from dataclasses import replace
from typing import cast

from starlette.responses import Response

from irc_bridge.catalog.cache import Answer
from irc_bridge.catalog.models import History, Levels, TableInfo, Unchanged
from irc_bridge.errors import InvalidInput, TableNotFound
from irc_bridge.iceberg_rest import credentials, replies
from irc_bridge.iceberg_rest.calls import Call, Identifier
from irc_bridge.iceberg_rest.shown import answered_metadata
from irc_bridge.iceberg_rest.warm import Key, conditional
from irc_bridge.translation.metadata import with_schema_id

EMPTY_CONFIG = b'"config":{}}'


def load_table(call: Call) -> Response:
    history = _history(call)
    key = _key(call, call.table.in_catalog, history)
    known = call.warm.answers.get(key)
    info = call.catalog.load_table(call.table.in_catalog, history, known.token if known else None)
    answer = _answer(call, call.table.in_catalog, info, known, history)
    call.warm.answers.put(key, answer)
    call.warm.remember(call.asked, call.warehouse, key)
    return _vended(call, call.table, answer) or conditional(call.headers.get("if-none-match", ""), answer)


def known_answer(call: Call, table: Levels) -> Answer | None:
    """The last one to the same request, as far as it is remembered."""
    return call.warm.answers.get(_key(call, table, _history(call)))


def table_exists(call: Call) -> Response:
    if not call.catalog.table_exists(call.table.in_catalog):
        raise TableNotFound(f"Table does not exist: {call.table}")
    return replies.no_content()


def load_result(call: Call, table: Identifier, info: TableInfo) -> Response:
    """The LoadTableResult for a table that a request just registered."""
    answer = _answer(call, table.in_catalog, info, None, History.ALL)
    return _vended(call, table, answer) or cast(Response, answer.reply)


def create_result(call: Call, table: Identifier, info: TableInfo, schema_id: int) -> Response:
    """The LoadTableResult for a table that a request just created, with the schema id that its client gave.
    It names a metadata-location, which some clients require here; seed 004 forbids one in LoadTable only."""
    metadata = with_schema_id(answered_metadata(call, table.in_catalog, info), schema_id)
    encoded = metadata.model_dump_json().encode()
    body = b'{"metadata-location":' + json.dumps(metadata_location(info, encoded)).encode()
    body += b',"metadata":' + encoded + b"," + EMPTY_CONFIG
    answer = Answer(info.token, body, "", replies.ok_bytes(body))
    return _vended(call, table, answer) or cast(Response, answer.reply)


def metadata_location(info: TableInfo, metadata: bytes) -> str:
    """The path of the latest Lance manifest with a digest of the metadata: Iceberg clients take metadata for
    changed when its location is another."""
    manifest = info.latest.manifest if info.latest else f"{info.location}/.lance-reserved"
    return f"{manifest}#{hashlib.blake2b(metadata, digest_size=8).hexdigest()}"


def _key(call: Call, table: Levels, history: History) -> Key:
    return call.warehouse.name, table, history


def _history(call: Call) -> History:
    value = call.query.get("snapshots", History.ALL.value)
    if value not in (History.ALL.value, History.REFS.value):
        raise InvalidInput(f"snapshots must be all or refs: {value}")
    return History(value)


def _answer(
    call: Call, table: Levels, info: TableInfo | Unchanged, known: Answer | None, history: History
) -> Answer:
    if isinstance(info, Unchanged):
        assert known is not None
        return replace(known, token=info.token)
    metadata = answered_metadata(call, table, info, full=history is History.ALL).model_dump_json().encode()
    body = b'{"metadata":' + metadata + b"," + EMPTY_CONFIG
    etag = f'"{hashlib.blake2b(history.value.encode() + body, digest_size=16).hexdigest()}"'
    return Answer(info.token, body, etag, replies.ok_bytes(body, {"etag": etag}))


def _vended(call: Call, table: Identifier, answer: Answer) -> Response | None:
    config = credentials.vended(call, table)
    if not config:
        return None
    body = answer.body.removesuffix(EMPTY_CONFIG) + b'"config":' + json.dumps(config).encode() + b"}"
    return replies.ok_bytes(body, {"cache-control": "no-store, private"})
