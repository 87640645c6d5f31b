"""A transport as uvicorn's protocol writes to it."""

import asyncio
from collections.abc import Callable
from typing import Any

_MOST = 64 * 1024


class JoinedWrites:
    """Sends at the end of a turn of the event loop what was written in it: uvicorn writes the head and the body of
    an answer one after the other, and each write wakes the client. Stays open while `is_sent_more` says that the
    client is still sending: one that is closed in its face never reads its answer."""

    def __init__(self, transport: asyncio.Transport, is_sent_more: Callable[[], bool]) -> None:
        self._transport = transport
        self._is_sent_more = is_sent_more
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
        if not self._is_sent_more():
            self._transport.close()

    def _send(self) -> None:
        if self._written:
            written, self._written, self._size = self._written, [], 0
            if not self._transport.is_closing():
                self._transport.writelines(written)
