"""An HTTP server over raw sockets that does to each request what a test wants: answers it well or badly, loses it,
or has a real server behind it do it first. Keeps what it received, byte for byte.

    with faulty_upstream(handler) as upstream:            # handler: Received -> Reply | None
    with faulty_upstream(handler, behind=url) as upstream:

None means: as the server behind answers. The replies are in replies.py.
"""

import http.client
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import urlsplit

Headers = list[tuple[str, str]]

_LOOK_FOR_PURGES = "/namespaces/irc_bridge"
"""The bridge asks for this in a thread of its own, whatever its clients do: no test is about it."""


@dataclass(frozen=True)
class Received:
    head: bytes
    """The request line and the headers as they came."""
    body: bytes
    connection: int
    """The how many-th connection it came by."""

    @property
    def method(self) -> str:
        return self._line[0]

    @property
    def target(self) -> str:
        """Path and query as they stood on the wire."""
        return self._line[1]

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @cached_property
    def headers(self) -> Headers:
        """Names in lower case, in their order."""
        pairs = (line.partition(":") for line in self.head.decode("latin-1").split("\r\n")[1:] if line)
        return [(name.lower(), value.strip()) for name, _, value in pairs]

    def header(self, name: str) -> str | None:
        return next((value for each, value in self.headers if each == name), None)

    @property
    def _line(self) -> list[str]:
        return self.head.partition(b"\r\n")[0].decode("latin-1").split(" ")


@dataclass
class Wire:
    """What a reply is given: the connection that a request came by."""

    received: Received
    connection: socket.socket
    behind: str | None
    open: bool = True

    def send(self, content: bytes) -> None:
        self.connection.sendall(content)

    def close(self) -> None:
        self.open = False

    def reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.open = False

    def wait_for_end(self) -> None:
        """Until the other side, or the test, ends the connection."""
        while self.connection.recv(65536):
            pass
        self.open = False

    def ask_behind(self) -> tuple[int, Headers, bytes]:
        assert self.behind is not None, "there is no server behind"
        asked = self.received
        connection = http.client.HTTPConnection(urlsplit(self.behind).netloc)
        try:
            connection.putrequest(asked.method, asked.target, skip_host=True, skip_accept_encoding=True)
            for name, value in asked.headers:
                if name != "connection":
                    connection.putheader(name, value)
            connection.endheaders(asked.body)
            with connection.getresponse() as response:
                content = response.read()
                headers = [(name.lower(), value) for name, value in response.getheaders()]
                return response.status, headers, content
        finally:
            connection.close()


Reply = Callable[[Wire], None]
Handler = Callable[[Received], Reply | None]


@dataclass
class Upstream:
    url: str
    requests: list[Received] = field(default_factory=list)
    """In the order in which they came, whatever became of them."""
    connections: int = 0
    """Opened so far."""
    open: set[socket.socket] = field(default_factory=set)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def of(self, method: str) -> list[Received]:
        return [each for each in self.requests if each.method == method]

    def wait(self, until: Callable[[], bool], seconds: float = 10) -> bool:
        """For something about requests or connections. False when it did not come about."""
        with self.changed:
            return self.changed.wait_for(until, seconds)

    def hang_up(self) -> None:
        """Ends every connection."""
        with self.changed:
            for connection in self.open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class _Server:
    def __init__(self, upstream: Upstream, handler: Handler, behind: str | None) -> None:
        self._upstream = upstream
        self._handler = handler
        self._behind = behind
        self._threads: list[threading.Thread] = []

    def accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._upstream.changed:
                self._upstream.open.add(connection)
                self._upstream.connections += 1
                number = self._upstream.connections
                self._upstream.changed.notify_all()
            thread = threading.Thread(target=self._serve, args=(connection, number))
            self._threads.append(thread)
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            with suppress(OSError):
                self._answer_all(connection, number)
        finally:
            with self._upstream.changed:
                self._upstream.open.discard(connection)
                connection.close()
                self._upstream.changed.notify_all()

    def _answer_all(self, connection: socket.socket, number: int) -> None:
        held = b""
        while True:
            while b"\r\n\r\n" not in held:
                if not (chunk := connection.recv(65536)):
                    return
                held += chunk
            head, _, held = held.partition(b"\r\n\r\n")
            length = int(Received(head, b"", number).header("content-length") or 0)
            while len(held) < length:
                if not (chunk := connection.recv(65536)):
                    return
                held += chunk
            received = Received(head, held[:length], number)
            held = held[length:]
            with self._upstream.changed:
                if not received.path.endswith(_LOOK_FOR_PURGES):
                    self._upstream.requests.append(received)
                self._upstream.changed.notify_all()
            wire = Wire(received, connection, self._behind)
            (self._handler(received) or _as_it_is)(wire)
            if not wire.open:
                return


def _as_it_is(wire: Wire) -> None:
    wire.send(written(wire.received.method, *wire.ask_behind()))


def written(method: str, status: int, headers: Headers, body: bytes) -> bytes:
    """An answer with the length of its body, as it goes over the wire."""
    kept = [
        each for each in headers if each[0].lower() not in ("content-length", "transfer-encoding", "connection")
    ]
    if status >= 200 and status not in (204, 304):
        kept.append(("Content-Length", str(len(body))))
    head = "".join(f"{name}: {value}\r\n" for name, value in kept)
    content = b"" if method == "HEAD" or status in (204, 304) else body
    return f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + content


@contextmanager
def faulty_upstream(handler: Handler, behind: str | None = None) -> Iterator[Upstream]:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))
        upstream = Upstream(f"http://127.0.0.1:{listener.getsockname()[1]}")
        server = _Server(upstream, handler, behind)
        acceptor = threading.Thread(target=server.accept, args=(listener,))
        acceptor.start()
        try:
            yield upstream
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            upstream.hang_up()
            server.join()


@contextmanager
def refusing() -> Iterator[str]:
    """A URL whose port nobody else gets, and where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@contextmanager
def unreachable() -> Iterator[str]:
    """A URL to which no connection comes about, nor is refused: the queue of those who wait is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        while True:
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0.2)
            try:
                waiting.connect(listener.getsockname())
            except TimeoutError:
                break
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
