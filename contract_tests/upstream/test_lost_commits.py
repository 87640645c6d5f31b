"""Commits through the bridge to a real server, on a way that loses requests and answers: what was acknowledged is
in, what was refused is not, and nothing is in twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from threading import Lock
from typing import Any

import lance
import pyarrow as pa
import pytest
import requests
from lance.namespace import RestNamespace

from contract_tests.upstream.faulty import Received, Reply, Upstream, faulty_upstream
from contract_tests.upstream.replies import close, done_but, done_but_half, error, reset
from contract_tests.worlds.bridge import SCHEMA, Server, assert_ok
from contract_tests.worlds.upstream import bridge_over
from contract_tests.worlds.world import UpstreamWorld

COMMITS = 60
FAULTS = [
    None,
    done_but(close()),
    None,
    close(),
    done_but_half(),
    reset(),
    done_but(reset()),
    error(503, "ServiceUnavailableException", [("Retry-After", "1")]),
    done_but(error(504, "Timeout")),
]
UNKNOWN = "CommitStateUnknownException"


@contextmanager
def unreliable(upstream: UpstreamWorld, folder: Path) -> Iterator[tuple[Server, Upstream]]:
    """The bridge, before the real server, with faults in the way of commits."""
    faults, lock = cycle(FAULTS), Lock()

    def handle(received: Received) -> Reply | None:
        is_commit = received.method == "POST" and b'"updates"' in received.body
        with lock:
            return next(faults) if is_commit else None

    with (
        faulty_upstream(handle, behind=upstream.url) as way,
        bridge_over(way.url, folder, 'default_managed_by = "impl"\n') as server,
    ):
        yield server, way


@pytest.fixture
def namespace(upstream: UpstreamWorld, name: str) -> str:
    body = {"namespace": [f"lost_{name}"], "properties": {}}
    assert_ok(requests.post(f"{upstream.url}/v1/namespaces", json=body, timeout=60))
    return f"lost_{name}"


def test_of_an_iceberg_table(upstream: UpstreamWorld, namespace: str, tmp_path: Path) -> None:
    with unreliable(upstream, tmp_path) as (server, way):
        tables = f"{server.url}/v1/main/namespaces/{namespace}/tables"
        made = assert_ok(requests.post(tables, json={"name": "t", "schema": SCHEMA}, timeout=60))
        said: dict[str, str] = {}
        for number in range(COMMITS):
            said[f"k{number}"] = _outcome(_set_property(tables, made, f"k{number}"))
        sent = [each.body for each in way.of("POST") if b'"updates"' in each.body]
        now = assert_ok(requests.get(f"{tables}/t", timeout=60))["metadata"]["properties"]
    assert len(sent) == len(set(sent)) == COMMITS, "a commit is sent once"
    assert all(key in now for key in said if said[key] == "done")
    assert not any(key in now for key in said if said[key] == "not done")
    assert {"done", "not done", "unknown"} == set(said.values()), "each of them came about"


def _set_property(tables: str, made: dict[str, Any], key: str) -> requests.Response:
    same = {"type": "assert-table-uuid", "uuid": made["metadata"]["table-uuid"]}
    body = {"requirements": [same], "updates": [{"action": "set-properties", "updates": {key: "1"}}]}
    return requests.post(f"{tables}/t", json=body, timeout=60)


def _outcome(answered: requests.Response) -> str:
    if answered.status_code == 200:
        return "done"
    if answered.status_code == 503 and "retry-after" in answered.headers:
        return "not done"
    assert answered.status_code in (502, 504), answered.text
    return "unknown"


def test_of_a_lance_table(upstream: UpstreamWorld, namespace: str, tmp_path: Path) -> None:
    """Where the bridge can look at what became of a commit, it does: hardly anything stays unknown."""
    acknowledged = set()
    with unreliable(upstream, tmp_path) as (server, _):
        client = RestNamespace(uri=f"{server.url}/lance")
        where: dict[str, Any] = {"namespace_client": client, "table_id": [namespace, "t"]}
        for number in range(COMMITS):
            mode = "create" if number == 0 else "append"
            try:
                lance.write_dataset(pa.table({"id": [number]}), mode=mode, **where)
            except OSError:
                continue
            acknowledged.add(number)
        rows = lance.dataset(**where).to_table()["id"].to_pylist()
        versions = lance.dataset(**where).version
    assert len(rows) == len(set(rows)) == versions, "every version is one commit"
    assert acknowledged <= set(rows)
    assert len(acknowledged) > COMMITS / 3
