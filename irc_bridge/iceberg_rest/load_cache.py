"""LoadTable requests that are answered again without their handler."""

from collections.abc import Awaitable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge.catalog.models import History, Levels
from irc_bridge.catalog.warehouses import Warehouse
from irc_bridge.http.cache import AnswerCache, CachedAnswer
from irc_bridge.http.calls import OPERATION, WAREHOUSE

RawTarget = tuple[bytes, bytes]
"""The raw path and the raw query of a request."""
Key = tuple[str, Levels, History]

LOAD_TABLE = "loadTable"
_OBJECTS = 512
"""Bytes of the objects of one entry in `_keys`."""


class LoadCache:
    """Answers a request again as long as its table does not change. The same path and query always mean the same
    table, so a look at the storage is enough; it waits for nothing, so it happens on the event loop.

    All raw paths and queries together have at most `max_bytes`."""

    def __init__(self, max_bytes: int = 8 * 1024 * 1024) -> None:
        self.answers = AnswerCache()
        self._keys: dict[RawTarget, tuple[Warehouse, Key]] = {}
        self._bytes = 0
        self._max_bytes = max_bytes

    def remember(self, target: RawTarget, warehouse: Warehouse, key: Key) -> None:
        # a name that is encoded twice means another table once a table of the literal name exists
        if warehouse.catalog.probes_inline and not warehouse.vend_credentials and b"%25" not in target[0]:
            if target not in self._keys:
                self._bytes += _OBJECTS + len(target[0]) + len(target[1])
            if self._bytes > self._max_bytes:
                self._keys.clear()
                self._bytes = 0
            else:
                self._keys[target] = warehouse, key

    def reply(self, scope: Scope) -> Response | None:
        """The reply to a request, None where it must be made by the handler."""
        if scope["method"] != "GET":
            return None
        entry = self._keys.get((scope["raw_path"], scope["query_string"]))
        answer = self.answers.get(entry[1]) if entry else None
        if entry is None or answer is None or not entry[0].catalog.is_current(answer.token):
            return None
        state = scope["state"]
        state[OPERATION], state[WAREHOUSE] = LOAD_TABLE, entry[0].name
        if_none_match = scope["header_values"].get(b"if-none-match")
        if if_none_match is not None:
            return conditional(if_none_match.decode("latin-1"), answer)
        return answer.reply


class CachedLoads:
    """Middleware that answers from the cache before the request is routed."""

    def __init__(self, app: ASGIApp, loads: LoadCache) -> None:
        self._app = app
        self._loads = loads

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        reply = self._loads.reply(scope) if scope["type"] == "http" else None
        return (self._app if reply is None else reply)(scope, receive, send)


def conditional(if_none_match: str, answer: CachedAnswer) -> Response:
    if any(tag.strip().removeprefix("W/") in (answer.etag, "*") for tag in if_none_match.split(",")):
        return Response(status_code=304, headers={"etag": answer.etag})
    return answer.reply
