"""What the settings of a server mean for the Lance protocol."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from contract_tests.conftest import Start
from contract_tests.lance.client import ROWS, Body, Lance, ipc, ok, refused
from contract_tests.worlds.world import COMPATIBLE
from irc_bridge.cli.engines import ENGINES, Connection

CHANGES: list[tuple[str, Body]] = [
    ("namespace/n/create", {}),
    ("namespace/n/drop", {}),
    ("table/t/declare", {}),
    ("table/t/create", ipc(ROWS)),
    ("table/t/register", {"location": "t.lance"}),
    ("table/t/drop", None),
    ("table/t/deregister", {}),
    ("table/t/rename", {"new_table_name": "u"}),
    ("table/t/schema_metadata/update", {}),
    ("table/t/version/create", {"version": 2, "manifest_path": "x"}),
    ("table/t/version/delete", {"ranges": []}),
    ("table/version/batch-create", {"entries": []}),
    ("table/t/tags/create", {"tag": "x", "version": 1}),
    ("table/t/tags/update", {"tag": "x", "version": 1}),
    ("table/t/tags/delete", {"tag": "x"}),
]


def test_several_warehouses(start: Start, tmp_path: Path) -> None:
    folders = "".join(f'[warehouses.{each}]\nroot = "{tmp_path / each}"\n' for each in ("v1", "two"))
    with start(folders) as server:
        banner = server.wait_for(lambda line: "Ctrl-C" in line) and server.text()
        assert f"{server.url}/lance/WAREHOUSE" in banner
        for warehouse in ("v1", "two"):
            with Lance(server.url, warehouse) as client:
                ok(client.table([f"in_{warehouse}"], "declare", {}))
                assert ok(client.get("table"))["tables"] == [f"in_{warehouse}"]
        with Lance(server.url) as client:
            refused(client.get("table"), 400, 13, "two")


def test_a_read_only_warehouse_refuses_every_change(start: Start, tmp_path: Path) -> None:
    read_only = COMPATIBLE.configuration(tmp_path / "tables", "read_only = true\n")
    with start(read_only) as server, Lance(server.url) as client:
        for path, body in CHANGES:
            refused(client.post(path, body), 403, 15, "read-only")
        assert ok(client.get("table")) == {"tables": []}


@pytest.mark.parametrize("engine", ["pylance", "lancedb"])
def test_what_connect_prints_works_with_a_token(start: Start, tmp_path: Path, engine: str) -> None:
    with (
        start("[server]\ntoken = 'secret'\n" + COMPATIBLE.configuration(tmp_path / "tables")) as server,
        Lance(server.url, **{"x-api-key": "secret"}) as client,
    ):
        ok(client.create(["t"]))
        snippet = ENGINES[engine](Connection(server.url, "main", has_token=True)).text
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", snippet],
            env={**os.environ, "IRC_BRIDGE_TOKEN": "secret"},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "['t']"
    assert done.stdout.splitlines()[-1] == "3"


def test_a_token_covers_it(start: Start, tmp_path: Path) -> None:
    with start("[server]\ntoken = 'secret'\n" + COMPATIBLE.configuration(tmp_path / "tables")) as server:
        for headers in ({}, {"Authorization": "Bearer other"}, {"x-api-key": "other"}):
            with Lance(server.url, **headers) as client:
                response = client.get("table")
                refused(response, 401, 16, "token")
                assert response.headers["www-authenticate"] == "Bearer"
        for headers in ({"Authorization": "Bearer secret"}, {"x-api-key": "secret"}):
            with Lance(server.url, **headers) as client:
                assert ok(client.get("table")) == {"tables": []}
        # the key is a way of the Lance protocol only
        config = requests.get(f"{server.url}/v1/config", headers={"x-api-key": "secret"}, timeout=30)
        assert config.status_code == 401
        assert config.json()["error"]["type"] == "NotAuthorizedException"


def test_bodies_have_limits(start: Start, tmp_path: Path) -> None:
    limits = "[server]\nmax_body_bytes = 400\nmax_create_body_bytes = 5000\n"
    with start(limits + COMPATIBLE.configuration(tmp_path / "tables")) as server, Lance(server.url) as client:
        refused(client.table(["t"], "declare", {"properties": {"a": "x" * 400}}), 413, 13, "400")
        assert len(ipc(ROWS)) > 400
        ok(client.create(["t"]))
        refused(client.table(["u"], "create", b"x" * 5001), 413, 13, "5000")
