"""From a raw path to a handler of the Iceberg protocol."""

from collections.abc import Iterator, Mapping
from math import inf

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.errors import BridgeError, MethodNotAllowed, RouteNotFound
from irc_bridge.http import calls
from irc_bridge.http.bodies import LARGEST_JSON, BodyMemory, body_of
from irc_bridge.http.routing import Match, PathTable, Shape
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import Call
from irc_bridge.iceberg_rest.endpoints import ENDPOINTS, Endpoint
from irc_bridge.iceberg_rest.forwarded_paths import in_plain_words
from irc_bridge.iceberg_rest.load_cache import LoadCache
from irc_bridge.iceberg_rest.passing import Passing

FIRST_WORDS = {endpoint.path.split("/")[3 if "{prefix}" in endpoint.path else 2] for endpoint in ENDPOINTS}
"""The words that follow /v1 when the prefix is left out."""


class IcebergRest:
    """Answers everything but what lies under /health. It stands before Starlette's router, whose patterns would
    meet decoded names, in which there may be anything."""

    def __init__(self, app: ASGIApp, warehouses: Warehouses, memory: BodyMemory, max_body_bytes: int) -> None:
        self._app = app
        self._memory = memory
        self._warehouses = warehouses
        self._max_body_bytes = max_body_bytes
        self._loads = LoadCache()
        self._passing = Passing(warehouses, FIRST_WORDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["raw_path"].startswith(b"/health/"):
            await self._app(scope, receive, send)
            return
        response = self._loads.reply(scope)
        if response is not None:
            await response(scope, receive, send)
            return
        await calls.respond(scope, receive, send, self._answer, replies.failure, self._memory)

    async def _answer(self, request: Request) -> Response:
        match, error = _match(request)
        endpoint, prefix = (match.endpoint, match.prefix) if match else (None, None)
        target = self._passing.target(request, endpoint, prefix)
        if target is None and error is not None:
            raise error
        call = await self._call(request, endpoint, prefix, match.params if match else {})
        if target is not None:
            return await self._passing.answer(target, endpoint, call)
        assert endpoint is not None
        return await calls.run(endpoint.handler, call, endpoint.changes)

    async def _call(
        self, request: Request, endpoint: Endpoint | None, prefix: str | None, params: Mapping[str, str]
    ) -> Call:
        return Call(
            operation=endpoint.operation if endpoint else f"{request.method} {request.url.path}",
            method=request.method,
            prefix=prefix,
            params=params,
            query=calls.query_of(request.scope["query_string"]),
            headers=request.headers,
            body=await self._body(request, endpoint),
            warehouses=self._warehouses,
            target=(request.scope["raw_path"], request.scope["query_string"]),
            loads=self._loads,
        )

    async def _body(self, request: Request, endpoint: Endpoint | None) -> bytes:
        if endpoint is not None and endpoint.reads_body:
            return await body_of(request, min(LARGEST_JSON, self._max_body_bytes), self._memory)
        takes_form = endpoint is not None and endpoint.takes_form
        return await body_of(request, self._max_body_bytes, self._memory, takes_form=takes_form, most_values=inf)


def _cut(path: str) -> Iterator[tuple[Shape, list[str]]]:
    """Below a collection every second word is a name."""
    words = path.split("/")[1:]
    shape, values = words[:1], []
    rest = words[1:]
    if rest and rest[0] not in FIRST_WORDS:
        shape.append("*")
        values.append(rest.pop(0))
    if rest[:1] == ["namespaces"]:
        values += rest[1::2]
        rest[1::2] = ["*"] * len(rest[1::2])
    yield (*shape, *rest), values


PATHS = PathTable(((endpoint.path, endpoint) for endpoint in ENDPOINTS), _cut)


def _match(request: Request) -> tuple[Match[Endpoint] | None, BridgeError | None]:
    """A server behind this one may know routes that this one does not. RouteNotFound for a known route whose words
    are written so that the other server alone would know it."""
    path: bytes = request.scope["raw_path"]
    try:
        return PATHS.find(request.method, path), None
    except MethodNotAllowed as error:
        return None, error
    except RouteNotFound as error:
        if PATHS.has(in_plain_words(path)):
            raise
        return None, error
