"""A client of its own process that loads one table again and again, and tells how long it waited.

python -m contract_tests.security.other_client URL

For each line that it reads it writes one: how many answers came since the last, their 99th percentile and the
longest in seconds. An answer other than 200 ends it.
"""

import socket
import statistics
import sys
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

PAUSE_S = 0.004


@dataclass(frozen=True)
class Waits:
    answers: int
    p99_s: float
    longest_s: float


class Loads:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = socket.create_connection((parts.hostname or "", parts.port or 0), 60)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
        self._lock = threading.Lock()
        self._waits: list[float] = []

    def go_on(self) -> None:
        while True:
            started = time.perf_counter()
            self._connection.sendall(self._request)
            self._read()
            with self._lock:
                self._waits.append(time.perf_counter() - started)
            time.sleep(PAUSE_S)

    def waits(self) -> Waits:
        with self._lock:
            waits, self._waits = self._waits, []
        p99 = statistics.quantiles(waits, n=100, method="inclusive")[98] if len(waits) > 1 else 0.0
        return Waits(len(waits), p99, max(waits, default=0.0))

    def _read(self) -> None:
        content = b""
        while b"\r\n\r\n" not in content:
            content += self._more()
        head, _, body = content.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(head.decode())
        length = next(
            int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
        )
        while len(body) < length:
            body += self._more()

    def _more(self) -> bytes:
        chunk = self._connection.recv(1 << 16)
        if not chunk:
            raise RuntimeError("the server closed the connection")
        return chunk


def main() -> None:
    loads = Loads(sys.argv[1])
    answer = threading.Thread(target=_answer_lines, args=(loads,), daemon=True)
    answer.start()
    loads.go_on()


def _answer_lines(loads: Loads) -> None:
    for _ in sys.stdin:
        waits = loads.waits()
        print(waits.answers, waits.p99_s, waits.longest_s, flush=True)


if __name__ == "__main__":
    main()
