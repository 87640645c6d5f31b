"""The outermost middleware: gives each request an id and writes its log line."""

import asyncio
import logging
import os
import re
import time
from collections.abc import Mapping
from itertools import count
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from irc_bridge.http.calls import OPERATION, PRINCIPAL, REQUEST_ID, WAREHOUSE

log = logging.getLogger("irc_bridge.access")

SANE_ID = re.compile(rb"[\x21-\x7e]{1,128}")
PROCESS, COUNT = os.urandom(8).hex().encode(), count()
"""Request ids are this random prefix followed by a counter."""
LONGEST_PATH = 1000
"""The most bytes of a path that a log line shows."""
CLIENT_WENT_AWAY = 499


class AccessLog:
    """`scope["state"]` collects what is known about a request: its id at once, and, as far as the request comes,
    its operation, warehouse and principal."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = scope["header_values"] = dict(scope["headers"])
        request_id = _request_id(headers)
        state = scope.setdefault("state", {})
        state[REQUEST_ID] = request_id.decode()
        status = CLIENT_WENT_AWAY

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            pass
        finally:
            took = (time.perf_counter() - started) * 1000
            path = scope["raw_path"][:LONGEST_PATH].decode(errors="replace")
            line = f"{state[REQUEST_ID]} {scope['method']} {path} {status} {took:.1f}ms{_fields(state)}"
            # the client need not wait for the line: the answer leaves when this turn of the event loop ends
            asyncio.get_running_loop().call_soon(_write, line)


def _fields(state: Mapping[str, Any]) -> str:
    """The fields that are known."""
    fields = ""
    for name in (OPERATION, WAREHOUSE, PRINCIPAL):
        if (value := state.get(name)) is not None:
            fields += f" {name}={value}"
    return fields


def _request_id(headers: Mapping[bytes, bytes]) -> bytes:
    given = headers.get(b"x-request-id")
    if given is not None and SANE_ID.fullmatch(given):
        return given
    return b"%s-%x" % (PROCESS, next(COUNT))


def _write(line: str) -> None:
    """Builds the LogRecord itself: logging's search for the caller takes as long as the rest of a warm request."""
    if log.isEnabledFor(logging.INFO):
        log.handle(logging.LogRecord(log.name, logging.INFO, __file__, 0, line, None, None))
