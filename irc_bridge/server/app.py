from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from irc_bridge.bodies import BodyMemory
from irc_bridge.catalog.passing import CanPass
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.iceberg_rest.router import IcebergRest
from irc_bridge.lance_rest.router import LanceRest
from irc_bridge.server.admission import METHODS, Admission
from irc_bridge.server.auth import BearerToken
from irc_bridge.server.forwarded import Forwarded
from irc_bridge.server.health import Readiness
from irc_bridge.server.origins import Origins
from irc_bridge.server.purged import removing_purged
from irc_bridge.server.requests import RequestLog

LARGEST_BODIES = 2
"""So many bodies of the largest size may be there at the same time."""
READ_BY_PAGES = ("etag", "retry-after", "www-authenticate", "x-request-id")


def create_app(
    warehouses: Warehouses,
    *,
    token: str | None,
    any_host: bool,
    allowed_origins: Collection[str],
    trusted_proxies: Collection[str],
    max_body_bytes: int,
    max_create_body_bytes: int,
) -> Starlette:
    """`any_host` is for a server without a token that may be called by another name than localhost."""
    readiness = Readiness(warehouses)
    memory = BodyMemory(LARGEST_BODIES * max(max_body_bytes, max_create_body_bytes))
    origins = Origins(any_host or token is not None, allowed_origins)
    middleware = [Middleware(RequestLog)]
    if trusted_proxies:
        middleware.append(Middleware(Forwarded, trusted_proxies=trusted_proxies))
    middleware.append(Middleware(Admission, origins=origins))
    if allowed_origins:
        middleware.append(_cors(allowed_origins))
    if token is not None:
        middleware.append(Middleware(BearerToken, token=token))
    middleware += [
        Middleware(
            LanceRest,
            warehouses=warehouses,
            memory=memory,
            max_body_bytes=max_body_bytes,
            max_create_body_bytes=max_create_body_bytes,
        ),
        Middleware(IcebergRest, warehouses=warehouses, memory=memory, max_body_bytes=max_body_bytes),
    ]
    return Starlette(routes=readiness.routes(), middleware=middleware, lifespan=_closing(warehouses, readiness))


def _cors(allowed_origins: Collection[str]) -> Middleware:
    return Middleware(
        CORSMiddleware,
        allow_origins=allowed_origins,
        allow_methods=METHODS,
        allow_headers=("*",),
        expose_headers=READ_BY_PAGES,
        allow_private_network=True,
    )


def _closing(
    warehouses: Warehouses, readiness: Readiness
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        with removing_purged(warehouses):
            yield
        readiness.close()
        for warehouse in warehouses.values():
            if isinstance(warehouse.catalog, CanPass):
                await warehouse.catalog.upstream.close()

    return lifespan
