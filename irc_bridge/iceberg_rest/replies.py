"""Replies of the Iceberg protocol."""

from typing import Any

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.models import Page
from irc_bridge.errors import BridgeError
from irc_bridge.http import replies
from irc_bridge.http.replies import ok as ok


def no_content() -> Response:
    return Response(status_code=204)


def page(key: str, entries: list[Any], names_page: Page[str]) -> Response:
    content: dict[str, Any] = {key: entries}
    if names_page.more:
        content["next-page-token"] = names.page_token(names_page.items[-1])
    return ok(content)


def failure(error: BridgeError) -> Response:
    content = {"error": {"message": error.message, "type": error.iceberg_type, "code": error.status}}
    return replies.failure(content, error.status, error.headers)
