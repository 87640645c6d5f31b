"""The response of another server, as the client gets it."""

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
from irc_bridge.http.calls import REQUEST_ID

log = logging.getLogger(__name__)

_PIECE = 256 * 1024
_LONGEST_ERROR = 4 * 1024 * 1024
_USER_INFO = re.compile(rb"(?<=//)[^/?#\s\"]+(?=@)")


def client_response(response: ForwardResponse) -> Response:
    """The response for the client. BadGateway for a redirection: the client would show its token to the other
    address."""
    if 300 <= response.status < 400 and response.status != 304:
        raise BadGateway(
            f"The server behind answered {response.status} and names another address: give the warehouse that uri"
        )
    if response.status >= 400:
        response = _without_user_info(response)
    if response.rest is not None:
        return _Streamed(response.status, response.headers, _joined(response.content, response.rest))
    reply = Response(response.content, response.status)
    if response.status in (204, 304) or response.status < 200:
        reply.raw_headers = list(response.headers)
    else:
        reply.raw_headers = [*response.headers, (b"content-length", b"%d" % len(response.content))]
    return reply


def file_response(response: ForwardResponse, file: IO[bytes]) -> Response:
    """As `client_response`, for a response whose body is in a file. Closes the file."""
    return _Streamed(response.status, response.headers, _pieces(file))


def _without_user_info(response: ForwardResponse) -> ForwardResponse:
    """The response without the passwords of URLs: errors may name a database or a server that cannot be
    reached."""
    if not response.content or response.rest is not None:
        return response
    try:
        content = inflated(response.content, response.encoding, _LONGEST_ERROR)
    except Unreadable as error:
        raise BadGateway(f"The server behind answered {response.status}, and its answer {error}") from None
    if b"@" not in content or (masked := _USER_INFO.sub(b"********", content)) == content:
        return response
    headers = [header for header in response.headers if header[0] != b"content-encoding"]
    return replace(response, headers=headers, content=masked)


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
            # the body has no end then, which tells the client that it is not whole
            log.warning("%s: the answer breaks off: %s", scope["state"][REQUEST_ID], error.message)
            return
        await send({"type": "http.response.body", "body": b""})


async def _joined(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest) as chunks:
        yield first
        async for chunk in chunks:
            yield chunk


async def _pieces(file: IO[bytes]) -> AsyncGenerator[bytes, None]:
    with file:
        while piece := file.read(_PIECE):
            yield piece
