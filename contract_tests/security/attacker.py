"""A web server of somebody else: it gives out the hostile page and hears what the page could do.

What else is asked of it goes on to the bridge as it is, on a connection for each request. To a browser that is
what DNS rebinding does: the name in the address bar belongs to the attacker, and leads to the bridge.
"""

import json
import queue
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("hostile.html")
_HEAD_END = b"\r\n\r\n"


class Attacker:
    def __init__(self, listener: socket.socket, behind: tuple[str, int]) -> None:
        self.port: int = listener.getsockname()[1]
        self.reports: queue.Queue[list[dict[str, Any]]] = queue.Queue()
        self.bridges: Sequence[str] = ()
        self._behind = behind
        self._listener = listener

    def serve(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            said = b""
            while _HEAD_END not in said:
                if not (chunk := connection.recv(1 << 16)):
                    return
                said += chunk
            if said.startswith(b"GET /page"):
                page = PAGE.read_text().replace("__BRIDGES__", json.dumps(self.bridges))
                self._send(connection, page.encode())
            elif said.startswith(b"POST /report"):
                self._hear(connection, said)
            elif not said.startswith(b"GET /favicon"):
                self._pass_on(connection, said.replace(b"Connection: keep-alive", b"Connection: close", 1))

    def _hear(self, connection: socket.socket, said: bytes) -> None:
        head, _, body = said.partition(_HEAD_END)
        length = next(
            int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
        )
        while len(body) < length:
            body += connection.recv(1 << 16)
        self._send(connection, b"")
        self.reports.put(json.loads(body))

    def _send(self, connection: socket.socket, body: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n"
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode() + body)

    def _pass_on(self, connection: socket.socket, said: bytes) -> None:
        with socket.create_connection(self._behind) as bridge:
            bridge.sendall(said)
            back = threading.Thread(target=_copy, args=(bridge, connection), daemon=True)
            back.start()
            _copy(connection, bridge)
            back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(1 << 16):
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def attacker(behind: tuple[str, int]) -> Iterator[Attacker]:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        server = Attacker(listener, behind)
        threading.Thread(target=server.serve, daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
