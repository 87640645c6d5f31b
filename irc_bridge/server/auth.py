import hmac
import json

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge.errors import Unauthenticated
from irc_bridge.iceberg_rest import replies


class BearerToken:
    """Lets in whoever shows the token, and everybody to /health."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["raw_path"].startswith(b"/health/") or self._shown(scope):
            await self._app(scope, receive, send)
            return
        await _refusal(scope["raw_path"])(scope, receive, send)

    def _shown(self, scope: Scope) -> bool:
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode("latin-1"), self._token)


def _refusal(path: bytes) -> Response:
    error = Unauthenticated("This server wants a bearer token: set the client's token property")
    if path != b"/v1/oauth/tokens":
        return replies.failure(error)
    content = {"error": "invalid_client", "error_description": error.message}
    return Response(json.dumps(content), 401, error.headers, "application/json")
