"""What a client of an `irc` warehouse cannot make the bridge ask of the server behind with the bridge's token."""

from collections.abc import Iterator

import pytest
import requests

from contract_tests.upstream.faulty import Received, Reply, Upstream, Wire, faulty_upstream, written
from contract_tests.worlds.bridge import Server, raw_request
from contract_tests.worlds.upstream import bridge_over

TOKEN = "only-for-the-server-behind"
CONFIG = b'{"defaults":{"prefix":"%s"},"overrides":{"token":"%s"}}'


def echo(prefix: bytes, wire: Wire) -> None:
    """Answers with what it got, as TRACE does; with tokens where it is asked for them."""
    received = wire.received
    body = CONFIG % (prefix, TOKEN.encode()) if received.path == "/v1/config" else received.head
    wire.send(written(received.method, 200, [("Content-Type", "text/plain")], body))


@pytest.fixture(scope="module", params=["", "prod"])
def behind(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Upstream]]:
    """One server without a prefix, one with another warehouse under another prefix."""

    def reply(_: Received) -> Reply:
        return lambda wire: echo(request.param.encode(), wire)

    with (
        faulty_upstream(reply) as upstream,
        bridge_over(upstream.url, tmp_path_factory.mktemp("bridge"), f'token = "{TOKEN}"\n') as server,
    ):
        requests.get(f"{server.url}/v1/main/namespaces", timeout=60)
        yield server, upstream


METHODS = ["TRACE", "CONNECT", "OPTIONS", "TRACK", "DEBUG", "PROPFIND"]
TARGETS = [
    "/v1/main/../../admin", "/v1/main/%2e%2e/%2e%2e/admin", "/v1/main/%252e%252e/admin", "/v1/main/..;/admin",
    "/v1/main/..%2f..%2fadmin", "/v1/main/..%5c..%5cadmin", "/v1/main/..\\admin", "/v1/main//admin",
    "/v1/../admin", "/admin", "//admin", "/v1", "/v1/main/namespaces/../../../admin",
    "/v1/main/namespaces/ns/%252e%252e/%252e%252e/admin", "http://elsewhere/admin",
    "http://elsewhere/v1/main/../admin",
    # to tokens and to what the server says of itself
    "/v1/main/oauth/tokens", "/v1/main/oauth/tokens/", "/v1/%6fauth/tokens", "/v1/oauth/tokens;x=y",
    "/v1/OAuth/tokens", "/v1/oauth/tokens/introspect", "/v1/main/%6fauth/tokens", "/v1/main/config",
    "/v1/main/%63onfig", "/v1/prod/oauth/tokens", "/v1/prod/config",
    # to tables past the handlers that know Lance
    "/v1/main/%6eamespaces/ns/tables", "/v1/main/namespaces/ns/%74ables", "/v1/main/namespaces/ns/%2574ables",
    "/v1/main/namespaces/ns/tables;x=y", "/v1/main/namespaces/ns/tables/", "/v1/main/namespaces/ns//tables",
    "/v1/main/Namespaces/ns/Tables", "/v1/%6eamespaces/ns/tables", "/v1/main/%74ransactions/commit",
    "/v1/main/namespaces/ns/regist%65r",
    # to another warehouse of that server
    "/v1/other/namespaces", "/v1/other/namespaces/ns/functions", "/v1/main/other/namespaces/ns/functions",
    "/v1/other/tables/rename", "/v1/other/%6eamespaces/ns/functions", "/v1/prod/namespaces/ns/unregister",
]  # fmt: skip


def require_refused(behind: tuple[Server, Upstream], method: str, target: str) -> None:
    server, upstream = behind
    upstream.requests.clear()
    head = f"{method} {target} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2"
    with raw_request(server.url, head.encode(), b"{}") as answered:
        assert 400 <= answered.status < 500, answered.status
        assert TOKEN.encode() not in answered.read()
    assert [each.target for each in upstream.requests] == []


@pytest.mark.parametrize("method", METHODS)
def test_methods_that_no_catalog_has(behind: tuple[Server, Upstream], method: str) -> None:
    for path in ("/v1/main/namespaces", "/v1/main/x/y", "/v1/x", "*"):
        require_refused(behind, method, path)


@pytest.mark.parametrize("target", TARGETS)
def test_paths_that_lead_elsewhere(behind: tuple[Server, Upstream], target: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        require_refused(behind, method, target)


def test_a_header_that_is_for_the_bridge_stays_here(behind: tuple[Server, Upstream]) -> None:
    server, upstream = behind
    upstream.requests.clear()
    sent = {
        "Authorization": "Bearer the-client-s", "X-Api-Key": "the-client-s", "Cookie": "a=the-client-s",
        "X-HTTP-Method-Override": "DELETE", "X-Original-URL": "/admin", "Content_Length": "1",
        "Connection": "close, Host",
    }  # fmt: skip
    requests.get(f"{server.url}/v1/main/namespaces", headers=sent, timeout=60)
    (received,) = upstream.requests
    assert received.header("authorization") == f"Bearer {TOKEN}"
    assert received.header("host") == upstream.url.removeprefix("http://")
    head = received.head.lower()
    for word in (b"the-client-s", b"override", b"x-original-url", b"content_length"):
        assert word not in head
