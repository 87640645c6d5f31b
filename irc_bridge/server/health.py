"""/health/live and /health/ready. A probe never waits for a warehouse: it gets the result of the last check."""

import asyncio
import ipaddress
import json
import logging
import time
from contextlib import suppress

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from irc_bridge.catalog.ports import Catalog
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.errors import BridgeError
from irc_bridge.http.calls import PRINCIPAL

log = logging.getLogger(__name__)

PREFIX = b"/health/"

_PAUSE_S = 5
"""The pause between two checks of a warehouse."""
_UNATTENDED_S = 60
"""How long checks go on after the last probe."""
_FIRST_ANSWER_S = 2
"""How long the first probe waits for the first check."""
_HUNG_S = 10
"""A warehouse whose check takes longer is down."""


class Readiness:
    def __init__(self, warehouses: Warehouses) -> None:
        self._watches = [_Watch(name, warehouse.catalog) for name, warehouse in warehouses.items()]

    def routes(self) -> list[Route]:
        return [Route("/health/live", _live), Route("/health/ready", self._ready)]

    def close(self) -> None:
        for watch in self._watches:
            watch.close()

    async def _ready(self, request: Request) -> Response:
        await asyncio.gather(*[watch.attend() for watch in self._watches])
        reasons = {watch.name: watch.reason() for watch in self._watches}
        down = [name for name, reason in reasons.items() if reason is not None]
        status = "up" if not down else "degraded" if len(down) < len(reasons) else "down"
        content: dict[str, object] = {"status": status}
        if down:
            content["down"] = down
        if _may_read_reasons(request.scope):
            content["checks"] = [_check_result(name, reason) for name, reason in reasons.items()]
        return _answer(content, 503 if status == "down" else 200)


class _Watch:
    """Checks one warehouse again and again while probes come. It has one thread, so two checks never run at the
    same time."""

    def __init__(self, name: str, catalog: Catalog) -> None:
        self.name = name
        self._catalog = catalog
        self._thread = CapacityLimiter(1)
        self._task: asyncio.Task[None] | None = None
        self._attended_at = self._begun_at = 0.0
        self._under_way = False
        self._first_result = asyncio.Event()
        self._reason: str | None = None

    async def attend(self) -> None:
        """Makes sure that checks go on. Waits for the first result, but not longer than _FIRST_ANSWER_S."""
        self._attended_at = time.monotonic()
        if self._task is None or self._task.done():
            self._first_result.clear()
            self._begun_at = self._attended_at
            self._task = asyncio.create_task(self._check_again_and_again())
        late = self._begun_at + _FIRST_ANSWER_S - self._attended_at
        if not self._first_result.is_set() and late > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(late):
                    await self._first_result.wait()

    def reason(self) -> str | None:
        """Why the warehouse is down, None if it is up."""
        seconds = time.monotonic() - self._begun_at
        if not self._first_result.is_set() or (self._under_way and seconds > _HUNG_S):
            return f"No answer for {seconds:.0f} seconds"
        return self._reason

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _check_again_and_again(self) -> None:
        while time.monotonic() - self._attended_at < _UNATTENDED_S:
            self._begun_at, self._under_way = time.monotonic(), True
            self._reason = await to_thread.run_sync(
                _failure, self._catalog, limiter=self._thread, abandon_on_cancel=True
            )
            self._under_way = False
            self._first_result.set()
            await asyncio.sleep(_PAUSE_S)


def _failure(catalog: Catalog) -> str | None:
    try:
        catalog.check()
    except BridgeError as error:
        return error.message
    except Exception:
        log.exception("a readiness check failed")
        return "Internal error: the server's log has the cause"
    return None


async def _live(request: Request) -> Response:
    return _answer({"status": "up"}, 200)


def _check_result(name: str, reason: str | None) -> dict[str, str]:
    return {"name": name, "status": "up"} if reason is None else {"name": name, "status": "down", "reason": reason}


def _may_read_reasons(scope: Scope) -> bool:
    """Reasons name servers and folders. They are for requests with the token, and where the server has no token
    for requests from this machine."""
    if PRINCIPAL in scope["state"]:
        return scope["state"][PRINCIPAL] is not None
    return scope["client"] is not None and ipaddress.ip_address(scope["client"][0]).is_loopback


def _answer(content: dict[str, object], status: int) -> Response:
    return Response(json.dumps(content), status, {"cache-control": "no-store"}, "application/json")
