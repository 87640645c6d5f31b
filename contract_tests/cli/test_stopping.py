"""How a server ends: at once when it is idle, without cutting requests off, and with nothing left behind."""

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from contract_tests.cli.test_serve import WORKERS, connection, get
from contract_tests.conftest import Start
from contract_tests.worlds.bridge import Server

AT_ONCE_S = 0.7
ATTEMPTS = 3
"""Other tests may keep the machine busy."""
HEAD = (
    b"POST /v1/main/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Expect: 100-continue\r\nContent-Length: 20\r\n\r\n"
)


def half_sent(server: Server, number: int) -> tuple[socket.socket, bytes]:
    """A connection with a request whose handler waits for the rest of its body, and that rest."""
    body = b'{"namespace":["n%03d"]}' % number
    opened = socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1])), 30)
    opened.sendall(HEAD.replace(b"20", b"%d" % len(body)) + body[:5])
    assert opened.recv(100).startswith(b"HTTP/1.1 100")
    return opened, body[5:]


def temporary_folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("irc-bridge-*"))


def test_sighup_cuts_no_request_off(start: Start) -> None:
    server = start()
    halves = [half_sent(server, number) for number in range(8)]
    server.process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    for opened, rest in halves:
        with opened:
            opened.sendall(rest)
            assert opened.recv(1000).startswith(b"HTTP/1.1 200")
    assert get(server, "/health/live").status_code == 200


@WORKERS
def test_an_idle_server_ends_at_once(start: Start, workers: str) -> None:
    times = []
    for _ in range(ATTEMPTS):
        server = start(arguments=("--workers", workers))
        with connection(server) as idle:
            idle.sendall(b"GET /v1/main/namespaces HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert idle.recv(1000).startswith(b"HTTP/1.1 200")
            started = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(30) == 0
            times.append(time.monotonic() - started)
        if times[-1] < AT_ONCE_S:
            return
    pytest.fail(f"it took {times} seconds")


@WORKERS
def test_a_second_ctrl_c_ends_it_without_a_traceback(start: Start, workers: str) -> None:
    server = start(arguments=("--workers", workers))
    opened, _ = half_sent(server, 0)
    with opened:
        for _ in range(2):
            os.killpg(server.process.pid, signal.SIGINT)  # a terminal tells every process
            time.sleep(0.3)
        started = time.monotonic()
        assert server.process.wait(30) == 0, server.text()
        assert time.monotonic() - started < 1.5, "it does not wait for the request"
    server.stop()
    assert "Traceback" not in server.text()


def test_a_client_that_pipelines_and_leaves(start: Start) -> None:
    server = start()
    listed = b"GET /v1/main/namespaces HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for last in (listed, HEAD + b"{", b"no request\r\n\r\n"):
        for pause in (0, 0.005):
            with connection(server) as pipelined:
                pipelined.sendall(listed * 20 + last)
                time.sleep(pause)
    assert get(server, "/health/live").status_code == 200
    assert server.stop()
    assert "Traceback" not in server.text()


@WORKERS
def test_the_next_start_removes_what_a_killed_server_left(start: Start, tmp_path: Path, workers: str) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    more = {"arguments": ("--workers", workers), "environment": {"TMPDIR": str(folder)}}
    living, killed = start(**more), start(**more)
    assert living.url and killed.url
    before = temporary_folders(folder)
    assert len(before) == 2
    killed.kill()
    assert temporary_folders(folder) == before
    assert start(**more).url
    after = temporary_folders(folder)
    assert len(after) == 2
    assert len(set(after) & set(before)) == 1, "the folder of a living server stays"
    assert living.stop()
    assert len(temporary_folders(folder)) == 1
