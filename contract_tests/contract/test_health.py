import re
import shutil
import socket
import time
from pathlib import Path

import pytest
import requests

from contract_tests.conftest import Start
from contract_tests.contract.test_config import two_warehouses
from contract_tests.worlds.bridge import SECONDS, Client, raw_request
from contract_tests.worlds.world import ONE_WORLD, Bridge


def after_the_next_check(client: Client, status: str) -> requests.Response:
    """The answer once a check has seen what changed."""
    deadline = time.monotonic() + SECONDS
    while (response := client.get("/health/ready")).json()["status"] != status:
        assert time.monotonic() < deadline, response.text
        time.sleep(0.1)
    return response


class TestHealth:
    def test_live(self, client: Client) -> None:
        assert client.get("/health/live").status_code == 200

    def test_ready_names_every_warehouse(self, client: Client) -> None:
        response = client.get("/health/ready")
        assert response.status_code == 200
        assert [check["name"] for check in response.json()["checks"]] == ["main"]

    def test_not_ready_says_which_and_why(self, start: Start, tmp_path: Path) -> None:
        with start(two_warehouses(tmp_path)).client("east") as client:
            client.create_table(("default",), "t")
            assert client.get("/health/ready").status_code == 200
            shutil.rmtree(tmp_path / "west", ignore_errors=True)
            (tmp_path / "west").write_text("no folder")
            response = after_the_next_check(client, "degraded")
            assert response.status_code == 200, "one of two answers"
            assert response.json()["down"] == ["west"]
            checks = {check.pop("name"): check for check in response.json()["checks"]}
            assert set(checks) == {"east", "west"}
            assert checks["east"] != checks["west"]
            assert any(len(str(value).split()) > 2 for value in checks["west"].values())
            assert client.get("/health/live").status_code == 200
            assert client.tables(("default",)) == ["t"]


class TestEnd:
    """Ctrl-C ends the server within seconds; every fixture that starts one checks it too."""

    @pytest.mark.parametrize("workers", ["1", "2"])
    def test_requests_under_way_included(self, start: Start, tmp_path: Path, workers: str) -> None:
        server = start(arguments=(str(tmp_path / "tables"), "--workers", workers))
        half = b"POST /v1/main/namespaces HTTP/1.1\r\nHost: localhost\r\n"
        half += b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        address = ("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
        with server.client() as client, socket.create_connection(address) as connection:
            assert client.get("namespaces").status_code == 200
            connection.sendall(half)
            assert client.get("namespaces").status_code == 200
            assert server.stop(), server.text()
        assert server.process.returncode in (0, 130)
        assert "Traceback" not in server.text()


@ONE_WORLD
class TestRequestId:
    def test_what_comes_in_goes_out_and_into_the_log(self, bridge: Bridge, name: str) -> None:
        response = bridge.client.get("namespaces", headers={"X-Request-ID": f"mine-{name}"})
        assert response.headers["X-Request-ID"] == f"mine-{name}"
        line = bridge.server.wait_for(lambda line: f"mine-{name}" in line)
        assert "GET" in line and "/v1/main/namespaces" in line and "200" in line

    def test_without_one_it_is_made(self, bridge: Bridge) -> None:
        ids = [bridge.client.get("namespaces").headers["X-Request-ID"] for _ in range(2)]
        assert ids[0] != ids[1] and all(ids)
        for each in ids:
            bridge.server.wait_for(lambda line, each=each: each in line)  # type: ignore[misc]

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/v1/nowhere/namespaces", 404),
            ("PUT", "/v1/main/namespaces", 405),
            ("HEAD", "/v1/main/namespaces/none", 404),
            ("GET", "/nothing", 404),
            ("GET", "/health/live", 200),
        ],
    )
    def test_on_every_answer(self, bridge: Bridge, name: str, method: str, path: str, status: int) -> None:
        headers = {"X-Request-ID": f"any-{name}"}
        response = bridge.client.request(method, path, headers=headers)
        assert (response.status_code, response.headers["X-Request-ID"]) == (status, f"any-{name}")

    @pytest.mark.parametrize(
        "sent", [b"x" * 5000, b"\xff\xfe", b"a b", b"a\tb", b"\x1b[31mred", b"", "é".encode(), b'a" status=500 "']
    )
    def test_odd_ones_do_no_harm(self, bridge: Bridge, sent: bytes) -> None:
        with raw_request(bridge.server.url, b"GET /health/live HTTP/1.1\r\nX-Request-ID: " + sent) as response:
            answered = response.headers["X-Request-ID"]
            response.read()
        if response.status == 200:
            assert answered and len(answered) < 1000
            bridge.server.wait_for(lambda line: answered in line)
        assert not re.search(r"[\x00-\x08\x0b-\x1f]", bridge.server.text())

    def test_a_log_line_is_one_line(self, bridge: Bridge, name: str) -> None:
        bridge.client.get(f"namespaces/{name}%0Aforged%20line")
        bridge.server.wait_for(lambda line: name in line and "forged" in line)
        assert not any(line.startswith("forged") for line in bridge.server.log)


@ONE_WORLD
class TestLogLine:
    """It names the operation, the warehouse and the principal, as far as the request came."""

    @pytest.mark.parametrize(
        ("method", "path", "fields"),
        [
            ("GET", "namespaces", "operation=listNamespaces warehouse=main"),
            ("GET", "/v1/config?warehouse=main", "operation=getConfig warehouse=main"),
            ("GET", "/v1/nowhere/namespaces", "operation=listNamespaces"),
            ("GET", "/lance/v1/namespace/%24/list", "operation=ListNamespaces warehouse=main"),
            ("GET", "/nothing", ""),
            ("GET", "/health/live", ""),
        ],
    )
    def test_its_fields(self, bridge: Bridge, name: str, method: str, path: str, fields: str) -> None:
        bridge.client.request(method, path, headers={"X-Request-ID": f"line-{name}"})
        line = bridge.server.wait_for(lambda line: f"line-{name}" in line)
        assert line.rstrip().partition("ms")[2].strip() == fields

    def test_a_cached_load_has_the_same(self, bridge: Bridge, name: str) -> None:
        bridge.client.create_namespace(name)
        bridge.client.create_table((name,), "t")
        path = f"namespaces/{name}/tables/t"
        for step in range(3):
            assert bridge.client.get(path, headers={"X-Request-ID": f"load-{step}-{name}"}).status_code == 200
            line = bridge.server.wait_for(lambda line, step=step: f"load-{step}-{name}" in line)  # type: ignore[misc]
            assert line.rstrip().endswith("ms operation=loadTable warehouse=main")


def test_the_principal_is_in_the_log_line(start: Start) -> None:
    server = start(environment={"IRC_BRIDGE__SERVER__TOKEN": "0123456789"})
    with server.client(token="0123456789") as client:
        client.get("namespaces", headers={"X-Request-ID": "with"})
    requests.get(f"{server.url}/v1/config", headers={"X-Request-ID": "without"}, timeout=SECONDS)
    line = server.wait_for(lambda line: "with " in line and "/v1/" in line)
    assert line.rstrip().endswith("operation=listNamespaces warehouse=main principal=token")
    assert "principal" not in server.wait_for(lambda line: "without" in line)
