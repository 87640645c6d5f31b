from typing import cast

from starlette.responses import Response
from starlette.types import Scope

from irc_bridge.catalog.cache import Answer, AnswerCache
from irc_bridge.catalog.models import History, Levels
from irc_bridge.catalog.warehouses import Warehouse

Asked = tuple[bytes, bytes]
"""The raw path and the raw query of a request."""
Key = tuple[str, Levels, History]

_OBJECTS = 512
"""Bytes of the objects of one request that is remembered."""


class WarmLoads:
    """Answers to what was asked before. The same path and query always mean the same table, so that only the
    storage is looked at: nothing waits, and the event loop may ask. Requests together have at most `max_bytes`."""

    def __init__(self, max_bytes: int = 8 * 1024 * 1024) -> None:
        self.answers = AnswerCache()
        self._asked: dict[Asked, tuple[Warehouse, Key]] = {}
        self._bytes = 0
        self._max_bytes = max_bytes

    def remember(self, asked: Asked, warehouse: Warehouse, key: Key) -> None:
        # what is encoded twice may mean another table once one of the literal name is made
        if warehouse.catalog.probes_inline and not warehouse.vend_credentials and b"%25" not in asked[0]:
            if asked not in self._asked:
                self._bytes += _OBJECTS + len(asked[0]) + len(asked[1])
            if self._bytes > self._max_bytes:
                self._asked.clear()
                self._bytes = 0
            else:
                self._asked[asked] = warehouse, key

    def reply(self, scope: Scope) -> Response | None:
        if scope["method"] != "GET":
            return None
        known = self._asked.get((scope["raw_path"], scope["query_string"]))
        answer = self.answers.get(known[1]) if known else None
        if known is None or answer is None or not known[0].catalog.is_current(answer.token):
            return None
        if_none_match = scope["header_values"].get(b"if-none-match")
        if if_none_match is not None:
            return conditional(if_none_match.decode("latin-1"), answer)
        return cast(Response, answer.reply)


def conditional(if_none_match: str, answer: Answer) -> Response:
    if any(each.strip().removeprefix("W/") in (answer.etag, "*") for each in if_none_match.split(",")):
        return Response(status_code=304, headers={"etag": answer.etag})
    return cast(Response, answer.reply)
