import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import lance
import psutil
import pyarrow as pa
import pytest
import requests

from contract_tests.conftest import Start
from contract_tests.worlds.bridge import Server

END_SECONDS = 8.0
"""A server gives requests 2 seconds; the rest is for a busy machine."""
STORAGE_AT = """
[warehouses.main]
root = "s3://bucket/tables"
manifest_enabled = false
storage.endpoint = "http://127.0.0.1:{port}"
storage.allow_http = true
storage.region = "us-west-2"
storage.access_key_id = "some"
storage.secret_access_key = "some"
"""
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


@contextmanager
def connection(server: Server) -> Iterator[socket.socket]:
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 30) as opened:
        yield opened


def get(server: Server, path: str, **more: str) -> requests.Response:
    return requests.get(f"{server.url}{path}", timeout=30, headers=more)


def write_table(root: Path, name: str = "t") -> Path:
    lance.write_dataset(pa.table({"id": [1]}), root / f"{name}.lance")
    return root / f"{name}.lance"


def ends_by(server: Server, number: signal.Signals) -> None:
    workers = psutil.Process(server.process.pid).children(recursive=True)
    started = time.monotonic()
    server.process.send_signal(number)
    assert server.process.wait(30) == 0, server.text()
    assert time.monotonic() - started < END_SECONDS
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert [each for each in alive if each.status() != psutil.STATUS_ZOMBIE] == []
    server.stop()
    assert "Traceback" not in server.text()


def test_a_folder_is_served_as_main(start: Start, tmp_path: Path) -> None:
    write_table(tmp_path / "tables")
    server = start(arguments=(str(tmp_path / "tables"),))
    banner = server.wait_for(lambda line: "Ctrl-C" in line) and server.text()
    assert f"warehouse main: {tmp_path / 'tables'}" in banner
    assert f"Lance REST namespace at {server.url}/lance\n" in banner
    assert "access: open" in banner
    assert f"irc-bridge connect pyiceberg --port {urlsplit(server.url).port}" in banner
    tables = get(server, "/v1/main/namespaces/default/tables").json()
    assert tables["identifiers"] == [{"namespace": ["default"], "name": "t"}]


def test_without_root_and_file_the_folder_warehouse_is_made(start: Start, tmp_path: Path) -> None:
    server = start()
    assert get(server, "/v1/config").json()["overrides"]["prefix"] == "main"
    assert (tmp_path / "server0" / "warehouse").is_dir()


def test_a_relative_root_is_below_the_current_folder(start: Start, tmp_path: Path) -> None:
    server = start('[warehouses.main]\nroot = "here"\n')
    folder = tmp_path / "server0" / "here"
    write_table(folder)
    assert get(server, "/v1/main/namespaces/default/tables").json()["identifiers"]
    assert str(folder) in server.text()


def test_several_warehouses(start: Start, tmp_path: Path) -> None:
    write_table(tmp_path / "b")
    server = start(f'[warehouses.one]\nroot = "{tmp_path}/a"\n[warehouses.two]\nroot = "{tmp_path}/b"\n')
    assert get(server, "/v1/one/namespaces/default/tables").json()["identifiers"] == []
    assert len(get(server, "/v1/two/namespaces/default/tables").json()["identifiers"]) == 1


def test_root_beside_a_file_with_warehouses_is_refused(start: Start) -> None:
    server = start('[warehouses.main]\nroot = "a"\n', arguments=("b",))
    assert "ROOT (b) was given" in server.refused()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Server("--port", str(port), cwd=tmp_path) as server:
            said = server.refused()
    assert server.process.returncode == 1
    assert said.count("\n") == 1
    assert f"Port {port} on 127.0.0.1 is taken" in said
    assert "--port" in said
    assert "PORT=" in said
    assert not (tmp_path / "warehouse").exists()


def test_a_host_that_is_not_here_is_refused(start: Start) -> None:
    said = start(arguments=("--host", "192.0.2.1", "--insecure")).refused()
    assert "Cannot listen on 192.0.2.1" in said
    assert "Traceback" not in said


