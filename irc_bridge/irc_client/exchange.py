"""A request and its answer over HTTP/1.1 on the event loop: little more than a parser, for the sake of speed."""

import asyncio
import os
import ssl
from collections.abc import Callable
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

MOST_AT_ONCE = 1024 * 1024
"""So much of an answer waits here for its reader."""
_LONGEST_HEAD = 64 * 1024
"""Beside what comes with its end."""
_SLOWEST = 8 * 1024
"""In bytes per second: a body that comes more slowly uses up the patience with its server."""
_SAYS_WHERE_IT_ENDS = frozenset((b"content-length", b"transfer-encoding"))


class Lost(Exception):
    """There is no answer, or none that is whole."""

    def __init__(self, why: str, *, sent: bool = True, in_time: bool = True, again: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.sent = sent
        """Whether the server may have got the request."""
        self.in_time = in_time
        self.again = again
        """Whether the connection failed before an answer came, which may go better at once."""


class Connection(asyncio.Protocol):
    """Carries one exchange after the other. Whatever is heard in between ends it."""

    transport: asyncio.Transport
    exchange: "Exchange | None" = None
    blocked = False
    """Whether the server does not take what was sent."""

    def __init__(self, forget: Callable[["Connection"], None]) -> None:
        self._forget = forget

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.exchange is None:
            self.transport.abort()
        else:
            self.exchange.feed(data)

    def eof_received(self) -> None:
        self.transport.abort()  # what was not yet sent is not waited for

    def connection_lost(self, error: Exception | None) -> None:
        self._forget(self)
        if self.exchange is not None:
            self.exchange.ended(error)

    def pause_writing(self) -> None:
        self.blocked = True

    def resume_writing(self) -> None:
        self.blocked = False
        if self.exchange is not None:
            self.exchange.heard()


class Exchange:
    """Its connection is free again when the answer is whole, and is ended when the answer will not be."""

    def __init__(
        self,
        connection: Connection,
        method: str,
        read_timeout: float,
        patience: float,
        keep: Callable[[Connection], None],
    ) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        """Names in lower case."""
        self.over = False
        self._connection = connection
        self._keep = keep
        self._bodiless = method == "HEAD"
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._head_size = 0
        self._whole = self._reusable = False
        self._chunks: list[bytes] = []
        self._size = 0
        self._paused = False
        self._lost: Lost | None = None
        self._wanted = 0
        self._waiter: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._read_timeout = read_timeout
        self._heard_at = self._time()
        self._most_patience = self._patience = patience
        self._until = self._heard_at + patience
        connection.exchange = self

    async def read(self, wanted: int) -> bytes:
        """As much of the body, or what is left of it: nothing at its end. Comes after status and headers."""
        if not self.over and self._size < wanted:
            await self._wait(wanted)
        if self._lost is not None:
            raise self._lost
        content = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        self._resume()
        return content

    def close(self) -> None:
        if not self.over:
            self._fail(Lost("nobody waited for it"))

    async def _wait(self, wanted: int) -> None:
        self._wanted = wanted
        self._waiter = self._loop.create_future()
        self.heard()
        self._until = self._heard_at + self._patience
        self._timer = self._loop.call_later(min(self._read_timeout, max(self._patience, 0)), self._look)
        try:
            await self._waiter
        except BaseException:
            self.close()
            raise
        finally:
            self._timer.cancel()
            self._waiter = None
            self._patience = self._until - self._time()

    def _look(self) -> None:
        """The time-out is between bytes, and begins when the server has taken the request."""
        now, due = self._time(), self._until
        if self.status or not self._connection.blocked:
            due = min(due, self._heard_at + self._read_timeout)
        if now >= due:
            self._fail(Lost("no answer in time (read_timeout)", in_time=False))
        else:
            self._timer = self._loop.call_later(due - now, self._look)

    def heard(self) -> None:
        self._heard_at = self._time()

    def feed(self, data: bytes) -> None:
        self.heard()
        if not self.status:
            self._head_size += len(data)
        parser = self._parser
        assert parser is not None
        try:
            parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self._whole:
                self._fail(Lost(f"what it said is not HTTP ({error.__context__ or error})"))
                return
            self._reusable = False
        if self._whole:
            self._finish(self._reusable and not self._connection.transport.get_write_buffer_size())
        elif not self.status and self._head_size > _LONGEST_HEAD:
            self._fail(Lost("what it said is not HTTP (its head has no end)"))
        elif self._size >= self._wanted:
            self._wake()
            if self._size >= MOST_AT_ONCE and not self._paused:
                self._paused = True
                self._connection.transport.pause_reading()

    def ended(self, error: Exception | None) -> None:
        if not self.status:
            self._fail(Lost("it closed the connection" if error is None else why(error), again=True))
        elif error is None and not any(name in _SAYS_WHERE_IT_ENDS for name, _ in self.headers):
            self._finish(keep=False)
        else:
            self._fail(Lost("its answer broke off"))

    def on_message_begin(self) -> None:
        self._reusable = False  # there is more than one answer

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # else it is a trailer
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if not 100 <= status < 600:
            raise ValueError(f"there is no status {status}")
        if any(name == b"transfer-encoding" and value.lower() != b"chunked" for name, value in self.headers):
            raise ValueError("its transfer-encoding is not chunked")
        if status < 200:
            self.headers.clear()
        elif not self.status:
            self.status = status
            if self._bodiless:
                self.on_message_complete()

    def on_body(self, body: bytes) -> None:
        if self._whole:
            self._reusable = False
        else:
            self._chunks.append(body)
            self._size += len(body)
            self._until = min(self._until + len(body) / _SLOWEST, self._time() + self._most_patience)

    def on_message_complete(self) -> None:
        if self.status and not self._whole:
            self._whole = True
            assert self._parser is not None
            self._reusable = self._parser.get_http_version() == "1.1" and not any(
                name == b"connection" and b"close" in value.lower() for name, value in self.headers
            )

    def _fail(self, lost: Lost) -> None:
        self._lost = lost
        self._finish(keep=False)

    def _finish(self, keep: bool) -> None:
        connection = self._connection
        self.over = True
        self._parser = connection.exchange = None
        if keep:
            self._resume()
            self._keep(connection)
        else:
            connection.transport.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._connection.transport.resume_reading()


def why(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
