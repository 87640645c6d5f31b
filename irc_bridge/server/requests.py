"""Around every request: an id in and out, a log line, and an answer even where something broke."""

import asyncio
import logging
import os
import re
import time
from collections.abc import Mapping
from itertools import count

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("irc_bridge.access")

SANE_ID = re.compile(rb"[\x21-\x7e]{1,128}")
PROCESS, COUNT = os.urandom(8).hex().encode(), count()
"""Of these the ids of one process are made."""
LONGEST_PATH = 1000
"""As much of it as a log line shows."""
CLIENT_WENT_AWAY = 499


class RequestLog:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = scope["header_values"] = dict(scope["headers"])
        request_id = _request_id(headers)
        scope["request_id"] = request_id.decode()
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
            # the client need not wait for it: what was sent leaves when this turn of the event loop ends
            line = f"{scope['request_id']} {scope['method']} {path} {status} {took:.1f}ms"
            asyncio.get_running_loop().call_soon(_write, line)


def _request_id(headers: Mapping[bytes, bytes]) -> bytes:
    given = headers.get(b"x-request-id")
    if given is not None and SANE_ID.fullmatch(given):
        return given
    return b"%s-%x" % (PROCESS, next(COUNT))


def _write(line: str) -> None:
    """Without looking up who calls, which costs as much as all the rest of a warm request's line."""
    if log.isEnabledFor(logging.INFO):
        log.handle(logging.LogRecord(log.name, logging.INFO, __file__, 0, line, None, None))
