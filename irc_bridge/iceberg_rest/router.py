"""From a raw path to a handler of the Iceberg protocol."""

from collections.abc import Iterator, Mapping
from functools import partial
from math import inf
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.errors import BridgeError, MethodNotAllowed, RouteNotFound
from irc_bridge.http import calls
from irc_bridge.http.bodies import LARGEST_JSON, BodyMemory, body_of
from irc_bridge.http.routing import Match, PathTable, Shape
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import IcebergCall
from irc_bridge.iceberg_rest.endpoints import ENDPOINTS, IcebergEndpoint
from irc_bridge.iceberg_rest.forward.dispatch import Dispatch, in_plain_words
from irc_bridge.iceberg_rest.load_cache import LoadCache

FIRST_WORDS = {endpoint.path.split("/")[3 if "{prefix}" in endpoint.path else 2] for endpoint in ENDPOINTS}
"""The words that follow /v1 when the prefix is left out."""


class IcebergRest:
    """Two applications: `endpoint` answers the requests that `endpoint_of` knows, `other_path` all other
    requests."""

    def __init__(self, warehouses: Warehouses, loads: LoadCache, memory: BodyMemory, max_body_bytes: int) -> None:
        self._memory = memory
        self._warehouses = warehouses
        self._max_body_bytes = max_body_bytes
        self._loads = loads
        self._dispatch = Dispatch(warehouses, FIRST_WORDS)

    async def endpoint(self, scope: Scope, receive: Receive, send: Send) -> None:
        await calls.respond(scope, receive, send, self._answer, replies.failure, self._memory)

    async def other_path(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the request to the server behind an `irc` warehouse, which may have endpoints of its own."""
        await calls.respond(scope, receive, send, self._other_path, replies.failure, self._memory)

    async def _answer(self, request: Request) -> Response:
        match: Match[IcebergEndpoint] = request.scope["match"]
        endpoint = match.endpoint
        request.scope["state"][calls.OPERATION] = endpoint.operation
        target = self._dispatch.target(request, endpoint, match.prefix)
        call = await self._call(request, endpoint, match.prefix, match.params)
        if target is not None:
            return await self._dispatch.answer(target, endpoint, call)
        return await calls.run(partial(endpoint.handler, call), call.http, endpoint.changes)

    async def _other_path(self, request: Request) -> Response:
        error = _not_an_endpoint(request)
        target = self._dispatch.target(request, None, None)
        if target is None:
            raise error
        return await self._dispatch.answer(target, None, await self._call(request, None, None, {}))

    async def _call(
        self, request: Request, endpoint: IcebergEndpoint | None, prefix: str | None, params: Mapping[str, str]
    ) -> IcebergCall:
        http = calls.Call(
            operation=endpoint.operation if endpoint else f"{request.method} {request.url.path}",
            method=request.method,
            prefix=prefix,
            params=params,
            query=calls.query_of(request.scope["query_string"]),
            headers=request.headers,
            body=await self._body(request, endpoint),
            warehouses=self._warehouses,
            state=request.scope["state"],
        )
        return IcebergCall(http, (request.scope["raw_path"], request.scope["query_string"]), self._loads)

    async def _body(self, request: Request, endpoint: IcebergEndpoint | None) -> bytes:
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


def endpoint_of(scope: Scope) -> dict[str, Any] | None:
    """The endpoint of a request, for the route of the endpoints."""
    try:
        return {"match": PATHS.find(scope["method"], scope["raw_path"])}
    except (MethodNotAllowed, RouteNotFound):
        return None


def _not_an_endpoint(request: Request) -> BridgeError:
    """Why the request has no endpoint here; a server behind this one may have one. Raises RouteNotFound for an
    endpoint whose path is written so that only the other server would understand it."""
    path: bytes = request.scope["raw_path"]
    try:
        PATHS.find(request.method, path)
    except MethodNotAllowed as error:
        return error
    except RouteNotFound as error:
        if PATHS.has(in_plain_words(path)):
            raise
        return error
    raise AssertionError(f"{path!r} is the path of an endpoint")
