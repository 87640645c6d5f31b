"""Tokens: given ones, and those that a token endpoint gives for a credential."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import lance_namespace as ln
import pytest

from contract_tests.client.catalogs import BRIDGE, Catalog
from contract_tests.client.proxy import proxied
from contract_tests.conftest import Start
from irc_bridge.errors import Unauthenticated
from irc_bridge.irc_client.auth import ClientCredentials
from irc_bridge.irc_client.pool import Pool

CREDENTIAL = "me:word:with:colons"


@dataclass
class Endpoint:
    """A token endpoint. Each token is used up as soon as the test says so."""

    url: str = ""
    life: float | None = 3600
    forms: list[dict[str, list[str]]] = field(default_factory=list)
    token: str = "given-0"
    """What it gives out; the catalog takes this one alone."""
    refuse: bool = False


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"

    def do_POST(self) -> None:
        endpoint = self.server.endpoint
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        endpoint.forms.append(parse_qs(body))
        answer: dict[str, Any] = {"access_token": endpoint.token, "token_type": "bearer"}
        if endpoint.life is not None:
            answer["expires_in"] = endpoint.life
        if endpoint.refuse:
            answer = {"error": "invalid_client", "error_description": "who is that"}
        content = json.dumps(answer).encode()
        self.send_response_only(401 if endpoint.refuse else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.endpoint = endpoint


@contextmanager
def token_endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    with _Server(endpoint) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        endpoint.url = f"http://127.0.0.1:{server.server_port}/token"
        try:
            yield endpoint
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with token_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def guarded(start: Start, endpoint: Endpoint) -> Catalog:
    """A bridge that takes the token that the endpoint gives out at first."""
    settings = '[warehouses.main]\nbackend = "dir"\nroot = "lake"\n'
    server = start(settings, environment={"IRC_BRIDGE__SERVER__TOKEN": endpoint.token})
    return Catalog(BRIDGE, server.url, True)


def names(catalog: Catalog, **more: str) -> list[str]:
    return catalog.connect(**more).list_namespaces(ln.ListNamespacesRequest()).namespaces


def signed_in(endpoint: Endpoint, **more: str) -> dict[str, str]:
    return {"credential": CREDENTIAL, "oauth2-server-uri": endpoint.url, **more}


def test_a_given_token(guarded: Catalog, endpoint: Endpoint) -> None:
    assert names(guarded, token=endpoint.token) == ["default"]
    for wrong in ({}, {"token": "other"}):
        with pytest.raises(ln.errors.UnauthenticatedError):
            names(guarded, **wrong)


def test_a_credential_becomes_a_token(guarded: Catalog, endpoint: Endpoint) -> None:
    assert names(guarded, **signed_in(endpoint, scope="mine")) == ["default"]
    assert endpoint.forms == [
        {
            "grant_type": ["client_credentials"],
            "client_id": ["me"],
            "client_secret": ["word:with:colons"],
            "scope": ["mine"],
        }
    ]


def test_one_token_serves_many_threads(guarded: Catalog, endpoint: Endpoint) -> None:
    namespace = guarded.connect(**signed_in(endpoint))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: namespace.list_namespaces({}).namespaces, range(40)))
    assert found == [["default"]] * 40
    assert len(endpoint.forms) == 1


@pytest.mark.parametrize("status", [401, 419])
def test_a_token_that_is_no_longer_taken_is_renewed_once(endpoint: Endpoint, bridge_url: str, status: int) -> None:
    """The proxy takes the latest token alone."""
    good = {"token": endpoint.token}

    def judged(seen: Any) -> int | None:
        return None if seen.headers.get("authorization") == f"Bearer {good['token']}" else status

    with proxied(bridge_url, refuse=judged) as proxy:
        namespace = Catalog(BRIDGE, proxy.url, True).connect(**signed_in(endpoint))
        assert "default" in namespace.list_namespaces({}).namespaces
        endpoint.token = good["token"] = "given-1"
        namespace.create_namespace(ln.CreateNamespaceRequest(id=[f"renewed{status}"]))
        assert len(endpoint.forms) == 2
        good["token"] = "never given"
        proxy.seen.clear()
        with pytest.raises(ln.errors.UnauthenticatedError):
            namespace.list_namespaces({})
        assert (len(endpoint.forms), len(proxy.seen)) == (3, 2)


def test_a_credential_that_is_refused(endpoint: Endpoint, guarded: Catalog) -> None:
    endpoint.refuse = True
    with pytest.raises(ln.errors.UnauthenticatedError, match="who is that") as refused:
        names(guarded, **signed_in(endpoint))
    assert "word" not in str(refused.value)


def test_no_token_endpoint(guarded: Catalog) -> None:
    with pytest.raises(ln.errors.UnauthenticatedError, match=r"/v1/oauth/tokens gave no token"):
        names(guarded, credential=CREDENTIAL)
    nobody = {"credential": CREDENTIAL, "oauth2-server-uri": "http://127.0.0.1:9/token"}
    with pytest.raises(ln.errors.ServiceUnavailableError, match="token endpoint"):
        names(guarded, **nobody)


@pytest.mark.parametrize(("life", "still_good", "renewed"), [(3600, 3539, 3541), (10, 8.9, 9.1), (None, 1e9, 1e9)])
def test_a_token_is_renewed_before_it_expires(
    endpoint: Endpoint, life: float | None, still_good: float, renewed: float
) -> None:
    now = [0.0]
    endpoint.life = life
    auth = ClientCredentials(Pool(5, 5).post_form, endpoint.url, CREDENTIAL, "catalog", lambda: now[0])
    assert auth.header() == "Bearer given-0"
    endpoint.token = "given-1"
    now[0] = still_good
    assert auth.header() == "Bearer given-0"
    now[0] = renewed
    assert auth.header() == ("Bearer given-0" if life is None else "Bearer given-1")


def test_a_refused_token_that_another_thread_renewed_is_not_renewed_again(endpoint: Endpoint) -> None:
    auth = ClientCredentials(Pool(5, 5).post_form, endpoint.url, CREDENTIAL, "catalog")
    old = auth.header()
    endpoint.token = "given-1"
    assert auth.renewed(old) and auth.renewed(old)
    assert auth.header() == "Bearer given-1"
    assert len(endpoint.forms) == 2
    endpoint.refuse = True
    with pytest.raises(Unauthenticated):
        auth.renewed("Bearer given-1")


def test_a_netrc_file_does_not_replace_the_token(
    guarded: Catalog, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    assert names(guarded, token=endpoint.token) == ["default"]
