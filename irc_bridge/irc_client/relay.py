"""Passes requests on to an IRC server and its answers back, byte for byte, on the event loop."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any
from urllib.parse import quote, unquote

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from yarl import URL

from irc_bridge.catalog.passing import Answered, Headers, Passed
from irc_bridge.errors import InvalidInput
from irc_bridge.irc_client.auth import Auth
from irc_bridge.irc_client.failures import NO_LONGER_AUTHENTICATED
from irc_bridge.irc_client.lost_answers import CHANGES_NOTHING, LOSSES, came_to_nothing, lost
from irc_bridge.irc_client.server import Config
from irc_bridge.irc_client.shared_calls import SharedCalls

_PAUSES_S = (0.05, 0.2)
"""Before what changes nothing is tried again."""
_LARGE = 1024 * 1024
"""An answer up to here is whole before any of it is given out, so that one which breaks off is an honest error."""
_KEPT_S = 15.0
"""An idle connection is not kept for long: a change that meets its end leaves open whether it was done."""
_LONGEST_HEADER = 64 * 1024
_CLIENTS = 1000
"""Of so many the configuration is kept when they are passed through."""

_ABOUT_THE_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"content-length")
)
_NOT_SENT = _ABOUT_THE_CONNECTION | {b"host", b"expect"}
_NOT_RETURNED = _ABOUT_THE_CONNECTION | {b"date", b"server"}
_WHO_ASKS = frozenset((b"authorization", b"cookie"))
_AUTHORIZATION = "authorization"
_ASCII = "".join(map(chr, range(0x21, 0x7F)))

AskConfig = Callable[[str | None], Config]
"""Asks the server for its configuration, and waits; with the client's Authorization if that is passed through."""


@dataclass(frozen=True, slots=True)
class _OfLoop:
    session: aiohttp.ClientSession
    calls: SharedCalls = field(default_factory=SharedCalls)


class Relay:
    """Without `auth` a client's own Authorization goes along, otherwise only ours."""

    def __init__(
        self,
        uri: str,
        auth: Auth | None,
        headers: Mapping[str, str],
        config: AskConfig,
        connect_timeout: float,
        read_timeout: float,
    ) -> None:
        self._uri = str(URL(uri).with_user(None)).rstrip("/")
        self._auth = auth
        self._headers = {name.lower(): value for name, value in headers.items()}
        self._not_sent = _NOT_SENT.union(name.encode() for name in self._headers)
        self._not_returned = _NOT_RETURNED
        if auth is not None:
            self._not_sent |= _WHO_ASKS
            self._not_returned |= {b"set-cookie"}  # it would be ours
        self._ask_config = config
        self._configs: dict[str | None, Config] = {}
        # not rounded up, so that the longer patience below never takes a connection for a lost answer
        self._timeout = aiohttp.ClientTimeout(
            connect=connect_timeout, sock_read=read_timeout, ceil_threshold=math.inf
        )
        # read_timeout is between bytes: this also bounds a body that is not taken and an answer that trickles
        self._patience = connect_timeout + 3 * read_timeout
        self._loops: dict[asyncio.AbstractEventLoop, _OfLoop] = {}

    async def send(self, asked: Passed, whole: bool = False) -> Answered:
        authorization = await self._authorization()
        answered = await self._sent(asked, authorization)
        if self._auth is not None and answered.status in NO_LONGER_AUTHENTICATED:
            answered = await self._renewed(self._auth, asked, authorization, answered)
        if not whole or answered.rest is None:
            return answered
        async with aclosing(answered.rest) as rest:
            more = [chunk async for chunk in rest]
        return replace(answered, content=b"".join((answered.content, *more)), rest=None)

    async def prefix(self, authorization: str | None) -> bytes:
        return (await self._config(authorization)).prefix.encode()

    async def separator(self, authorization: str | None) -> str:
        return unquote((await self._config(authorization)).separator)

    async def close(self) -> None:
        while self._loops:
            _, ours = self._loops.popitem()
            await ours.session.close()

    async def _config(self, authorization: str | None) -> Config:
        """What one client was told is not used for another."""
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

    async def _renewed(self, auth: Auth, asked: Passed, refused: str | None, answered: Answered) -> Answered:
        """Sent again once with another token: who is not known changes nothing."""
        if not await self._here().calls.run(("renewed", refused), lambda: auth.renewed(refused)):
            return answered
        if answered.rest is not None:
            await answered.rest.aclose()
        return await self._sent(asked, await self._authorization())

    async def _sent(self, asked: Passed, authorization: str | None) -> Answered:
        pauses = iter(_PAUSES_S if asked.method in CHANGES_NOTHING else ())
        while True:
            try:
                return await self._exchanged(asked, authorization)
            except LOSSES as error:
                pause = next(pauses, None)
                if pause is None or not came_to_nothing(error):
                    raise lost(asked, self._uri, error) from error
            await asyncio.sleep(pause)

    async def _exchanged(self, asked: Passed, authorization: str | None) -> Answered:
        headers = self._headers_of(asked, authorization)
        session = self._here().session
        async with asyncio.timeout(self._patience):
            response = await session.request(
                asked.method, self._url(asked), headers=headers, data=_data(asked.body), allow_redirects=False
            )
            try:
                content = await _beginning(response.content)
            except BaseException:
                response.close()
                raise
        rest = None if response.content.at_eof() else _Rest(response, asked, self._uri)
        return Answered(response.status, _end_to_end(response.raw_headers, self._not_returned), content, rest)

    def _url(self, asked: Passed) -> URL:
        target = asked.path + b"?" + asked.query if asked.query else asked.path
        # nothing else may stand there; some clients send their UTF-8 as it is
        text = target.decode() if target.isascii() else quote(target, safe=_ASCII)
        return URL(self._uri + text, encoded=True)

    def _headers_of(self, asked: Passed, authorization: str | None) -> list[tuple[str, str]]:
        headers = [
            (name.decode(), _text(name, value)) for name, value in _end_to_end(asked.headers, self._not_sent)
        ]
        ours = self._headers if authorization is None else {**self._headers, _AUTHORIZATION: authorization}
        headers.extend(ours.items())
        return headers

    def _here(self) -> _OfLoop:
        loop = asyncio.get_running_loop()
        ours = self._loops.get(loop)
        if ours is None:
            ours = self._loops[loop] = _OfLoop(_new_session(self._timeout))
        return ours


