from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware

from irc_bridge.catalog.passing import CanPass
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.iceberg_rest.router import IcebergRest
from irc_bridge.lance_rest.router import LanceRest
from irc_bridge.server.auth import BearerToken
from irc_bridge.server.health import routes as health_routes
from irc_bridge.server.requests import RequestLog


def create_app(
    warehouses: Warehouses, *, token: str | None, max_body_bytes: int, max_create_body_bytes: int
) -> Starlette:
    middleware = [Middleware(RequestLog)]
    if token is not None:
        middleware.append(Middleware(BearerToken, token=token))
    middleware += [
        Middleware(
            LanceRest,
            warehouses=warehouses,
            max_body_bytes=max_body_bytes,
            max_create_body_bytes=max_create_body_bytes,
        ),
        Middleware(IcebergRest, warehouses=warehouses, max_body_bytes=max_body_bytes),
    ]
    return Starlette(routes=health_routes(warehouses), middleware=middleware, lifespan=_closing(warehouses))


def _closing(warehouses: Warehouses) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        for warehouse in warehouses.values():
            if isinstance(warehouse.catalog, CanPass):
                await warehouse.catalog.upstream.close()

    return lifespan
