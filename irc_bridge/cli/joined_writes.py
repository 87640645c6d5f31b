"""The head and the body of an answer in one write: uvicorn makes two, and each of them wakes the client."""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST = 64 * 1024


class JoinedWrites(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, _Joining(transport)))


class _Joining:
    """A transport that sends at the end of a turn of the event loop what was written in it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._written: list[bytes] = []
        self._size = 0
        self._call_soon = asyncio.get_running_loop().call_soon

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._written:
            self._call_soon(self._send)
        self._written.append(data)
        self._size += len(data)
        if self._size > _MOST:
            self._send()

    def close(self) -> None:
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._written:
            written, self._written, self._size = self._written, [], 0
            self._transport.writelines(written)
