"""Connections to one server, kept between requests."""

import asyncio
import ssl
from functools import partial

from irc_bridge.irc_client.exchange import Connection, Exchange, Lost, why

_KEPT_S = 15.0
"""An idle connection is not kept for long: a change that meets its end leaves open whether it was done."""


class Connections:
    """Of one event loop, as many as callers wait: a queue before a slow server would hold up its fast answers."""

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None, connect_timeout: float, read_timeout: float
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._host = host
        self._port = port
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        # read_timeout is between bytes: this also bounds a body that is not taken and an answer that trickles
        self._patience = connect_timeout + 3 * read_timeout
        self._open: set[Connection] = set()
        self._idle: dict[Connection, asyncio.TimerHandle] = {}

    async def ask(self, method: str, head: bytes, body: bytes) -> Exchange:
        """Sends it. Raises Lost only if nothing was sent."""
        connection = self._kept() or await self._connected()
        exchange = Exchange(connection, method, self._read_timeout, self._patience, self._keep)
        if body:
            connection.transport.writelines((head, body))
        else:
            connection.transport.write(head)
        return exchange

    def close(self) -> None:
        for connection in list(self._open):
            if connection.exchange is None:
                connection.transport.abort()
            else:
                connection.exchange.close()

    def _kept(self) -> Connection | None:
        while self._idle:
            connection, ends = self._idle.popitem()
            ends.cancel()
            if not connection.transport.is_closing():
                return connection
        return None

    def _keep(self, connection: Connection) -> None:
        self._idle[connection] = self._loop.call_later(_KEPT_S, connection.transport.abort)

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        ends = self._idle.pop(connection, None)
        if ends is not None:
            ends.cancel()

    async def _connected(self) -> Connection:
        new = partial(Connection, self._forget)
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, connection = await self._loop.create_connection(new, self._host, self._port, ssl=self._tls)
        except TimeoutError:
            raise Lost("no connection in time (connect_timeout)", sent=False) from None
        except OSError as error:
            raise Lost(why(error), sent=False, again=not isinstance(error, ssl.SSLError)) from error
        self._open.add(connection)
        return connection
