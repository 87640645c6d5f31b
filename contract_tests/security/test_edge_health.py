"""Probes are answered at once whatever a warehouse does, and tell strangers no more than names."""

import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from contract_tests.security.target import Answer, Target, running_target
from contract_tests.upstream.faulty import Received, Reply, faulty_upstream, refusing
from contract_tests.upstream.replies import answer, in_turn, never
from contract_tests.worlds.bridge import Server

READY = "/health/ready"
LIVE = "/health/live"
USER_INFO = "some-user:Pass-Word-1"
AT_ONCE_S = 1
"""For an answer that waits for nobody, on a busy machine."""
LATE_S = 60


def lake(url: str, name: str = "lake") -> str:
    """Without the look for purged files, which is another request."""
    uri = url.replace("://", f"://{USER_INFO}@")
    return f'[warehouses.{name}]\nbackend = "irc"\nuri = "{uri}"\npurge_after = "never"\n'


def never_said(received: Received) -> Reply:
    return never()


def up(received: Received) -> Reply:
    return answer(body=b'{"defaults":{},"overrides":{}}')


def ready(target: Target, **headers: str) -> tuple[int, dict[str, Any]]:
    given = target.request("GET", READY, **headers)
    return given.status, json.loads(given.body)


def when_ready(target: Target, is_wanted: Callable[[dict[str, Any]], bool]) -> tuple[int, dict[str, Any]]:
    """The first answer that is wanted."""
    deadline = time.monotonic() + LATE_S
    while not is_wanted((given := ready(target))[1]):
        assert time.monotonic() < deadline, given
        time.sleep(0.2)
    return given


def test_one_that_hangs_leaves_the_server_in_rotation_and_holds_up_nobody(tmp_path: Path) -> None:
    with (
        faulty_upstream(never_said) as upstream,
        running_target(tmp_path, "", more=lake(upstream.url)) as target,
    ):
        started = time.monotonic()
        status, content = ready(target)
        assert time.monotonic() - started < AT_ONCE_S + 2, "the first waits for two seconds"
        assert (status, content["status"], content["down"]) == (200, "degraded", ["lake"])
        with target.serves_others(), ThreadPoolExecutor(45) as probes:
            started = time.monotonic()
            answers = list(probes.map(lambda _: ready(target), range(90)))
            live = target.request("GET", LIVE)
            assert time.monotonic() - started < 2 * AT_ONCE_S
        assert {(status, content["status"]) for status, content in answers} == {(200, "degraded")}
        assert live.status == 200
        assert upstream.connections == 1, "there is one check"
        upstream.hang_up()


def test_where_none_answers_it_is_out_of_rotation(tmp_path: Path) -> None:
    (tmp_path / "irc-bridge.toml").write_text("")
    with refusing() as first, refusing() as second:
        (tmp_path / "irc-bridge.toml").write_text(lake(first) + lake(second, "ocean"))
        with Server("--port", "0", cwd=tmp_path) as server:
            given = requests.get(f"{server.url}{READY}", timeout=60)
            assert given.status_code == 503, "also the first answer is true"
            assert (given.json()["status"], given.json()["down"]) == ("down", ["lake", "ocean"])
            assert requests.get(f"{server.url}{LIVE}", timeout=60).status_code == 200
    assert USER_INFO.partition(":")[2] not in given.text + server.text()


def test_what_is_up_again_is_seen(tmp_path: Path) -> None:
    states = {"up": True}

    def handle(received: Received) -> Reply:
        return up(received) if states["up"] else answer(500, b"{}")

    with faulty_upstream(handle) as upstream, running_target(tmp_path, "", more=lake(upstream.url)) as target:
        assert ready(target) == (200, {"status": "up", "checks": [_up("lake"), _up("main")]})
        states["up"] = False
        assert when_ready(target, lambda content: content["status"] == "degraded")[1]["down"] == ["lake"]
        states["up"] = True
        assert when_ready(target, lambda content: content["status"] == "up")[0] == 200
        asked = len(upstream.requests)
        for _ in range(200):
            ready(target)
        assert len(upstream.requests) - asked < 20, "checks do not follow probes"


def test_a_check_that_begins_to_hang_is_noticed(tmp_path: Path) -> None:
    with (
        faulty_upstream(in_turn(answer(body=b'{"defaults":{},"overrides":{}}'), never())) as upstream,
        running_target(tmp_path, "", more=lake(upstream.url)) as target,
    ):
        assert ready(target)[1]["status"] == "up"
        content = when_ready(target, lambda content: content["status"] == "degraded")[1]
        assert "No answer for" in content["checks"][0]["reason"]
        upstream.hang_up()


class TestReasons:
    TOKEN = "a-token-of-the-bridge"

    def test_are_for_who_shows_the_token(self, tmp_path: Path) -> None:
        with (
            refusing() as url,
            running_target(tmp_path, f'token = "{self.TOKEN}"', more=lake(url)) as target,
        ):
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-Api-Key": self.TOKEN}):
                assert ready(target, **headers) == (200, {"status": "degraded", "down": ["lake"]})
            content = ready(target, **target.token)[1]
            self._names_the_server(content, url)

    def test_are_without_a_token_for_this_machine(self, tmp_path: Path) -> None:
        with (
            refusing() as url,
            running_target(tmp_path, "", "--host", "0.0.0.0", "--insecure", more=lake(url)) as target,
        ):
            self._names_the_server(ready(target)[1], url)
            with socket.create_connection((_address_of_this_machine(), target.address[1]), 60) as connection:
                if connection.getsockname()[0].startswith("127."):
                    pytest.skip("this machine has no address but that of loopback")
                connection.sendall(f"GET {READY} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                said = b"".join(iter(lambda: connection.recv(1 << 16), b""))
            assert json.loads(said.partition(b"\r\n\r\n")[2]) == {"status": "degraded", "down": ["lake"]}

    def _names_the_server(self, content: dict[str, Any], url: str) -> None:
        check = next(each for each in content["checks"] if each["name"] == "lake")
        assert check["status"] == "down"
        assert url.removeprefix("http://") in check["reason"]
        assert USER_INFO not in json.dumps(content) and "Pass" not in json.dumps(content)


def test_no_password_of_a_url_is_in_an_error(tmp_path: Path) -> None:
    with refusing() as url, running_target(tmp_path, "", more=lake(url)) as target:
        said: list[Answer] = []
        for path in ("/v1/lake/namespaces", "/v1/config?warehouse=lake", "/v1/lake/namespaces/a/tables/t"):
            said.append(target.request("GET", path))
        said.append(target.request("POST", "/lance/lake/v1/table/a%24t/describe"))
        said.append(target.request("GET", "/lance/lake/v1/namespace/a/list"))
        assert {each.status for each in said} <= {502, 503, 504}
        for each in said:
            assert url.removeprefix("http://").encode() in each.body, "it says which server"
            assert b"Pass" not in each.body and b"some-user" not in each.body
        assert "Pass-Word" not in target.server.text()


def _up(name: str) -> dict[str, str]:
    return {"name": name, "status": "up"}


def _address_of_this_machine() -> str:
    addresses = [
        each.address
        for found in psutil.net_if_addrs().values()
        for each in found
        if each.family == socket.AF_INET and not each.address.startswith("127.")
    ]
    return addresses[0] if addresses else "127.0.0.1"
