"""`irc-bridge health`, by which a container tells whether it is well."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract_tests.cli.conftest import Run
from contract_tests.conftest import Start
from contract_tests.upstream.faulty import Received, Reply, faulty_upstream, refusing
from contract_tests.upstream.replies import answer
from contract_tests.worlds.process import free_port

LAKE = '[warehouses.lake]\nbackend = "irc"\nuri = "{url}"\npurge_after = "never"\n'


@pytest.fixture
def down() -> Iterator[str]:
    """The address of a server that takes no connection."""
    with refusing() as url:
        yield url


def test_a_server_that_is_up(run: Run, start: Start) -> None:
    url = start().url
    done = run("health", url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "up\n", "")
    done = run("health", f"{url}/", "--output", "json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "up")


def test_one_with_a_token_needs_none_for_this(run: Run, start: Start) -> None:
    server = start(environment={"IRC_BRIDGE__SERVER__TOKEN": "0123456789"})
    done = run("health", server.url, "--output", "json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"status": "up"})


def test_one_of_two_warehouses_is_enough(run: Run, start: Start, down: str) -> None:
    server = start(LAKE.format(url=down) + '[warehouses.main]\nroot = "."\n')
    done = run("health", server.url)
    assert done.returncode == 0
    assert done.stdout.startswith("degraded; lake: ")
    assert down.removeprefix("http://") in done.stdout


def test_without_a_warehouse_that_is_up_it_is_not_ready(run: Run, start: Start, down: str) -> None:
    server = start(LAKE.format(url=down))
    done = run("health", server.url, "--output", "json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["status"], said["down"]) == (1, "down", ["lake"])


def test_where_nobody_listens(run: Run) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = run("health", url)
    assert done.returncode == 1
    assert done.stdout.startswith(f"unreachable; {url} does not answer: ")
    assert json.loads(run("health", url, "--output", "json").stdout)["status"] == "unreachable"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"status": 7}', b'{"status": "UP"}'])
def test_another_server_is_not_ready(run: Run, body: bytes) -> None:
    def reply(received: Received) -> Reply:
        return answer(body=body)

    with faulty_upstream(reply) as other:
        assert run("health", other.url).returncode == 1


def test_no_proxy_is_asked(run: Run, start: Start) -> None:
    proxy = f"http://127.0.0.1:{free_port()}"
    assert run("health", start().url, http_proxy=proxy, HTTP_PROXY=proxy, no_proxy="").returncode == 0


@pytest.mark.parametrize("url", ["127.0.0.1:8181", "file:///etc/passwd", ""])
def test_what_is_no_address_is_refused(run: Run, url: str, tmp_path: Path) -> None:
    done = run("health", url)
    assert done.returncode == 1
    assert "starts with http://" in done.stderr
