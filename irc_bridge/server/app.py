"""The web application: its middleware in order, and its routes in order."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Router

from irc_bridge.catalog.forward import CanForward
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.http.bodies import BodyMemory
from irc_bridge.http.routing import RawRoute, below
from irc_bridge.iceberg_rest.load_cache import CachedLoads, LoadCache
from irc_bridge.iceberg_rest.router import IcebergRest, endpoint_of
from irc_bridge.lance_rest.router import PREFIX as LANCE
from irc_bridge.lance_rest.router import LanceRest
from irc_bridge.server.access_log import AccessLog
from irc_bridge.server.admission import METHODS, Admission, BearerToken
from irc_bridge.server.forwarded import Forwarded
from irc_bridge.server.health import PREFIX as HEALTH
from irc_bridge.server.health import Readiness
from irc_bridge.server.origins import Origins
from irc_bridge.server.purged import removing_purged

LARGEST_BODIES = 2
"""How many bodies of the largest size may be in memory at the same time."""
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
    fronts: Sequence[BaseRoute] = (),
) -> Starlette:
    """`any_host` is for a server without a token that may be called by another name than localhost. `fronts` are
    routes beside the protocols; the token guards them too."""
    readiness = Readiness(warehouses)
    memory = BodyMemory(LARGEST_BODIES * max(max_body_bytes, max_create_body_bytes))
    loads = LoadCache()
    iceberg = IcebergRest(warehouses, loads, memory, max_body_bytes)
    lance = LanceRest(warehouses, memory, max_body_bytes, max_create_body_bytes)
    middleware = [
        Middleware(AccessLog),
        *([Middleware(Forwarded, trusted_proxies=trusted_proxies)] if trusted_proxies else []),
        Middleware(Admission, origins=Origins(any_host or token is not None, allowed_origins)),
        *([_cors(allowed_origins)] if allowed_origins else []),
        *([Middleware(BearerToken, token=token)] if token is not None else []),
        Middleware(CachedLoads, loads=loads),
    ]
    routes = [
        RawRoute(below(HEALTH), Router(readiness.routes())),
        RawRoute(below(LANCE), lance),
        RawRoute(endpoint_of, iceberg.endpoint),
        *fronts,
        RawRoute(below(b""), iceberg.other_path, catch_all=True),
    ]
    return Starlette(routes=routes, middleware=middleware, lifespan=_closing(warehouses, readiness))


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
            if isinstance(warehouse.catalog, CanForward):
                await warehouse.catalog.upstream.close()

    return lifespan
