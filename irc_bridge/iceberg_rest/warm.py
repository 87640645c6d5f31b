from typing import cast

from starlette.responses import Response
from starlette.types import Scope

from irc_bridge.catalog.cache import Answer, AnswerCache
from irc_bridge.catalog.models import History, Levels
from irc_bridge.catalog.warehouses import Warehouse

Asked = tuple[bytes, bytes]
"""The raw path and the raw query of a request."""
Key = tuple[str, Levels, History]


class WarmLoads:
    """Answers to what was asked before. The same path and query always mean the same table, so that only the
    storage is looked at: nothing waits, and the event loop may ask."""

    def __init__(self, most: int = 10_000) -> None:
        self.answers = AnswerCache()
        self._asked: dict[Asked, tuple[Warehouse, Key]] = {}
        self._most = most

    def remember(self, asked: Asked, warehouse: Warehouse, key: Key) -> None:
        # what is encoded twice may mean another table once one of the literal name is made
        if warehouse.catalog.probes_inline and not warehouse.vend_credentials and b"%25" not in asked[0]:
            if len(self._asked) >= self._most:
                self._asked.clear()
            self._asked[asked] = warehouse, key

    def reply(self, scope: Scope) -> Response | None:
        if scope["method"] != "GET":
            return None
        known = self._asked.get((scope["raw_path"], scope["query_string"]))
        answer = self.answers.get(known[1]) if known else None
        if known is None or answer is None or not known[0].catalog.is_current(answer.token):
            return None
        for name, value in scope["headers"]:
            if name == b"if-none-match":
                return conditional(value.decode("latin-1"), answer)
        return cast(Response, answer.reply)


def conditional(if_none_match: str, answer: Answer) -> Response:
    if any(each.strip().removeprefix("W/") in (answer.etag, "*") for each in if_none_match.split(",")):
        return Response(status_code=304, headers={"etag": answer.etag})
    return cast(Response, answer.reply)
