"""A relay to a faulty upstream, and requests for it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from irc_bridge.catalog.forward import ForwardRequest, ForwardResponse, Headers
from irc_bridge.irc_client.auth import Auth, Bearer
from irc_bridge.irc_client.relay import AskConfig, Relay
from irc_bridge.irc_client.server import Config

NOBODY = Bearer()


def no_config(_: str | None) -> Config:
    raise AssertionError("nobody asked for the configuration")


@asynccontextmanager
async def relay_to(
    url: str,
    auth: Auth | None = NOBODY,
    headers: Mapping[str, str] | None = None,
    connect_timeout: float = 5,
    read_timeout: float = 5,
    config: AskConfig = no_config,
) -> AsyncIterator[Relay]:
    relay = Relay(url, auth, headers or {}, config, connect_timeout, read_timeout)
    try:
        yield relay
    finally:
        await relay.close()


def asked(
    method: str = "GET",
    path: bytes = b"/v1/namespaces",
    query: bytes = b"",
    headers: Headers | None = None,
    body: bytes = b"",
    commits: bool = False,
) -> ForwardRequest:
    return ForwardRequest(method, path, query, headers or [], body, commits)


def commit(body: bytes = b'{"requirements":[],"updates":[]}') -> ForwardRequest:
    return asked("POST", b"/v1/namespaces/ns/tables/t", body=body, commits=True)


def value(answered: ForwardResponse, name: bytes) -> bytes | None:
    return next((value for each, value in answered.headers if each == name), None)