def test_others_reach_a_server_only_with_a_token_or_insecure(start: Start) -> None:
    said = start(arguments=("--host", "0.0.0.0")).refused()
    assert "--insecure" in said
    assert "IRC_BRIDGE__SERVER__TOKEN" in said
    open_server = start(arguments=("--host", "0.0.0.0", "--insecure"))
    assert get(open_server, "/v1/config").status_code == 200
    assert "warning: everybody" in open_server.text()
    closed = start(arguments=("--host", "0.0.0.0"), environment={"IRC_BRIDGE__SERVER__TOKEN": "0123456789"})
    assert get(closed, "/v1/config").status_code == 401
    assert get(closed, "/v1/config", Authorization="Bearer 0123456789").status_code == 200
    assert "access: bearer token" in closed.text()
    assert "0123456789" not in closed.text()


def test_log_lines_go_to_stdout(start: Start) -> None:
    """There whoever runs a container looks for them."""
    server = start(prefix=("sh", "-c", 'exec "$@" 2>/dev/null', "sh"))
    assert get(server, "/v1/config").status_code == 200
    assert " 200 " in server.wait_for(lambda line: "GET /v1/config" in line)


def test_an_answer_arrives_in_one_piece(start: Start) -> None:
    """Whose head comes alone wakes its client twice."""
    parts = urlsplit(start().url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 30) as connection:
        for _ in range(50):
            connection.sendall(b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head, _, body = connection.recv(1 << 20).partition(b"\r\n\r\n")
            assert b"content-length: %d" % len(body) in head.lower()
            assert body


def test_the_limit_of_a_body_is_a_setting(start: Start) -> None:
    server = start("[server]\nmax_body_bytes = 10\n")
    answer = requests.post(f"{server.url}/v1/main/namespaces", json={"namespace": ["too long"]}, timeout=30)
    assert answer.status_code == 413


def test_a_child_namespace_that_is_named_like_the_root_namespace_is_refused(start: Start) -> None:
    configuration = '[warehouses.main]\nroot = "../tables"\nroot_namespace = "top"\n'
    server = start(configuration)
    made = requests.post(f"{server.url}/v1/main/namespaces", json={"namespace": ["sales"]}, timeout=30)
    assert made.status_code == 200
    said = start(configuration.replace("top", "sales")).refused()
    assert "warehouses.main.root_namespace" in said
    assert "'sales'" in said


@WORKERS
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_while_a_body_is_under_way(start: Start, workers: str, number: signal.Signals) -> None:
    server = start(arguments=("--workers", workers))
    with connection(server) as half:
        half.sendall(
            b"POST /v1/main/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Expect: 100-continue\r\nContent-Length: 99\r\n\r\n{"
        )
        assert half.recv(100).startswith(b"HTTP/1.1 100")  # the application waits for the rest
        ends_by(server, number)


@WORKERS
def test_it_ends_while_a_storage_call_hangs(start: Start, workers: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        server = start(STORAGE_AT.format(port=silent.getsockname()[1]), arguments=("--workers", workers))
        with connection(server) as waiting:
            waiting.sendall(b"GET /v1/main/namespaces/default/tables/t HTTP/1.1\r\nHost: localhost\r\n\r\n")
            call, _ = silent.accept()
            with call:
                assert call.recv(100)  # it waits for an answer from now on
                ends_by(server, signal.SIGINT)


def workers_of(server: Server) -> list[psutil.Process]:
    assert server.url
    children = psutil.Process(server.process.pid).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def test_it_ends_while_a_worker_hangs(start: Start) -> None:
    server = start(arguments=("--workers", "2"))
    workers_of(server)[0].suspend()
    ends_by(server, signal.SIGINT)


@WORKERS
def test_it_ends_by_the_ctrl_c_of_a_terminal(start: Start, workers: str) -> None:
    server = start(arguments=("--workers", workers))
    assert get(server, "/health/live").status_code == 200
    os.killpg(server.process.pid, signal.SIGINT)  # a terminal tells every process
    assert server.process.wait(30) == 0
    server.stop()
    assert "Traceback" not in server.text()


def test_two_workers_share_the_port(start: Start, tmp_path: Path) -> None:
    write_table(tmp_path / "tables")
    server = start(arguments=(str(tmp_path / "tables"), "--workers", "2"))
    assert len(workers_of(server)) == 2
    answers = [get(server, "/v1/main/namespaces/default/tables/t") for _ in range(20)]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1


def test_a_worker_that_dies_is_replaced(start: Start) -> None:
    server = start(arguments=("--workers", "2"))
    first, second = workers_of(server)
    first.kill()
    psutil.wait_procs([first], timeout=30)
    for _ in range(20):
        assert get(server, "/v1/config").status_code == 200
    assert second in workers_of(server)
