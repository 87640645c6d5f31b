"""Replies of the Lance protocol."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.models import Page
from irc_bridge.errors import BridgeError, TableVersionAlreadyExists
from irc_bridge.http.replies import JSON, NO_STORE, encoded

Content = dict[str, Any]

CONFLICT = 14


def fields(content: Content) -> Content:
    """The fields of a reply: None is left out, because the specification has few fields that may be null."""
    return {key: value for key, value in content.items() if value is not None}


def ok(content: Content) -> Response:
    headers = NO_STORE if content.get("storage_options") is not None else None
    return Response(encoded(fields(content)), headers=headers, media_type=JSON)


def empty() -> Response:
    """A success without content."""
    return Response()


def page(key: str, names_page: Page[str]) -> Response:
    """Has no token where the page is the last or is empty."""
    more = names_page.more and names_page.items
    return ok(
        {key: list(names_page.items), "page_token": names.page_token(names_page.items[-1]) if more else None}
    )


def failure(error: BridgeError, instance: str | None) -> Response:
    """The seeds' number for a version that exists means another error in this protocol: CONFLICT is sent."""
    code = CONFLICT if isinstance(error, TableVersionAlreadyExists) else error.lance_code
    content = {"code": code, "error": error.message, "detail": type(error).__name__, "instance": instance}
    headers: Mapping[str, str] = error.headers
    return Response(encoded(fields(content)), status_code=error.status, headers=headers, media_type=JSON)
