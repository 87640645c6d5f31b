"""What a proxy says about a request counts where the settings trust the proxy, and nowhere else."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from contract_tests.security.conftest import StartTarget
from contract_tests.security.target import TABLE, Target, running_target
from contract_tests.upstream.faulty import Received, Reply, faulty_upstream
from contract_tests.upstream.replies import answer
from contract_tests.worlds.upstream import bridge_over

TRUSTED = 'trusted_proxies = ["192.0.2.0/24", "127.0.0.1"]'
OTHERS = 'trusted_proxies = ["192.0.2.0/24"]'
TOKEN = 'token = "a-token-of-the-bridge"'
OUTSIDE = {
    "X_Forwarded_Proto": "https",
    "X_Forwarded_Host": "catalog.example",
    "X_Forwarded_Prefix": "/lance-tables/",
}


def redirected(target: Target, **headers: str) -> str | None:
    """Where the server says that a probe with one slash too many shall go."""
    return target.request("GET", "/health/live/", **headers, **target.token).headers["location"]


def test_a_trusted_proxy_says_where_the_server_was_called(start_target: StartTarget) -> None:
    target = start_target(f"{TRUSTED}\n{TOKEN}")
    assert redirected(target, **OUTSIDE) == "https://catalog.example/lance-tables/health/live"
    assert redirected(target, X_Forwarded_Proto="https") == f"https://{target.host}/health/live"
    assert redirected(target) == f"http://{target.host}/health/live"
    assert target.request("GET", TABLE, **OUTSIDE, **target.token).status == 200
    assert target.request("GET", "/health/live", **OUTSIDE).status == 200


@pytest.mark.parametrize("settings", ["", OTHERS])
def test_nobody_else_does(start_target: StartTarget, settings: str) -> None:
    target = start_target(f"{settings}\n{TOKEN}")
    assert redirected(target, **OUTSIDE) == f"http://{target.host}/health/live"
    assert redirected(target, X_Forwarded_Host="a b\\") == f"http://{target.host}/health/live"


def test_the_last_of_several_proxies_counts(start_target: StartTarget) -> None:
    """The values before it may come from the client."""
    target = start_target(f"{TRUSTED}\n{TOKEN}")
    said = {"X_Forwarded_Proto": "http, https", "X_Forwarded_Host": "evil.example, catalog.example"}
    assert redirected(target, **said) == "https://catalog.example/health/live"


def test_the_host_that_the_proxy_names_is_the_one_that_is_checked(start_target: StartTarget) -> None:
    without_token = start_target(TRUSTED)
    assert without_token.request("GET", TABLE, X_Forwarded_Host="localhost:8181").status == 200
    assert without_token.request("GET", TABLE, X_Forwarded_Host="catalog.example").status == 403
    not_trusted = start_target(OTHERS)
    assert not_trusted.request("GET", TABLE, X_Forwarded_Host="catalog.example").status == 200
    assert not_trusted.request("GET", TABLE, Host="catalog.example", X_Forwarded_Host="localhost").status == 403


def test_a_page_of_the_outside_host_is_a_page_of_this_server(start_target: StartTarget) -> None:
    target = start_target(f"{TRUSTED}\n{TOKEN}")
    page = {"Origin": "https://catalog.example", **target.token}
    assert target.request("GET", TABLE, X_Forwarded_Host="catalog.example", **page).status == 200
    assert target.request("GET", TABLE, **page).status == 403


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Forwarded-Proto", "gopher"),
        ("X-Forwarded-Proto", "HTTPS"),
        ("X-Forwarded-Host", "a/b"),
        ("X-Forwarded-Host", "a@b"),
        ("X-Forwarded-Host", "a b"),
        ("X-Forwarded-Host", ""),
        ("X-Forwarded-Prefix", "//evil.example"),
        ("X-Forwarded-Prefix", "/a/../b"),
        ("X-Forwarded-Prefix", "/a%2e"),
        ("X-Forwarded-Prefix", "a"),
    ],
)
def test_what_cannot_be_read_is_refused(guarded: Target, name: str, value: str) -> None:
    answered = guarded.request("GET", TABLE, **{name: value}, **guarded.token)
    assert answered.status == 400
    assert name.lower() in json.loads(answered.body)["error"]["message"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_target(tmp_path_factory.mktemp("guarded"), f"{TRUSTED}\n{TOKEN}") as target:
        yield target


def test_a_client_of_a_proxy_on_this_machine_is_not_this_machine(start_target: StartTarget) -> None:
    """Reasons of a warehouse that is down are for this machine alone."""
    target = start_target(TRUSTED)
    assert "checks" in json.loads(target.request("GET", "/health/ready").body)
    by_proxy = target.request("GET", "/health/ready", X_Forwarded_Proto="https")
    assert "checks" not in json.loads(by_proxy.body)


def test_a_server_behind_gets_none_of_it(tmp_path: Path) -> None:
    def reply(received: Received) -> Reply:
        return answer(body=b'{"defaults":{},"overrides":{}}')

    with faulty_upstream(reply) as upstream, bridge_over(upstream.url, tmp_path / "bridge") as server:
        headers = {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
        requests.get(f"{server.url}/v1/main/of-another-kind", headers=headers, timeout=60)
        names = {name for received in upstream.requests for name, _ in received.headers}
    assert upstream.requests
    assert not {name for name in names if "forwarded" in name}
