"""Purged tables of a warehouse without `allowed_locations`: each comes back from the place that it had, and a note
that somebody writes straight into the server behind reaches no other table."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import lance
import pytest
import requests

from contract_tests.worlds.bridge import Server, assert_ok
from contract_tests.worlds.upstream import bridge_over
from contract_tests.worlds.world import UpstreamWorld
from contract_tests.worlds.writer import rows

ICEBERG_SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
NOTES = "irc_bridge"
"""The namespace in which the bridge keeps its notes."""


@pytest.fixture
def server(upstream: UpstreamWorld, tmp_path: Path) -> Iterator[Server]:
    with bridge_over(upstream.url, tmp_path / "bridge") as server:
        yield server


def register(server: Server, namespace: str, name: str, location: str) -> requests.Response:
    url = f"{server.url}/v1/main/namespaces/{namespace}/register"
    return requests.post(url, json={"name": name, "metadata-location": location}, timeout=60)


@pytest.mark.parametrize("name", ["t", "another"])
def test_it_comes_back_under_any_name(server: Server, table: tuple[str, str], name: str) -> None:
    namespace = table[0]
    requests.post(f"{server.url}/v1/main/namespaces", json={"namespace": [namespace]}, timeout=60)
    tables = f"{server.url}/v1/main/namespaces/{namespace}/tables"
    body = {"name": "t", "schema": ICEBERG_SCHEMA, "properties": {"table_type": "lance"}}
    before = assert_ok(requests.post(tables, json=body, timeout=60))["metadata"]
    lance.write_dataset(rows(2).select(["id"]), before["location"].removeprefix("file://"), mode="append")
    assert requests.delete(f"{tables}/t?purgeRequested=true", timeout=60).status_code == 204
    back = assert_ok(register(server, namespace, name, before["location"]))["metadata"]
    assert (back["location"], back["table-uuid"]) == (before["location"], before["table-uuid"])
    assert back["current-snapshot-id"] == 2
    assert lance.dataset(before["location"].removeprefix("file://")).count_rows() == 2


def test_a_forged_note(server: Server, upstream: UpstreamWorld, table: tuple[str, str], tmp_path: Path) -> None:
    """The table was deregistered by another program, whose marker is the same for all tables."""
    victim = tmp_path / "victim.lance"
    lance.write_dataset(rows(2), victim)
    (victim / ".lance-deregistered").write_text("reserved")
    place = victim.as_uri()
    note: dict[str, object] = {
        "table": [table[0], "t"],
        "place": place,
        "token": "reserved",
        "content": "",
        "uuid": "",
    }
    note |= {"purged_ms": 1, "due_ms": int(time.time() * 1000) - 1}
    key = "irc-bridge.purged." + blake2b(place.encode(), digest_size=16).hexdigest()
    requests.post(f"{upstream.url}/v1/namespaces", json={"namespace": [NOTES]}, timeout=60)
    properties = f"{upstream.url}/v1/namespaces/{NOTES}/properties"
    assert_ok(requests.post(properties, json={"updates": {key: json.dumps(note)}}, timeout=60))
    try:
        answered = register(server, table[0], "t", place)
        assert answered.status_code == 400, answered.text
        command = ["expire", "--all", "--config", str(tmp_path / "bridge" / "irc-bridge.toml")]
        ended = subprocess.run(
            [sys.executable, "-m", "irc_bridge", *command], capture_output=True, text=True, timeout=60
        )
        # all tests share the server behind: exit code 1 tells of tables that other tests damaged there
        assert ended.returncode in (0, 1) and "Aborted" not in ended.stderr, ended.stderr
        assert place not in ended.stdout + ended.stderr
        assert lance.dataset(victim).count_rows() == 2
    finally:
        requests.post(properties, json={"removals": [key], "updates": {}}, timeout=60)
