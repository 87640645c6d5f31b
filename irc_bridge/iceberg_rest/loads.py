"""LoadTable. A warm request is one freshness probe and finished bytes; nothing is opened or encoded."""

import hashlib
import json

from starlette.responses import Response

from irc_bridge.catalog.cache import Answer
from irc_bridge.catalog.models import History, TableInfo, Unchanged
from irc_bridge.errors import InvalidInput, TableNotFound
from irc_bridge.iceberg_rest import credentials, replies
from irc_bridge.iceberg_rest.calls import Call
from irc_bridge.translation.metadata import table_metadata

EMPTY_CONFIG = b'"config":{}}'


def load_table(call: Call) -> Response:
    key = _key(call)
    known = call.cache.get(key)
    info = call.catalog.load_table(call.table.in_catalog, _history(call), known.token if known else None)
    answer = _answer(info, known, _history(call))
    call.cache.put(key, answer)
    return _reply(call, answer)


def load_table_warm(call: Call) -> Response | None:
    """The same answer without waiting for anything, or None. Runs on the event loop."""
    if "%25" in call.params["namespace"] or "%25" in call.params["table"]:
        return None
    answer = call.cache.get(_key(call))
    if answer is None or not call.catalog.is_current(answer.token):
        return None
    return _reply(call, answer)


def table_exists(call: Call) -> Response:
    if not call.catalog.table_exists(call.table.in_catalog):
        raise TableNotFound(f"Table does not exist: {call.table}")
    return replies.no_content()


def load_result(call: Call, info: TableInfo) -> Response:
    """A LoadTableResult for a table that a request just made."""
    return _reply(call, _answer(info, None, History.ALL), conditional=False)


def _history(call: Call) -> History:
    value = call.query.get("snapshots", History.ALL.value)
    try:
        return History(value)
    except ValueError:
        raise InvalidInput(f"snapshots must be all or refs: {value}") from None


def _key(call: Call) -> tuple[str, tuple[str, ...], History]:
    return call.warehouse.name, call.table.in_catalog, _history(call)


def _answer(info: TableInfo | Unchanged, known: Answer | None, history: History) -> Answer:
    if isinstance(info, Unchanged):
        assert known is not None
        return Answer(info.token, known.body, known.etag, known.location)
    metadata = table_metadata(info).model_dump_json().encode()
    body = b'{"metadata":' + metadata + b"," + EMPTY_CONFIG
    digest = hashlib.blake2b(history.value.encode() + body, digest_size=16).hexdigest()
    return Answer(info.token, body, f'"{digest}"', info.location)


def _reply(call: Call, answer: Answer, conditional: bool = True) -> Response:
    config = credentials.vended(call)
    if config:
        body = answer.body.removesuffix(EMPTY_CONFIG) + b'"config":' + json.dumps(config).encode() + b"}"
        return replies.ok_bytes(body, {"cache-control": "no-store, private"})
    if conditional and _holds(call.headers.get("if-none-match", ""), answer.etag):
        return Response(status_code=304, headers={"etag": answer.etag})
    return replies.ok_bytes(answer.body, {"etag": answer.etag})


def _holds(if_none_match: str, etag: str) -> bool:
    return any(each.strip().removeprefix("W/") in (etag, "*") for each in if_none_match.split(","))
