import hmac
from collections.abc import Awaitable, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge.errors import Unauthenticated
from irc_bridge.lance_rest.router import PREFIX as LANCE
from irc_bridge.server.health import PREFIX as HEALTH
from irc_bridge.server.replies import refusal


class BearerToken:
    """Lets in whoever shows the token, and everybody to /health, where `scope["shows_token"]` says who did."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http":
            shown = scope["shows_token"] = self._is_shown(scope["header_values"], scope["raw_path"])
            if not shown and not scope["raw_path"].startswith(HEALTH):
                error = Unauthenticated(_missing(scope["raw_path"]))
                return refusal(error, scope["raw_path"], scope["request_id"])(scope, receive, send)
        return self._app(scope, receive, send)

    def _is_shown(self, headers: Mapping[bytes, bytes], raw_path: bytes) -> bool:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token):
            return True
        return raw_path.startswith(LANCE) and hmac.compare_digest(headers.get(b"x-api-key", b""), self._token)


def _missing(raw_path: bytes) -> str:
    if raw_path.startswith(LANCE):
        return "This server wants a token: send it as Authorization: Bearer, or as x-api-key"
    return "This server wants a bearer token: set the client's token property"
