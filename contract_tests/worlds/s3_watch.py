"""Stands before an S3 server: sees each request, and can end who sends it or answer in the server's place."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

CHANGES = ("PUT", "POST", "DELETE")
Watch = Callable[[str, str], int | None]
"""Is told method and path, and may give a status to answer at once; a negative one comes after the server did what
was asked, whose answer is lost."""


class _Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def setup(self) -> None:
        super().setup()
        self._behind = http.client.HTTPConnection(self.server.behind)

    def finish(self) -> None:
        self._behind.close()
        super().finish()

    def relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status = self.server.watch(self.command, self.path)
        if status is not None and status > 0:
            self._answer(status, [("Content-Length", "0")], b"")
            return
        self._behind.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():  # the host is signed, so it stays
            self._behind.putheader(name, value)
        self._behind.endheaders(body)
        with self._behind.getresponse() as response:
            content = response.read()
            headers = [each for each in response.getheaders() if each[0].lower() != "transfer-encoding"]
            if response.getheader("Content-Length") is None:
                headers.append(("Content-Length", str(len(content))))
            if status is not None:
                self._answer(-status, [("Content-Length", "0")], b"")
            else:
                self._answer(response.status, headers, content)

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = relay


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, behind: str, watch: Watch) -> None:
        super().__init__(("127.0.0.1", 0), _Relay)
        self.behind = behind
        self.watch = watch

    def handle_error(self, *_: Any) -> None:
        """Who sends requests here may be killed at any of them."""


@contextmanager
def watched(endpoint: str, watch: Watch) -> Iterator[str]:
    """Gives the endpoint to use instead."""
    with _Server(urlsplit(endpoint).netloc, watch) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