class _Rest(AsyncGenerator[bytes, None]):
    """No generator function: one that was never started does nothing when it is closed."""

    def __init__(self, response: aiohttp.ClientResponse, asked: Passed, uri: str) -> None:
        self._response = response
        self._asked = asked
        self._uri = uri
        self._loop = asyncio.get_running_loop()
        self._closed = False

    async def asend(self, _: None) -> bytes:
        if self._closed:
            raise StopAsyncIteration
        try:
            chunk = await self._response.content.readany()
        except LOSSES as error:
            await self.aclose()
            raise lost(self._asked, self._uri, error) from error
        except BaseException:
            await self.aclose()
            raise
        if not chunk:
            self._closed = True
            raise StopAsyncIteration
        return chunk

    async def athrow(self, *thrown: Any) -> bytes:
        await self.aclose()
        return await super().athrow(*thrown)

    async def aclose(self) -> None:
        self._closed = True
        self._response.close()

    def __del__(self) -> None:
        """For who forgets it: aiohttp would wait for a reader, without a time-out. May run in any thread."""
        if not self._closed:
            with suppress(RuntimeError):  # of a loop that is closed
                self._loop.call_soon_threadsafe(self._response.close)


class _Connector(aiohttp.TCPConnector):
    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        if should_close and protocol.transport is not None:
            protocol.transport.abort()  # aiohttp would first have a server take the body that it does not take
        super()._release(key, protocol, should_close=should_close)


def _new_session(timeout: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
    session = aiohttp.ClientSession(
        # as many connections as clients wait: a queue before a slow server would hold up what it answers fast
        connector=_Connector(limit=0, keepalive_timeout=_KEPT_S),
        timeout=timeout,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        skip_auto_headers=("user-agent", "accept", "accept-encoding", "content-type"),
        max_line_size=_LONGEST_HEADER,
        max_field_size=_LONGEST_HEADER,
    )
    # aiohttp would send what HTTP calls idempotent once more when a kept connection ends, among it DELETE: then
    # a table that was dropped is reported missing, or one that somebody else has made since is dropped as well
    session._retry_connection = False
    return session


def _text(name: bytes, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"The header {name.decode()} cannot be passed on: it is not UTF-8") from None


def _data(body: bytes) -> bytes | BytesIO | None:
    if len(body) > _LARGE:
        return BytesIO(body)  # sent in pieces
    return body or None


async def _beginning(content: aiohttp.StreamReader) -> bytes:
    chunks = []
    size = 0
    while size < _LARGE and (chunk := await content.readany()):
        chunks.append(chunk)
        size += len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _end_to_end(headers: Iterable[tuple[bytes, bytes]], dropped: frozenset[bytes]) -> Headers:
    passed: Headers = []
    named: frozenset[bytes] = frozenset()
    for given, value in headers:
        name = given.lower()
        if name == b"connection":
            named |= {each.strip().lower() for each in value.split(b",")}
        if name not in dropped and not name.startswith(b"proxy-"):
            passed.append((name, value))
    return [each for each in passed if each[0] not in named] if named else passed
