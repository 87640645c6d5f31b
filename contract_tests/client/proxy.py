"""Stands before an IRC server, sees each request, and can lose one or its answer, or answer something else."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class Fault(Enum):
    LOST = "the connection ends before the server gets the request"
    UNANSWERED = "the connection ends after the server did what was asked"
    HALF = "half of the answer comes"
    SILENT_500 = "the server does what was asked and answers 500"
    SILENT_503 = "the server does what was asked and answers 503"
    BUSY = "503 and nothing done"


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def is_commit(self) -> bool:
        return self.method == "POST" and (self.body or {}).get("updates") is not None


Meet = Callable[[Seen], "Fault | None"]
Refuse = Callable[[Seen], "int | None"]
Rewrite = Callable[[Seen, dict[str, Any]], dict[str, Any]]


def _never(_: Seen) -> None:
    return None


def _as_it_is(_: Seen, body: dict[str, Any]) -> dict[str, Any]:
    return body


@dataclass
class Proxy:
    behind: str
    meet: Meet = _never
    """Chooses the fault of a request."""
    rewrite: Rewrite = _as_it_is
    """Changes the JSON of an answer."""
    refuse: Refuse = _never
    """Gives the status to answer in the server's place."""
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    @property
    def commits(self) -> list[Seen]:
        return [each for each in self.seen if each.is_commit]


class _Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def relay(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        is_json = headers.get("content-type") == "application/json"
        seen = Seen(self.command, self.path, headers, json.loads(content) if is_json and content else None)
        proxy = self.server.proxy
        proxy.seen.append(seen)
        fault = proxy.meet(seen)
        if fault is Fault.LOST:
            self.close_connection = True
            return
        refused = 503 if fault is Fault.BUSY else proxy.refuse(seen)
        if refused is not None:
            self._answer(refused, b'{"error": {"message": "not now", "type": "", "code": 0}}')
            return
        status, answered = self._ask(content, headers)
        if fault is Fault.UNANSWERED:
            self.close_connection = True
        elif fault in (Fault.SILENT_500, Fault.SILENT_503):
            self._answer(500 if fault is Fault.SILENT_500 else 503, b"")
        else:
            if answered and status == 200:
                answered = json.dumps(proxy.rewrite(seen, json.loads(answered))).encode()
            self._answer(status, answered, half=fault is Fault.HALF)

    def _ask(self, content: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.server.proxy.behind).netloc)
        try:
            kept = {
                name: value for name, value in headers.items() if name not in ("connection", "accept-encoding")
            }
            connection.request(self.command, self.path, content, kept)
            with connection.getresponse() as response:
                return response.status, response.read()
        finally:
            connection.close()

    def _answer(self, status: int, content: bytes, half: bool = False) -> None:
        self.send_response_only(status)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if half else content)
        self.close_connection = half

    do_GET = do_HEAD = do_POST = do_DELETE = relay


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(("127.0.0.1", 0), _Relay)
        self.proxy = proxy
        self.connections: list[socket.socket] = []

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.connections.append(connection)
        return connection, address

    def hang_up(self) -> None:
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: Any) -> None:
        """Who speaks to this server may be killed at any time."""


@contextmanager
def proxied(
    url: str, meet: Meet = _never, rewrite: Rewrite = _as_it_is, refuse: Refuse = _never
) -> Iterator[Proxy]:
    proxy = Proxy(url, meet, rewrite, refuse)
    with _Server(proxy) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        proxy.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield proxy
        finally:
            server.shutdown()
            server.hang_up()
            thread.join()


def once(fault: Fault) -> Meet:
    """The first commit that adds a snapshot meets the fault, no other."""
    left = [fault]

    def meet(seen: Seen) -> Fault | None:
        adds = seen.is_commit and any(each["action"] == "add-snapshot" for each in seen.body["updates"])
        return left.pop() if adds and left else None

    return meet
