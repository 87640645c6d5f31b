"""From a raw path to a handler of the Lance protocol."""

from collections.abc import Iterator
from functools import partial
from math import inf

from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.errors import BridgeError, ServiceUnavailable
from irc_bridge.http import calls
from irc_bridge.http.bodies import LARGE, LARGEST_JSON, BodyMemory, body_of
from irc_bridge.http.cache import AnswerCache
from irc_bridge.http.routing import PathTable, Shape
from irc_bridge.lance_rest import replies
from irc_bridge.lance_rest.calls import LanceCall
from irc_bridge.lance_rest.endpoints import ENDPOINTS, LanceEndpoint

PREFIX = b"/lance/"
_MOST_WAITING = 100
"""How many slow calls of one operation may wait for a thread."""


class LanceRest:
    """Answers what lies under /lance: there, or below the name of a warehouse, stands the protocol's /v1."""

    def __init__(
        self,
        warehouses: Warehouses,
        memory: BodyMemory,
        max_body_bytes: int,
        max_create_body_bytes: int,
    ) -> None:
        self._memory = memory
        self._warehouses = warehouses
        self._largest_json = min(LARGEST_JSON, max_body_bytes)
        self._max_create_body_bytes = max_create_body_bytes
        self._answers = AnswerCache()
        self._under_way = 0
        self._threads = {
            endpoint.operation: CapacityLimiter(endpoint.threads) for endpoint in ENDPOINTS if endpoint.threads
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        def failure(error: BridgeError) -> Response:
            return replies.failure(error, scope["state"][calls.REQUEST_ID])

        await calls.respond(scope, receive, send, self._answer, failure, self._memory)

    async def _answer(self, request: Request) -> Response:
        self._under_way += 1
        try:
            return await self._run(request)
        finally:
            self._under_way -= 1

    async def _run(self, request: Request) -> Response:
        match = PATHS.find(request.method, request.scope["raw_path"])
        endpoint = match.endpoint
        request.scope["state"][calls.OPERATION] = endpoint.operation
        http = calls.Call(
            operation=endpoint.operation,
            method=request.method,
            prefix=match.prefix,
            params=match.params,
            query=calls.query_of(request.scope["query_string"]),
            headers=request.headers,
            body=await self._body(request, endpoint),
            warehouses=self._warehouses,
            state=request.scope["state"],
        )
        call = LanceCall(http, self._answers, self._max_create_body_bytes)
        handler = partial(endpoint.handler, call)
        # other requests that wait for their answers need the event loop
        if self._under_way == 1 and len(http.body) <= LARGE and endpoint.at_once(call):
            return calls.run_here(handler, http, endpoint.changes)
        threads = self._threads.get(endpoint.operation) if endpoint.slow(call) else None
        if threads is not None and threads.statistics().tasks_waiting >= _MOST_WAITING:
            raise ServiceUnavailable(f"{_MOST_WAITING} other calls of {endpoint.operation} wait: try again later")
        return await calls.run(handler, http, endpoint.changes, threads)

    async def _body(self, request: Request, endpoint: LanceEndpoint) -> bytes:
        if not endpoint.takes_data:
            return await body_of(request, self._largest_json, self._memory)
        return await body_of(request, self._max_create_body_bytes, self._memory, most_values=inf)


def _cut(path: str) -> Iterator[tuple[Shape, list[str]]]:
    """The words of the protocol come before names that are spelled like them."""
    words = path.split("/")[2:]
    prefix = [words.pop(0)] if words[1:2] == ["v1"] else []
    for shape in (
        tuple(words),
        (*words[:2], "*", *words[3:]),
        (*words[:2], "*", *words[3:4], "*", *words[5:]),
    ):
        names = [word for word, known in zip(words, shape, strict=False) if known == "*"]
        yield ("*", *shape) if prefix else shape, prefix + names


PATHS = PathTable((("/{prefix}" + endpoint.path, endpoint) for endpoint in ENDPOINTS), _cut)
