"""A request as its handler gets it, and the thread in which the handler runs."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar, cast

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from irc_bridge import names
from irc_bridge.catalog.forward import CanActForClients
from irc_bridge.catalog.ports import Catalog, can
from irc_bridge.catalog.warehouses import Warehouse, Warehouses
from irc_bridge.errors import BridgeError, Internal, PermissionDenied, Unsupported
from irc_bridge.http import bodies

log = logging.getLogger(__name__)

OPERATION, WAREHOUSE, PRINCIPAL, REQUEST_ID = "operation", "warehouse", "principal", "request_id"
"""The keys of scope["state"]: what is known about a request, for log lines and other middleware."""

Ability = TypeVar("Ability")


@dataclass
class Call:
    """One request. Names in its path are still percent-encoded."""

    operation: str
    method: str
    prefix: str | None
    """The warehouse as the path names it; None where the path names none."""
    params: Mapping[str, str]
    query: QueryParams
    headers: Headers
    body: bytes
    warehouses: Warehouses
    state: dict[str, Any]
    """What middleware may read of the request: scope["state"]."""

    @cached_property
    def warehouse(self) -> Warehouse:
        return self.choose(None if self.prefix is None else names.decode(self.prefix))

    def choose(self, name: str | None) -> Warehouse:
        """The warehouse with this name, without a name the only one. The log line of the request names it."""
        warehouse = self.warehouses.only() if name is None else self.warehouses[name]
        self.state[WAREHOUSE] = warehouse.name
        return warehouse

    @cached_property
    def catalog(self) -> Catalog:
        catalog = self.warehouse.catalog
        if can(catalog, CanActForClients):
            return cast(CanActForClients, catalog).acting_for(self.headers.get("authorization"))
        return catalog

    def able(self, ability: type[Ability]) -> Ability:
        """The catalog as a Protocol that only some catalogs implement. Unsupported for the other catalogs."""
        if not can(self.catalog, ability):
            raise Unsupported(f"Warehouse {self.warehouse.name} does not support {self.operation}")
        return cast(Ability, self.catalog)


_LONGEST_CACHED_QUERY = 256


def query_of(raw: bytes) -> QueryParams:
    return _cached_query(raw) if len(raw) <= _LONGEST_CACHED_QUERY else QueryParams(raw)


_cached_query = lru_cache(1024)(QueryParams)
"""A client repeats a few queries. A long query is not cached, because it could make thousands of objects."""


async def respond(
    scope: Scope,
    receive: Receive,
    send: Send,
    answer: Callable[[Request], Awaitable[Response]],
    failure: Callable[[BridgeError], Response],
    memory: bodies.BodyMemory,
) -> None:
    """Sends the answer, or the protocol's reply to an error. Gives back the memory of the request's body."""
    try:
        response = await _answer_or_failure(Request(scope, receive), answer, failure)
    finally:
        memory.give_back(scope)
    await response(scope, receive, send)


async def _answer_or_failure(
    request: Request,
    answer: Callable[[Request], Awaitable[Response]],
    failure: Callable[[BridgeError], Response],
) -> Response:
    try:
        return await answer(request)
    except BridgeError as error:
        return failure(error)
    except ClientDisconnect:
        raise
    except Exception:
        request_id = request.state.request_id
        log.exception("request %s failed", request_id)
        return failure(Internal(f"Internal error. The server's log has the cause under {request_id}"))


_short_turns = bodies.ShortTurns()
_large_json = CapacityLimiter(4)
"""The threads for requests with large JSON bodies. One such body is read at a time, so the requests that wait for
their turn must not hold all threads of the server."""


async def run(
    handler: Callable[[], Response], call: Call, changes: bool, threads: CapacityLimiter | None = None
) -> Response:
    """The handler's answer. The handler runs in a thread, because catalogs wait for storage: one of `threads`, or
    one of the threads that all requests share."""
    if not bodies.is_large_json(call.headers.get("content-type"), call.body):
        return await to_thread.run_sync(run_here, handler, call, changes, limiter=threads)
    return await to_thread.run_sync(_run_with_short_turns, handler, call, changes, limiter=_large_json)


def _run_with_short_turns(handler: Callable[[], Response], call: Call, changes: bool) -> Response:
    with _short_turns:
        return run_here(handler, call, changes)


def run_here(handler: Callable[[], Response], call: Call, changes: bool) -> Response:
    """The handler's answer, made in this thread. PermissionDenied for a change of a read-only warehouse."""
    if changes and call.warehouse.read_only:
        raise PermissionDenied(f"Warehouse {call.warehouse.name} is read-only: {call.operation} is refused")
    return handler()
