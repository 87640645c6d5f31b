import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.models import Page
from irc_bridge.errors import BridgeError, TableVersionAlreadyExists
from irc_bridge.wire import JSON

Content = dict[str, Any]

CONFLICT = 14
SECRET = {"cache-control": "no-store, private"}
"""The headers of an answer that holds credentials."""


def encoded(content: Content) -> bytes:
    """What is None is left out: the specification has few fields that may be null."""
    said = {key: value for key, value in content.items() if value is not None}
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()


def ok(content: Content) -> Response:
    headers = SECRET if content.get("storage_options") is not None else None
    return Response(encoded(content), headers=headers, media_type=JSON)


def empty() -> Response:
    """A success that only its status tells."""
    return Response()


def page(key: str, found: Page[str]) -> Response:
    """Without a token where the client asked for nothing."""
    more = found.more and found.items
    return ok({key: list(found.items), "page_token": names.page_token(found.items[-1]) if more else None})


def failure(error: BridgeError, instance: str | None) -> Response:
    """The number that the seeds gave to a version that exists is another error on this wire."""
    code = CONFLICT if isinstance(error, TableVersionAlreadyExists) else error.lance_code
    content = {"code": code, "error": error.message, "detail": type(error).__name__, "instance": instance}
    headers: Mapping[str, str] = error.headers
    return Response(encoded(content), status_code=error.status, headers=headers, media_type=JSON)
