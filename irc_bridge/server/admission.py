"""Which requests are let in at all, whatever they ask for and whoever sends them."""

import re
from collections import Counter
from collections.abc import Awaitable, Mapping
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge.errors import BridgeError, InvalidInput, MethodNotAllowed, QueryTooLong
from irc_bridge.server.origins import Origins
from irc_bridge.server.replies import refusal

METHODS = ("DELETE", "GET", "HEAD", "POST", "PUT")
LONGEST_QUERY = 8 * 1024

_DOT_SEGMENT = re.compile(rb"(?:^|[/\\])\.\.?(?:$|[;/\\])")
"""Some servers take a backslash for a slash, and some cut a segment at a semicolon."""
_DOT, _PERCENT = b".%"
_MOST_DECODINGS = 8
_LONGEST_KNOWN_PATH = 512
"""In bytes. Whether a longer path has a dot segment is found out for each request."""
_SINGLE = frozenset((b"authorization", b"content-type", b"host", b"origin", b"sec-fetch-site", b"x-api-key"))
"""Headers that decide something, and of which two readers could take another one each."""


class Admission:
    """Refuses other methods than METHODS (and CORS preflights of allowed origins), paths with dot segments, long
    queries, repeated headers, foreign hosts and foreign web pages."""

    def __init__(self, app: ASGIApp, origins: Origins) -> None:
        self._app = app
        self._origins = origins

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """No coroutine function: on the way of every request one coroutine more costs 1 % of a warm one."""
        if scope["type"] == "http":
            error = self._refusal(scope)
            if error is not None:
                return refusal(error, scope["raw_path"], scope["request_id"])(scope, receive, send)
        return self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> BridgeError | None:
        headers: Mapping[bytes, bytes] = scope["header_values"]
        if len(headers) != len(scope["headers"]) and (repeated := _repeated(scope)):
            return InvalidInput(f"The request has more than one {repeated} header")
        if has_dot_segment(scope["raw_path"]):
            return InvalidInput("The path has a segment '.' or '..': send the path without it")
        if len(scope["query_string"]) > LONGEST_QUERY:
            return QueryTooLong(
                f"The query has {len(scope['query_string'])} bytes; this server takes {LONGEST_QUERY}"
            )
        error = self._origins.refusal(headers, scope["http_version"])
        if error is None and scope["method"] not in METHODS and not self._is_preflight(scope["method"], headers):
            return MethodNotAllowed(scope["method"], list(METHODS))
        return error

    def _is_preflight(self, method: str, headers: Mapping[bytes, bytes]) -> bool:
        """Whether an allowed origin asks what it may do."""
        preflight = method == "OPTIONS" and b"access-control-request-method" in headers
        return preflight and self._origins.allows(headers.get(b"origin"))


def has_dot_segment(raw_path: bytes) -> bool:
    """Whether a segment of the path is `.` or `..`, or would be for a server that decodes the path again."""
    if _DOT not in raw_path and _PERCENT not in raw_path:
        return False
    return _known(raw_path) if len(raw_path) <= _LONGEST_KNOWN_PATH else _decoded_has_dot_segment(raw_path)


def _decoded_has_dot_segment(path: bytes) -> bool:
    for _ in range(_MOST_DECODINGS):
        if _DOT_SEGMENT.search(path):
            return True
        decoded = unquote_to_bytes(path)
        if decoded == path:
            return False
        path = decoded
    return True


_known = lru_cache(1024)(_decoded_has_dot_segment)


def _repeated(scope: Scope) -> str | None:
    counts = Counter(name for name, _ in scope["headers"] if name in _SINGLE)
    return next((name.decode() for name, count in counts.items() if count > 1), None)
