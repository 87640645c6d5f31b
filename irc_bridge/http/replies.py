"""JSON replies. A reply that is sent many times is encoded once; the fields that differ between requests, such as
credentials, go into its slot."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

JSON = "application/json"
NO_STORE = {"cache-control": "no-store, private"}
"""The headers of a reply with credentials."""


def encoded(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def ok(content: object, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encoded(content), headers=headers, media_type=JSON)


def failure(content: object, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """In ASCII, because a message may name a text that is no UTF-8."""
    return Response(json.dumps(content), status, headers, JSON)


class SlottedReply(Response):
    """A reply with one JSON object, whose last fields stand in a slot."""

    def __init__(
        self, fields: Mapping[str, bytes], slot: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        """`fields` are encoded already; `slot` has the fields that `filled` replaces."""
        start = b"{" + b",".join(b'"%b":%b' % (name.encode(), value) for name, value in fields.items())
        self._slot = len(start)
        super().__init__(_closed(start, slot), headers=headers, media_type=JSON)

    def filled(self, slot: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
        """This reply with other fields in the slot, and with headers of its own."""
        return Response(_closed(bytes(self.body)[: self._slot], slot), headers=headers, media_type=JSON)


def _closed(start: bytes, slot: Mapping[str, Any]) -> bytes:
    """The object that begins with `start`, which has at least one field."""
    return start + b"," + json.dumps(slot, separators=(",", ":")).encode()[1:] if slot else start + b"}"
