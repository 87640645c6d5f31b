"""From a raw path to a handler. Names may hold an encoded slash, so the path is cut before it is decoded."""

from collections.abc import Mapping
from functools import lru_cache
from math import inf

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge import wire
from irc_bridge.bodies import LARGEST_JSON, BodyMemory, body_of
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.errors import BridgeError, MethodNotAllowed, RouteNotFound
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import Call
from irc_bridge.iceberg_rest.endpoints import ENDPOINTS, Endpoint
from irc_bridge.iceberg_rest.forwarded_paths import in_plain_words
from irc_bridge.iceberg_rest.passing import Passing
from irc_bridge.iceberg_rest.warm import WarmLoads

FIRST_WORDS = {endpoint.path.split("/")[3 if "{prefix}" in endpoint.path else 2] for endpoint in ENDPOINTS}
"""What follows /v1 when the prefix is left out."""

Shape = tuple[str, ...]


class IcebergRest:
    """Answers everything but what lies under /health. It stands before Starlette's router, whose patterns would
    meet decoded names, in which there may be anything."""

    def __init__(self, app: ASGIApp, warehouses: Warehouses, memory: BodyMemory, max_body_bytes: int) -> None:
        self._app = app
        self._memory = memory
        self._warehouses = warehouses
        self._max_body_bytes = max_body_bytes
        self._warm = WarmLoads()
        self._passing = Passing(warehouses, FIRST_WORDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["raw_path"].startswith(b"/health/"):
            await self._app(scope, receive, send)
            return
        response = self._warm.reply(scope)
        if response is None:
            try:
                response = await wire.answered(Request(scope, receive), self._answer, replies.failure)
            finally:
                self._memory.give_back(scope)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        endpoint, params, error = _endpoint(request)
        target = self._passing.target(request, endpoint, params.get("prefix"))
        if target is None and error is not None:
            raise error
        call = await self._call(request, endpoint, params)
        if target is not None:
            return await self._passing.answer(target, endpoint, call)
        assert endpoint is not None
        return await wire.run(endpoint.handler, call, endpoint.changes)

    async def _call(self, request: Request, endpoint: Endpoint | None, params: Mapping[str, str]) -> Call:
        return Call(
            operation=endpoint.operation if endpoint else f"{request.method} {request.url.path}",
            method=request.method,
            prefix=params.get("prefix"),
            params=params,
            query=wire.query_of(request.scope["query_string"]),
            headers=request.headers,
            body=await self._body(request, endpoint),
            warehouses=self._warehouses,
            asked=(request.scope["raw_path"], request.scope["query_string"]),
            warm=self._warm,
        )

    async def _body(self, request: Request, endpoint: Endpoint | None) -> bytes:
        if endpoint is not None and endpoint.reads_body:
            return await body_of(request, min(LARGEST_JSON, self._max_body_bytes), self._memory)
        takes_form = endpoint is not None and endpoint.takes_form
        return await body_of(request, self._max_body_bytes, self._memory, takes_form=takes_form, most_values=inf)


def _cut(path: str) -> tuple[Shape, list[str]]:
    """The path with a star for each name in it, and the names. Below a collection every second word is a name."""
    words = path.split("/")[1:]
    shape, values = words[:1], []
    rest = words[1:]
    if rest and rest[0] not in FIRST_WORDS:
        shape.append("*")
        values.append(rest.pop(0))
    if rest[:1] == ["namespaces"]:
        values += rest[1::2]
        rest[1::2] = ["*"] * len(rest[1::2])
    return (*shape, *rest), values


def _routes() -> dict[Shape, dict[str, Endpoint]]:
    routes: dict[Shape, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        shape = tuple("*" if word.startswith("{") else word for word in endpoint.path.split("/")[1:])
        for each in {shape, tuple(shape[:1] + shape[2:]) if "{prefix}" in endpoint.path else shape}:
            routes.setdefault(each, {})[endpoint.method] = endpoint
    return routes


ROUTES = _routes()


_LONGEST_KNOWN_PATH = 512


def find(method: str, raw_path: bytes) -> tuple[Endpoint, Mapping[str, str]]:
    """The endpoint and the raw values of the placeholders in its path."""
    return _known(method, raw_path) if len(raw_path) <= _LONGEST_KNOWN_PATH else _find(method, raw_path)


def _find(method: str, raw_path: bytes) -> tuple[Endpoint, Mapping[str, str]]:
    shape, values = _cut(raw_path.decode(errors="replace"))
    methods = ROUTES.get(shape)
    if methods is None:
        raise RouteNotFound(f"No such route: {raw_path.decode(errors='replace')}")
    endpoint = methods.get(method)
    if endpoint is None:
        raise MethodNotAllowed(method, sorted(methods))
    return endpoint, dict(zip(_placeholders(endpoint.path, shape), values, strict=True))


_known = lru_cache(1024)(_find)


def _endpoint(request: Request) -> tuple[Endpoint | None, Mapping[str, str], BridgeError | None]:
    """A server behind this one may know routes that this one does not. RouteNotFound for a known route whose words
    are written so that the other server alone would know it."""
    path: bytes = request.scope["raw_path"]
    try:
        return *find(request.method, path), None
    except MethodNotAllowed as error:
        return None, {}, error
    except RouteNotFound as error:
        if _cut(in_plain_words(path))[0] in ROUTES:
            raise
        return None, {}, error


def _placeholders(path: str, shape: Shape) -> list[str]:
    found = [word[1:-1] for word in path.split("/") if word.startswith("{")]
    return found[len(found) - shape.count("*") :]
