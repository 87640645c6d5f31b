"""What both protocols do with HTTP: one request as a handler gets it, and the thread in which the handler runs."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar, cast

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from irc_bridge import bodies, names
from irc_bridge.catalog.passing import CanActForClients
from irc_bridge.catalog.ports import Catalog, can
from irc_bridge.catalog.warehouses import Warehouse, Warehouses
from irc_bridge.errors import BridgeError, Internal, PermissionDenied, Unsupported

log = logging.getLogger(__name__)

JSON = bodies.JSON

Ability = TypeVar("Ability")


@dataclass
class Call:
    """What a handler gets: one request, whose path was cut into raw values."""

    operation: str
    method: str
    prefix: str | None
    """The warehouse as it stands in the path; None where that names none."""
    params: Mapping[str, str]
    query: QueryParams
    headers: Headers
    body: bytes
    warehouses: Warehouses

    @cached_property
    def warehouse(self) -> Warehouse:
        return self.warehouses.only() if self.prefix is None else self.warehouses[names.decode(self.prefix)]

    @cached_property
    def catalog(self) -> Catalog:
        catalog = self.warehouse.catalog
        if can(catalog, CanActForClients):
            return cast(CanActForClients, catalog).acting_for(self.headers.get("authorization"))
        return catalog

    def able(self, ability: type[Ability]) -> Ability:
        if not can(self.catalog, ability):
            raise Unsupported(f"Warehouse {self.warehouse.name} does not support {self.operation}")
        return cast(Ability, self.catalog)


_LONGEST_KNOWN_QUERY = 256


def query_of(raw: bytes) -> QueryParams:
    return _known_query(raw) if len(raw) <= _LONGEST_KNOWN_QUERY else QueryParams(raw)


_known_query = lru_cache(1024)(QueryParams)
"""A client sends the same few again and again. A long one could make thousands of objects."""


CallT = TypeVar("CallT", bound=Call)


async def answered(
    request: Request,
    answer: Callable[[Request], Awaitable[Response]],
    failure: Callable[[BridgeError], Response],
) -> Response:
    """The answer, or what the protocol says about the error that came instead."""
    try:
        return await answer(request)
    except BridgeError as error:
        return failure(error)
    except ClientDisconnect:
        raise
    except Exception:
        request_id = request.scope.get("request_id")
        log.exception("request %s failed", request_id)
        return failure(Internal(f"Internal error. The server's log has the cause under {request_id}"))


_short_turns = bodies.ShortTurns()
_large_json = CapacityLimiter(4)
"""The threads for requests with large JSON bodies, of which one is read at a time: those that wait for each
other must not hold all the threads that there are."""


async def run(
    handler: Callable[[CallT], Response], call: CallT, changes: bool, threads: CapacityLimiter | None = None
) -> Response:
    """The handler's answer. It runs in a thread, because catalogs wait for storage: in one of `threads`, or of the
    threads that all requests share."""
    if not bodies.is_large_json(call.headers.get("content-type"), call.body):
        return await to_thread.run_sync(run_here, handler, call, changes, limiter=threads)
    return await to_thread.run_sync(_run_patiently, handler, call, changes, limiter=_large_json)


def _run_patiently(handler: Callable[[CallT], Response], call: CallT, changes: bool) -> Response:
    with _short_turns:
        return run_here(handler, call, changes)


def run_here(handler: Callable[[CallT], Response], call: CallT, changes: bool) -> Response:
    if changes and call.warehouse.read_only:
        raise PermissionDenied(f"Warehouse {call.warehouse.name} is read-only: {call.operation} is refused")
    return handler(call)
