"""What another server answered, sent on to the client as it came."""

import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import IO

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from irc_bridge.answers import Unreadable, inflated
from irc_bridge.catalog.forward import ForwardResponse, Headers
from irc_bridge.errors import BadGateway, BridgeError

log = logging.getLogger(__name__)

_PIECE = 256 * 1024
_LONGEST_ERROR = 4 * 1024 * 1024
_USER_INFO = re.compile(rb"(?<=//)[^/?#\s\"]+(?=@)")


def as_it_is(answered: ForwardResponse) -> Response:
    """The answer for the client. BadGateway for one that leads it elsewhere: it would show its token there."""
    if 300 <= answered.status < 400 and answered.status != 304:
        raise BadGateway(
            f"The server behind answered {answered.status} and names another address: give the warehouse that uri"
        )
    if answered.status >= 400:
        answered = _without_user_info(answered)
    if answered.rest is not None:
        return _Streamed(answered.status, answered.headers, _joined(answered.content, answered.rest))
    response = Response(answered.content, answered.status)
    if answered.status in (204, 304) or answered.status < 200:
        response.raw_headers = list(answered.headers)
    else:
        response.raw_headers = [*answered.headers, (b"content-length", b"%d" % len(answered.content))]
    return response


def from_file(answered: ForwardResponse, kept: IO[bytes]) -> Response:
    return _Streamed(answered.status, answered.headers, _pieces(kept))


def _without_user_info(answered: ForwardResponse) -> ForwardResponse:
    """Servers tell in errors which databases and other servers they could not reach, and with which password."""
    if not answered.content or answered.rest is not None:
        return answered
    try:
        content = inflated(answered.content, answered.encoding, _LONGEST_ERROR)
    except Unreadable as error:
        raise BadGateway(f"The server behind answered {answered.status}, and its answer {error}") from None
    if b"@" not in content or (masked := _USER_INFO.sub(b"********", content)) == content:
        return answered
    headers = [each for each in answered.headers if each[0] != b"content-encoding"]
    return replace(answered, headers=headers, content=masked)


class _Streamed(Response):
    def __init__(self, status: int, headers: Headers, chunks: AsyncGenerator[bytes, None]) -> None:
        self.status_code = status
        self.raw_headers = list(headers)
        self.background = None
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async with aclosing(self._chunks) as chunks:
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except BridgeError as error:
            # without its end the client sees that the body is not whole
            log.warning("%s: the answer breaks off: %s", scope.get("request_id"), error.message)
            return
        await send({"type": "http.response.body", "body": b""})


async def _joined(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest) as chunks:
        yield first
        async for chunk in chunks:
            yield chunk


async def _pieces(kept: IO[bytes]) -> AsyncGenerator[bytes, None]:
    with kept:
        while piece := kept.read(_PIECE):
            yield piece
