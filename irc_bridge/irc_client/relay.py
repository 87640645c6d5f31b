"""Passes requests on to an IRC server and its answers back, byte for byte, on the event loop."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from irc_bridge.catalog.forward import ForwardRequest, ForwardResponse, Headers
from irc_bridge.errors import InvalidInput
from irc_bridge.irc_client.auth import Auth
from irc_bridge.irc_client.connections import Connections
from irc_bridge.irc_client.exchange import MOST_AT_ONCE, Exchange, Lost
from irc_bridge.irc_client.failures import NO_LONGER_AUTHENTICATED
from irc_bridge.irc_client.lost_answers import CHANGES_NOTHING, lost
from irc_bridge.irc_client.plain_requests import require_plain
from irc_bridge.irc_client.server import Config
from irc_bridge.irc_client.shared_calls import SharedCalls

_PAUSES_S = (0.05, 0.2)
"""Before what changes nothing is tried again."""
_CLIENTS = 1000
"""Of so many the configuration is kept when they are passed through."""

LARGEST_WHOLE = 64 * 1024 * 1024
"""So many bytes of an answer are waited for by whom wants it whole."""

_ABOUT_THE_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"content-length")
)
_OTHER_REQUEST = (
    *(b"x-http-method", b"x-http-method-override", b"x-method-override"),
    *(b"x-original-url", b"x-rewrite-url", b"x-original-uri"),
)
"""Some servers take the method or the path out of them."""
_OTHER_PLACE = (b"forwarded", b"x-forwarded-host", b"x-forwarded-prefix", b"x-forwarded-proto")
"""They say where this server was called. The server behind would take them for its own place."""
_NOT_SENT = _ABOUT_THE_CONNECTION | {b"host", b"expect", b"origin", *_OTHER_REQUEST, *_OTHER_PLACE}
_NOT_RETURNED = _ABOUT_THE_CONNECTION | {b"date", b"server"}
_ABOUT_WEB_PAGES = b"access-control-"
"""Which web pages may ask is decided by this server alone."""
_WHO_ASKS = frozenset(
    (b"authorization", b"cookie", b"x-api-key", b"x-forwarded-user", b"x-forwarded-email", b"x-remote-user")
)
_AUTHORIZATION = b"authorization"
_NO_BODY_EXPECTED = frozenset(("GET", "HEAD"))
_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_PLAIN = re.compile(rb"[\x21-\x7e]*")
_BREAKS = re.compile(rb"[\r\n\0]")

AskConfig = Callable[[str | None], Config]
"""Asks the server for its configuration, and waits; with the client's Authorization if that is passed through."""


@dataclass(frozen=True, slots=True)
class _OfLoop:
    connections: Connections
    calls: SharedCalls = field(default_factory=SharedCalls)


