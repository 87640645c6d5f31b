import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.models import Page
from irc_bridge.errors import BridgeError

JSON = "application/json"


def ok(content: Mapping[str, Any]) -> Response:
    return Response(json.dumps(content, separators=(",", ":"), ensure_ascii=False), media_type=JSON)


def ok_bytes(body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, headers=headers, media_type=JSON)


def no_content() -> Response:
    return Response(status_code=204)


def page(key: str, entries: list[Any], names_page: Page[str]) -> Response:
    content: dict[str, Any] = {key: entries}
    if names_page.more:
        content["next-page-token"] = names.page_token(names_page.items[-1])
    return ok(content)


def failure(error: BridgeError) -> Response:
    content = {"error": {"message": error.message, "type": error.iceberg_type, "code": error.status}}
    return Response(json.dumps(content), status_code=error.status, headers=error.headers, media_type=JSON)
