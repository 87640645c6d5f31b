from starlette.applications import Starlette
from starlette.middleware import Middleware

from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.iceberg_rest.router import IcebergRest
from irc_bridge.server.auth import BearerToken
from irc_bridge.server.health import routes as health_routes
from irc_bridge.server.requests import RequestLog


def create_app(warehouses: Warehouses, *, token: str | None, max_body_bytes: int) -> Starlette:
    middleware = [Middleware(RequestLog)]
    if token is not None:
        middleware.append(Middleware(BearerToken, token=token))
    app = Starlette(routes=health_routes(warehouses), middleware=middleware)
    # Names may hold anything once decoded, so no route pattern is put before the protocol's own router.
    app.router.default = IcebergRest(warehouses, max_body_bytes)
    app.router.redirect_slashes = False
    return app