class Relay:
    """Sends requests of clients to another server. With `auth` the bridge's own Authorization replaces the
    client's."""

    def __init__(
        self,
        uri: str,
        auth: Auth | None,
        headers: Mapping[str, str],
        config: AskConfig,
        connect_timeout: float,
        read_timeout: float,
    ) -> None:
        parts = urlsplit(uri)
        netloc = parts.netloc.rpartition("@")[2]
        self._uri = f"{parts.scheme}://{netloc}{parts.path}".rstrip("/")
        self._path = _target(parts.path.rstrip("/").encode())
        self._host_line = b"host: " + netloc.encode("ascii" if netloc.isascii() else "idna")
        tls, port = (_tls(), 443) if parts.scheme == "https" else (None, 80)
        self._server = (parts.hostname or "", parts.port or port, tls, connect_timeout, read_timeout)
        self._auth = auth
        self._headers = {name.lower().encode(): value.encode() for name, value in headers.items()}
        self._not_sent = _NOT_SENT.union(self._headers)
        self._not_returned = _NOT_RETURNED
        if auth is not None:
            self._not_sent |= _WHO_ASKS
            self._not_returned |= {b"set-cookie"}  # it would be ours
        self._ask_config = config
        self._configs: dict[str | None, Config] = {}
        self._loops: dict[asyncio.AbstractEventLoop, _OfLoop] = {}

    async def send(self, asked: ForwardRequest, whole: bool = False) -> ForwardResponse:
        require_plain(asked)
        authorization = await self._authorization()
        answered = await self._sent(asked, authorization)
        if self._auth is not None and answered.status in NO_LONGER_AUTHENTICATED:
            answered = await self._renewed(self._auth, asked, authorization, answered)
        if not whole or answered.rest is None:
            return answered
        async with aclosing(answered.rest) as rest:
            content = bytearray(answered.content)
            async for chunk in rest:
                content += chunk
                if len(content) > LARGEST_WHOLE:
                    raise lost(asked, self._uri, Lost(f"its answer is larger than {LARGEST_WHOLE} bytes"))
        return replace(answered, content=bytes(content), rest=None)

    async def prefix(self, authorization: str | None) -> bytes:
        return (await self._config(authorization)).prefix.encode()

    async def separator(self, authorization: str | None) -> str:
        return unquote((await self._config(authorization)).separator)

    async def close(self) -> None:
        while self._loops:
            loop, ours = self._loops.popitem()
            if not loop.is_closed():
                loop.call_soon_threadsafe(ours.connections.close)
        for _ in range(2):  # turns of the loop: the connections are told to end, and end
            await asyncio.sleep(0)

    async def _config(self, authorization: str | None) -> Config:
        """The configuration that the server gave to this client. It is not used for another client."""
        client = authorization if self._auth is None else None
        known = self._configs.get(client)
        if known is None:
            known = await self._here().calls.run(("config", client), lambda: self._ask_config(client))
            self._configs[client] = known
            if len(self._configs) > _CLIENTS:
                del self._configs[next(iter(self._configs))]
        return known

    async def _authorization(self) -> str | None:
        auth = self._auth
        if auth is None or auth.ready():
            return None if auth is None else auth.header()
        return await self._here().calls.run("header", auth.header)

    async def _renewed(
        self, auth: Auth, asked: ForwardRequest, refused: str | None, answered: ForwardResponse
    ) -> ForwardResponse:
        """Sent again once with another token: who is not known changes nothing."""
        if not await self._here().calls.run(("renewed", refused), lambda: auth.renewed(refused)):
            return answered
        if answered.rest is not None:
            await answered.rest.aclose()
        return await self._sent(asked, await self._authorization())

    async def _sent(self, asked: ForwardRequest, authorization: str | None) -> ForwardResponse:
        pauses = iter(_PAUSES_S if asked.method in CHANGES_NOTHING else ())
        while True:
            try:
                return await self._exchanged(asked, authorization)
            except Lost as error:
                pause = next(pauses, None)
                if pause is None or not error.again:
                    raise lost(asked, self._uri, error) from error
            await asyncio.sleep(pause)

    async def _exchanged(self, asked: ForwardRequest, authorization: str | None) -> ForwardResponse:
        head = self._head(asked, authorization)
        exchange = await self._here().connections.ask(asked.method, head, asked.body)
        # up to here it is whole before any of it is given out, so that one which breaks off is an honest error
        content = await exchange.read(MOST_AT_ONCE)
        rest = None if exchange.over else _Rest(exchange, asked, self._uri)
        return ForwardResponse(exchange.status, _end_to_end(exchange.headers, self._not_returned), content, rest)

    def _head(self, asked: ForwardRequest, authorization: str | None) -> bytes:
        ours = self._headers
        if authorization is not None:
            ours = {**ours, _AUTHORIZATION: authorization.encode()}
        target = self._path + _target(asked.path, asked.query)
        lines = [b"%b %b HTTP/1.1" % (asked.method.encode(), target), self._host_line]
        for name, value in (*_end_to_end(asked.headers, self._not_sent), *ours.items()):
            if _BREAKS.search(value):
                raise InvalidInput(f"The header {name.decode()} cannot be passed on: it has a line break in it")
            lines.append(b"%b: %b" % (name, value))
        if asked.body or asked.method not in _NO_BODY_EXPECTED:
            lines.append(b"content-length: %d" % len(asked.body))
        return b"\r\n".join((*lines, b"", b""))

    def _here(self) -> _OfLoop:
        loop = asyncio.get_running_loop()
        ours = self._loops.get(loop)
        if ours is None:
            ours = self._loops[loop] = _OfLoop(Connections(*self._server))
        return ours


class _Rest(AsyncGenerator[bytes, None]):
    """No generator function: one that was never started does nothing when it is closed."""

    def __init__(self, exchange: Exchange, asked: ForwardRequest, uri: str) -> None:
        self._exchange = exchange
        self._asked = asked
        self._uri = uri
        self._loop = asyncio.get_running_loop()
        self._closed = False

    async def asend(self, _: None) -> bytes:
        if self._closed:
            raise StopAsyncIteration
        try:
            chunk = await self._exchange.read(1)
        except Lost as error:
            raise lost(self._asked, self._uri, error) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def athrow(self, *thrown: Any) -> bytes:
        await self.aclose()
        return await super().athrow(*thrown)

    async def aclose(self) -> None:
        self._closed = True
        self._exchange.close()

    def __del__(self) -> None:
        """For who forgets it: nobody else ends the connection. May run in any thread."""
        if not self._exchange.over:
            with suppress(RuntimeError):  # of a loop that is closed
                self._loop.call_soon_threadsafe(self._exchange.close)


def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _target(path: bytes, query: bytes = b"") -> bytes:
    target = path + b"?" + query if query else path
    # nothing else may stand there; some clients send their UTF-8 as it is
    return target if _PLAIN.fullmatch(target) else quote(target, safe=_ASCII).encode()


def _end_to_end(headers: Iterable[tuple[bytes, bytes]], dropped: frozenset[bytes]) -> Headers:
    passed: Headers = []
    named: frozenset[bytes] = frozenset()
    for name, value in headers:
        if name == b"connection":
            named |= {each.strip().lower() for each in value.split(b",")}
        spelled = name.replace(b"_", b"-")  # to some servers - and _ are the same
        if spelled not in dropped and not spelled.startswith((b"proxy-", _ABOUT_WEB_PAGES)):
            passed.append((name, value))
    return [each for each in passed if each[0] not in named] if named else passed
