"""One connection of a client: uvicorn's, with limits for its requests and an account of its activity."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from irc_bridge.errors import BridgeError, HeadTooLarge, InvalidInput, RequestTimeout, ServiceUnavailable
from irc_bridge.server.admission import refusal
from irc_bridge.server.connections import Activity, Connections

LARGEST_HEAD = 64 * 1024

_LARGEST_JOINED = 64 * 1024
_NO_MESSAGE, _HEAD, _BODY = range(3)


class HttpConnection(HttpToolsProtocol):
    """Refuses heads that are too large. The parser keeps an unfinished header line, or the text between two chunks
    of a body, and copies it at each read. So the parser gets LARGEST_HEAD bytes at a time, and no more than twice
    as many for one such line."""

    def __init__(self, *, connections: Connections, **more: Any) -> None:
        super().__init__(**more)
        self._connections = connections
        self._part = _NO_MESSAGE
        self._fed = 0
        """The bytes since the last callback of the parser. The begin of a head counts as LARGEST_HEAD bytes,
        because the number of bytes before it is not known."""
        self._reads = self._requests = 0
        self._error: BridgeError | None = None
        self._running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport, self._is_sent_a_rest)))
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """uvicorn tells only the last of several pipelined requests that the client is gone."""
        self._connections.remove(self)
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._reads += 1
        if len(data) <= LARGEST_HEAD:
            self._feed(data)
            return
        for start in range(0, len(data), LARGEST_HEAD):
            if not self.transport.is_closing():
                self._feed(data[start : start + LARGEST_HEAD])

    def _feed(self, data: bytes) -> None:
        self._fed += len(data)
        try:
            self.parser.feed_data(data)
        except HttpParserError:
            self._refuse(self._error or InvalidInput("This is no HTTP/1.1 request that this server understands"))
        except HttpParserUpgrade as upgrade:  # this request and later ones are answered in HTTP/1.1
            self._feed(data[upgrade.args[0] :])
        if self._part == _NO_MESSAGE:
            self._fed = 0
        elif self._fed > 2 * LARGEST_HEAD:
            self._refuse(_too_large())

    def on_message_begin(self) -> None:
        self._part = _HEAD
        self._fed = LARGEST_HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._fed > LARGEST_HEAD and self._head_size() > LARGEST_HEAD:
            self._error = _too_large()
            raise self._error
        self._part = _BODY
        self._fed = 0
        self._requests += 1
        super().on_headers_complete()
        self.headers = []  # trailers, which follow the body, are no headers of the request

    def on_body(self, body: bytes) -> None:
        self._fed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._part = _NO_MESSAGE
        super().on_message_complete()
        if self.cycle.response_complete and not self.cycle.keep_alive:
            self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """As uvicorn's, but without a timer for each answer: the sweep of Connections ends idle connections."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def activity(self) -> tuple[Activity, int]:
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            return Activity.ANSWER, unsent
        if self.cycle is not None and not self.cycle.response_complete:
            if self.cycle.more_body and not self.flow.read_paused:
                return Activity.BODY, self._reads
            return Activity.WORK, 0
        if self._part == _HEAD:
            return Activity.HEAD, self._requests
        return Activity.REST if self._is_sent_a_rest() else Activity.IDLE, self._requests

    def end(self, activity: Activity) -> None:
        if activity is Activity.IDLE:
            self.transport.close()
        elif activity in (Activity.HEAD, Activity.BODY) and not self._is_answering():
            self._send_refusal(RequestTimeout("The request did not come to its end in time"))
        else:
            self.transport.abort()

    def refuse(self) -> None:
        self._send_refusal(ServiceUnavailable("This server has as many connections as it can: try again later"))

    def _refuse(self, error: BridgeError) -> None:
        if self.transport.is_closing():
            return
        if self._is_answering():
            self.transport.abort()  # the client would read the refusal as a part of the other answer
        else:
            self._send_refusal(error)

    def _is_answering(self) -> bool:
        """Whether an answer is being sent, or an earlier request of this connection is not answered yet."""
        if self.cycle is None or self.cycle.response_complete:
            return False
        return bool(self.cycle.response_started or self.pipeline or self._part != _BODY)

    def _send_refusal(self, error: BridgeError) -> None:
        """Sends a refusal without the application, and closes the connection."""
        response = refusal(error, self.url if self._part != _NO_MESSAGE else b"", None)
        headers = b"".join(b"%b: %b\r\n" % header for header in response.raw_headers)
        head = STATUS_LINE[error.status] + headers + b"connection: close\r\n\r\n"
        self.transport.write(head + bytes(response.body))
        self._part = _NO_MESSAGE
        self.transport.close()

    def _is_sent_a_rest(self) -> bool:
        """Whether the client still sends the body of a request that was answered already."""
        return self._part == _BODY and self.cycle.response_complete

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)


def _too_large() -> BridgeError:
    return HeadTooLarge(f"A request head may have {LARGEST_HEAD} bytes in all: send fewer or shorter headers")


class JoinedWrites:
    """A transport that joins the writes of one turn of the event loop. uvicorn writes the head and the body of an
    answer one after the other, and each write would wake the client. A connection stays open while `is_sent_more`
    says that the client is still sending: a client whose connection is closed before it is done never reads its
    answer."""

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
        if self._size > _LARGEST_JOINED:
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
