"""From a raw path to a handler. Names may hold an encoded slash, so the path is cut before it is decoded."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge import wire
from irc_bridge.catalog.cache import AnswerCache
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.errors import BridgeError, MethodNotAllowed, RouteNotFound
from irc_bridge.lance_rest import replies
from irc_bridge.lance_rest.calls import Call
from irc_bridge.lance_rest.endpoints import ENDPOINTS, Endpoint

PREFIX = b"/lance/"

Shape = tuple[str, ...]


class LanceRest:
    """Answers what lies under /lance: there, or below the name of a warehouse, stands the protocol's /v1."""

    def __init__(
        self, app: ASGIApp, warehouses: Warehouses, max_body_bytes: int, max_create_body_bytes: int
    ) -> None:
        self._app = app
        self._warehouses = warehouses
        self._max_body_bytes = max_body_bytes
        self._max_create_body_bytes = max_create_body_bytes
        self._answers = AnswerCache()
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["raw_path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return

        def failure(error: BridgeError) -> Response:
            return replies.failure(error, scope.get("request_id"))

        self._under_way += 1
        try:
            response = await wire.answered(Request(scope, receive), self._answer, failure)
        finally:
            self._under_way -= 1
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        endpoint, prefix, params = find(request.method, request.scope["raw_path"])
        limit = self._max_create_body_bytes if endpoint.takes_data else self._max_body_bytes
        call = Call(
            operation=endpoint.operation,
            method=request.method,
            prefix=prefix,
            params=params,
            query=wire.query_of(request.scope["query_string"]),
            headers=request.headers,
            body=await wire.body_of(request, limit),
            warehouses=self._warehouses,
            answers=self._answers,
        )
        # while others wait for their answers, the event loop is theirs
        if self._under_way == 1 and endpoint.at_once(call):
            return wire.run_here(endpoint.handler, call, endpoint.changes)
        return await wire.run(endpoint.handler, call, endpoint.changes)


def _routes() -> dict[Shape, dict[str, Endpoint]]:
    routes: dict[Shape, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        shape = tuple("*" if word.startswith("{") else word for word in endpoint.path.split("/")[1:])
        routes.setdefault(shape, {})[endpoint.method] = endpoint
    return routes


ROUTES = _routes()


@lru_cache(1024)
def find(method: str, raw_path: bytes) -> tuple[Endpoint, str | None, Mapping[str, str]]:
    """The endpoint, the raw name of the warehouse, and the raw values of the placeholders in its path."""
    path = raw_path.decode(errors="replace")
    words = path.split("/")[2:]
    prefix = words.pop(0) if words[1:2] == ["v1"] else None
    shape = next((each for each in _shapes(words) if each in ROUTES), None)
    if shape is None:
        raise RouteNotFound(f"No such route: {path}")
    methods = ROUTES[shape]
    endpoint = methods.get(method)
    if endpoint is None:
        raise MethodNotAllowed(method, sorted(methods))
    named = [word[1:-1] for word in endpoint.path.split("/") if word.startswith("{")]
    values = [word for word, known in zip(words, shape, strict=True) if known == "*"]
    return endpoint, prefix, dict(zip(named, values, strict=True))


def _shapes(words: list[str]) -> Iterator[Shape]:
    """The path with stars for names; the words of the protocol come before names that are spelled like them."""
    yield tuple(words)
    yield (*words[:2], "*", *words[3:])
    yield (*words[:2], "*", *words[3:4], "*", *words[5:])
