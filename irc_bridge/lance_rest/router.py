"""From a raw path to a handler. Names may hold an encoded slash, so the path is cut before it is decoded."""

from collections.abc import Awaitable, Iterator, Mapping
from functools import lru_cache
from math import inf

from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge import wire
from irc_bridge.bodies import LARGE, LARGEST_JSON, BodyMemory, body_of
from irc_bridge.catalog.cache import AnswerCache
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.errors import BridgeError, MethodNotAllowed, RouteNotFound, ServiceUnavailable
from irc_bridge.lance_rest import replies
from irc_bridge.lance_rest.calls import Call
from irc_bridge.lance_rest.endpoints import ENDPOINTS, Endpoint

PREFIX = b"/lance/"
_WAITING = 100
"""So many slow calls of one operation wait for a thread."""

Shape = tuple[str, ...]


class LanceRest:
    """Answers what lies under /lance: there, or below the name of a warehouse, stands the protocol's /v1."""

    def __init__(
        self,
        app: ASGIApp,
        warehouses: Warehouses,
        memory: BodyMemory,
        max_body_bytes: int,
        max_create_body_bytes: int,
    ) -> None:
        self._app = app
        self._memory = memory
        self._warehouses = warehouses
        self._largest_json = min(LARGEST_JSON, max_body_bytes)
        self._max_create_body_bytes = max_create_body_bytes
        self._answers = AnswerCache()
        self._under_way = 0
        self._threads = {each.operation: CapacityLimiter(each.threads) for each in ENDPOINTS if each.threads}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or not scope["raw_path"].startswith(PREFIX):
            return self._app(scope, receive, send)
        return self._reply(scope, receive, send)

    async def _reply(self, scope: Scope, receive: Receive, send: Send) -> None:
        def failure(error: BridgeError) -> Response:
            return replies.failure(error, scope.get("request_id"))

        self._under_way += 1
        try:
            response = await wire.answered(Request(scope, receive), self._answer, failure)
        finally:
            self._under_way -= 1
            self._memory.give_back(scope)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        endpoint, prefix, params = find(request.method, request.scope["raw_path"])
        call = Call(
            operation=endpoint.operation,
            method=request.method,
            prefix=prefix,
            params=params,
            query=wire.query_of(request.scope["query_string"]),
            headers=request.headers,
            body=await self._body(request, endpoint),
            warehouses=self._warehouses,
            answers=self._answers,
            max_body_bytes=self._max_create_body_bytes,
        )
        # while others wait for their answers, the event loop is theirs
        if self._under_way == 1 and len(call.body) <= LARGE and endpoint.at_once(call):
            return wire.run_here(endpoint.handler, call, endpoint.changes)
        threads = self._threads.get(endpoint.operation) if endpoint.slow(call) else None
        if threads is not None and threads.statistics().tasks_waiting >= _WAITING:
            raise ServiceUnavailable(f"{_WAITING} other calls of {endpoint.operation} wait: try again later")
        return await wire.run(endpoint.handler, call, endpoint.changes, threads)

    async def _body(self, request: Request, endpoint: Endpoint) -> bytes:
        if not endpoint.takes_data:
            return await body_of(request, self._largest_json, self._memory)
        return await body_of(request, self._max_create_body_bytes, self._memory, most_values=inf)


def _routes() -> dict[Shape, dict[str, Endpoint]]:
    routes: dict[Shape, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        shape = tuple("*" if word.startswith("{") else word for word in endpoint.path.split("/")[1:])
        routes.setdefault(shape, {})[endpoint.method] = endpoint
    return routes


ROUTES = _routes()


_LONGEST_KNOWN_PATH = 512


def find(method: str, raw_path: bytes) -> tuple[Endpoint, str | None, Mapping[str, str]]:
    """The endpoint, the raw name of the warehouse, and the raw values of the placeholders in its path."""
    return _known(method, raw_path) if len(raw_path) <= _LONGEST_KNOWN_PATH else _find(method, raw_path)


def _find(method: str, raw_path: bytes) -> tuple[Endpoint, str | None, Mapping[str, str]]:
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


_known = lru_cache(1024)(_find)


def _shapes(words: list[str]) -> Iterator[Shape]:
    """The path with stars for names; the words of the protocol come before names that are spelled like them."""
    yield tuple(words)
    yield (*words[:2], "*", *words[3:])
    yield (*words[:2], "*", *words[3:4], "*", *words[5:])
