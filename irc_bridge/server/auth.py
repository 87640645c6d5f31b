import hmac
import json

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge.errors import Unauthenticated
from irc_bridge.iceberg_rest import replies
from irc_bridge.lance_rest.replies import failure as lance_failure
from irc_bridge.lance_rest.router import PREFIX as LANCE


class BearerToken:
    """Lets in whoever shows the token, and everybody to /health."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["raw_path"].startswith(b"/health/") or self._shown(scope):
            await self._app(scope, receive, send)
            return
        await _refusal(scope)(scope, receive, send)

    def _shown(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_right(token.strip()):
            return True
        return scope["raw_path"].startswith(LANCE) and self._is_right(headers.get("x-api-key", ""))

    def _is_right(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("latin-1"), self._token)


def _refusal(scope: Scope) -> Response:
    path: bytes = scope["raw_path"]
    if path.startswith(LANCE):
        wanted = "This server wants a token: send it as Authorization: Bearer, or as x-api-key"
        return lance_failure(Unauthenticated(wanted), scope.get("request_id"))
    error = Unauthenticated("This server wants a bearer token: set the client's token property")
    if path != b"/v1/oauth/tokens":
        return replies.failure(error)
    content = {"error": "invalid_client", "error_description": error.message}
    return Response(json.dumps(content), 401, error.headers, "application/json")
