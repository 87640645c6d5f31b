"""What both protocols do with HTTP: bodies are read up to a limit and checked, handlers run in threads."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar, cast

from anyio import to_thread
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.passing import CanActForClients
from irc_bridge.catalog.ports import Catalog
from irc_bridge.catalog.warehouses import Warehouse, Warehouses
from irc_bridge.errors import (
    BodyTooLarge,
    BridgeError,
    Internal,
    InvalidInput,
    PermissionDenied,
    Unsupported,
)

log = logging.getLogger(__name__)

JSON = "application/json"

Model = TypeVar("Model", bound=BaseModel)
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
        if _is_able(type(catalog), CanActForClients):
            return cast(CanActForClients, catalog).acting_for(self.headers.get("authorization"))
        return catalog

    def able(self, ability: type[Ability]) -> Ability:
        wanted: Any = ability
        if not _is_able(type(self.catalog), wanted):
            raise Unsupported(f"Warehouse {self.warehouse.name} does not support {self.operation}")
        return cast(Ability, self.catalog)


@lru_cache
def _is_able(catalog: type[Catalog], ability: type[Any]) -> bool:
    """Looking at every method of a protocol takes long."""
    return issubclass(catalog, ability)


@lru_cache(1024)
def query_of(raw: bytes) -> QueryParams:
    """A client sends the same few again and again."""
    return QueryParams(raw)


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


async def run(handler: Callable[[CallT], Response], call: CallT, changes: bool) -> Response:
    """In a thread, because catalogs wait for storage."""
    return await to_thread.run_sync(run_here, handler, call, changes)


def run_here(handler: Callable[[CallT], Response], call: CallT, changes: bool) -> Response:
    if changes and call.warehouse.read_only:
        raise PermissionDenied(f"Warehouse {call.warehouse.name} is read-only: {call.operation} is refused")
    return handler(call)


async def body_of(request: Request, limit: int) -> bytes:
    length = request.headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in request.headers:
        return b""
    if length.isdigit() and int(length) > limit:
        raise BodyTooLarge(f"The request body has {length} bytes; this server takes {limit}")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise BodyTooLarge(f"The request body is larger than the {limit} bytes that this server takes")
    return bytes(body)


def read(body: bytes, model: type[Model]) -> Model:
    content = _json(body)
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        raise InvalidInput(f"Invalid request body: {field}: {first['msg']}") from None
    except KeyError as error:
        raise InvalidInput(f"Invalid request body: {error.args[0]}: Field required") from None
    except Exception as error:  # noqa: BLE001 - pyiceberg's models raise errors of their own
        raise InvalidInput(f"Invalid request body: {error}") from None


def _json(body: bytes) -> object:
    try:
        content = json.loads(body)
        json.dumps(content, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The request body is not JSON: {error}") from None
    return content
