import json

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from irc_bridge.catalog.ports import Catalog
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.errors import BridgeError


def routes(warehouses: Warehouses) -> list[Route]:
    async def live(request: Request) -> Response:
        return _answer({"status": "up"}, 200)

    async def ready(request: Request) -> Response:
        checks = [
            {"name": name, **await to_thread.run_sync(_check, warehouse.catalog)}
            for name, warehouse in warehouses.items()
        ]
        up = all(check["status"] == "up" for check in checks)
        return _answer({"status": "up" if up else "down", "checks": checks}, 200 if up else 503)

    return [Route("/health/live", live), Route("/health/ready", ready)]


def _check(catalog: Catalog) -> dict[str, str]:
    try:
        catalog.check()
    except BridgeError as error:
        return {"status": "down", "reason": error.message}
    return {"status": "up"}


def _answer(content: dict[str, object], status: int) -> Response:
    return Response(json.dumps(content), status, {"cache-control": "no-store"}, "application/json")
