"""Which requests are let in, whatever their operation is: by method, path, headers, host, web page and token."""

import hmac
import re
from collections import Counter
from collections.abc import Awaitable, Mapping
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge.errors import BridgeError, InvalidInput, MethodNotAllowed, QueryTooLong, Unauthenticated
from irc_bridge.http.calls import PRINCIPAL, REQUEST_ID
from irc_bridge.http.replies import failure
from irc_bridge.iceberg_rest.replies import failure as iceberg_failure
from irc_bridge.lance_rest.replies import failure as lance_failure
from irc_bridge.lance_rest.router import PREFIX as LANCE
from irc_bridge.server.health import PREFIX as HEALTH
from irc_bridge.server.origins import Origins

METHODS = ("DELETE", "GET", "HEAD", "POST", "PUT")
LONGEST_QUERY = 8 * 1024
OAUTH = b"/v1/oauth/tokens"

_DOT_SEGMENT = re.compile(rb"(?:^|[/\\])\.\.?(?:$|[;/\\])")
"""Some servers take a backslash for a slash, and some cut a segment at a semicolon."""
_DOT, _PERCENT = b".%"
_MOST_DECODINGS = 8
_LONGEST_CACHED_PATH = 512
"""In bytes. Longer paths are searched for dot segments at each request."""
_SINGLE = frozenset((b"authorization", b"content-type", b"host", b"origin", b"sec-fetch-site", b"x-api-key"))
"""Headers that decide something. Of a repeated one, two readers could take different values."""


class Admission:
    """Refuses other methods than METHODS (and CORS preflights of allowed origins), paths with dot segments, long
    queries, repeated headers, foreign hosts and foreign web pages."""

    def __init__(self, app: ASGIApp, origins: Origins) -> None:
        self._app = app
        self._origins = origins

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """No coroutine function, because one more coroutine costs 1 % of a warm request."""
        if scope["type"] == "http":
            error = self._refusal(scope)
            if error is not None:
                return _refusal(error, scope)(scope, receive, send)
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
        """Whether a page of an allowed origin asks which requests it may send."""
        preflight = method == "OPTIONS" and b"access-control-request-method" in headers
        return preflight and self._origins.allows(headers.get(b"origin"))


class BearerToken:
    """Refuses requests without the token, except below /health. `principal` in the request's state is `token` for
    a request with the token, None for one without it."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http":
            has_token = self._has_token(scope["header_values"], scope["raw_path"])
            scope["state"][PRINCIPAL] = "token" if has_token else None
            if not has_token and not scope["raw_path"].startswith(HEALTH):
                return _refusal(Unauthenticated(_missing(scope["raw_path"])), scope)(scope, receive, send)
        return self._app(scope, receive, send)

    def _has_token(self, headers: Mapping[bytes, bytes], raw_path: bytes) -> bool:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token):
            return True
        return raw_path.startswith(LANCE) and hmac.compare_digest(headers.get(b"x-api-key", b""), self._token)


def refusal(error: BridgeError, raw_path: bytes, request_id: str | None) -> Response:
    """A refusal by the server itself, in the envelope of the protocol that the path belongs to."""
    if raw_path.startswith(LANCE):
        return lance_failure(error, request_id)
    if raw_path != OAUTH:
        return iceberg_failure(error)
    code = "invalid_client" if error.status == 401 else "invalid_request"
    return failure({"error": code, "error_description": error.message}, error.status, error.headers)


def _refusal(error: BridgeError, scope: Scope) -> Response:
    return refusal(error, scope["raw_path"], scope["state"][REQUEST_ID])


def _missing(raw_path: bytes) -> str:
    if raw_path.startswith(LANCE):
        return "This server wants a token: send it as Authorization: Bearer, or as x-api-key"
    return "This server wants a bearer token: set the client's token property"


def has_dot_segment(raw_path: bytes) -> bool:
    """Whether a segment of the path is `.` or `..`, or would be for a server that decodes the path again."""
    if _DOT not in raw_path and _PERCENT not in raw_path:
        return False
    find = _cached if len(raw_path) <= _LONGEST_CACHED_PATH else _decoded_has_dot_segment
    return find(raw_path)


def _decoded_has_dot_segment(path: bytes) -> bool:
    for _ in range(_MOST_DECODINGS):
        if _DOT_SEGMENT.search(path):
            return True
        decoded = unquote_to_bytes(path)
        if decoded == path:
            return False
        path = decoded
    return True


_cached = lru_cache(1024)(_decoded_has_dot_segment)


def _repeated(scope: Scope) -> str | None:
    counts = Counter(name for name, _ in scope["headers"] if name in _SINGLE)
    return next((name.decode() for name, count in counts.items() if count > 1), None)
