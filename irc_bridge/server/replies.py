"""Refusals of the server itself, in the envelope of the protocol that a path belongs to."""

import json

from starlette.responses import Response

from irc_bridge.errors import BridgeError
from irc_bridge.iceberg_rest import replies
from irc_bridge.lance_rest.replies import failure as lance_failure
from irc_bridge.lance_rest.router import PREFIX as LANCE

OAUTH = b"/v1/oauth/tokens"


def refusal(error: BridgeError, raw_path: bytes, request_id: str | None) -> Response:
    if raw_path.startswith(LANCE):
        return lance_failure(error, request_id)
    if raw_path != OAUTH:
        return replies.failure(error)
    code = "invalid_client" if error.status == 401 else "invalid_request"
    content = {"error": code, "error_description": error.message}
    return Response(json.dumps(content), error.status, error.headers, "application/json")
