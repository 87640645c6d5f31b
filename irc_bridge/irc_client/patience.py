"""Connections that do not wait for ever for a server that sends a byte now and then: the time-outs of sockets
begin anew with each byte."""

import http.client
import io
import socket
import time
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

_TIMEOUTS = 3
"""So many times the time-out of a socket an answer may take without coming on."""
_SLOWEST = 8 * 1024
"""In bytes per second: what comes more slowly does not come on."""
_LONGEST_HEAD = 256 * 1024
"""In bytes, with the heads of all answers before the last."""
_MOST = 128 * 1024 * 1024
"""In bytes, with the frames of chunks."""


class _Reader(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, connection: socket.socket) -> None:
        self._raw = raw
        self._connection = connection
        self._timeout = connection.gettimeout() or 60.0
        self._most_patience = self._patience = _TIMEOUTS * self._timeout
        self.left = _LONGEST_HEAD
        """How many bytes more are taken."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._patience <= 0 or self.left < 0:
            raise TimeoutError("the answer does not come to its end")
        self._connection.settimeout(min(self._timeout, self._patience))
        begun = time.monotonic()
        count = self._raw.readinto(buffer)
        waited = time.monotonic() - begun
        self._patience = min(self._patience - waited + (count or 0) / _SLOWEST, self._most_patience)
        self.left -= count or 0
        return count

    def close(self) -> None:
        super().close()
        self._raw.close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self._reader = _Reader(self.fp.detach(), sock)
        self.fp: Any = io.BufferedReader(self._reader)

    def begin(self) -> None:
        super().begin()
        self._reader.left = _MOST
        lengths = self.msg.get_all("content-length", [])
        codings = [each.lower() for each in self.msg.get_all("transfer-encoding", [])]
        is_clear = codings in ([], ["chunked"]) and len(lengths) + len(codings) < 2
        # urllib3 would log defects with a stack trace
        if self.msg.defects or not is_clear or not all(each.strip().isdigit() for each in lengths):
            raise http.client.HTTPException("its head is not HTTP")


class _Http(HTTPConnection):
    response_class = _Response


class _Https(HTTPSConnection):
    response_class = _Response


class PatientHttp(HTTPConnectionPool):
    ConnectionCls = _Http


class PatientHttps(HTTPSConnectionPool):
    ConnectionCls = _Https
