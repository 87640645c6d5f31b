"""Bodies and queries that are made to take memory and time."""

import json
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from contract_tests.security.conftest import StartTarget
from contract_tests.security.target import TABLE, Target, read_answer
from contract_tests.worlds.bridge import SCHEMA

MIB = 1024 * 1024
MOST_MORE = 600 * MIB
ATTACK_S = 0.7
TABLES = "/v1/main/namespaces/default/tables"
NAMESPACES = "/v1/main/namespaces"
VERSIONS = "/lance/v1/table/t/version"
JSON = {"Content_Type": "application/json"}

COLUMN = {"id": 1, "name": "c", "type": "long", "required": False}
WIDE = {"type": "struct", "fields": [{**COLUMN, "id": n, "name": f"c{n}"} for n in range(1, 10_000)]}


def many(piece: str, start: str = "[", end: str = "]", size: int = 8 * MIB) -> bytes:
    """JSON of `size` bytes, full of the same."""
    room = size - len(start) - len(end)
    return (start + (piece + ",") * (room // (len(piece) + 1) - 1) + piece + end).encode()


def in_schema(piece: str, size: int = 8 * MIB) -> bytes:
    return many(piece, '{"name":"made","schema":{"type":"struct","fields":[', "]}}", size)


def in_updates(piece: str, size: int = 8 * MIB) -> bytes:
    return many(piece, '{"requirements":[],"updates":[', "]}", size)


HALF = 360_000
"""Bytes of `{},`: as many values as are taken at most."""
ATTACKS = {
    "20 MB": ("POST", TABLES, in_schema(json.dumps(COLUMN), 20 * MIB)),
    "empty lists": ("POST", TABLES, many("[]")),
    "numbers": ("POST", TABLES, many("1")),
    "columns": ("POST", TABLES, in_schema(json.dumps(COLUMN))),
    "columns that have the same name": ("POST", TABLES, in_schema(json.dumps(COLUMN), 2 * MIB)),
    "empty columns": ("POST", TABLES, in_schema("{}", HALF)),
    "columns in a column": (
        "POST",
        TABLES,
        many(
            "{}",
            '{"name":"made","schema":{"type":"struct","fields":[{"id":1,"name":"a","required":false,'
            '"type":{"type":"struct","fields":[',
            "]}}]}}",
            HALF,
        ),
    ),
    "empty updates": ("POST", TABLE, in_updates("{}", HALF)),
    "empty snapshots": ("POST", TABLE, in_updates('{"action":"add-snapshot"}', 3 * MIB)),
    "removals that are numbers": (
        "POST",
        TABLE,
        many("1", '{"requirements":[],"updates":[{"action":"remove-properties","removals":[', "]}]}", 490_000),
    ),
    "empty changes": ("POST", "/v1/main/transactions/commit", many("{}", '{"table-changes":[', "]}", HALF)),
    "levels that are numbers": ("POST", NAMESPACES, many("1", '{"namespace":[', "]}", 490_000)),
    "empty versions": ("POST", "/lance/v1/table/version/batch-create", many("{}", '{"entries":[', "]}", HALF)),
    "empty ranges": ("POST", f"{VERSIONS}/delete", many("{}", '{"ranges":[', "]}", HALF)),
    "a long id": ("POST", "/lance/v1/table/t/describe", many("1", '{"id":[', "]}", 490_000)),
    "depth": ("POST", TABLES, b"[" * (8 * MIB)),
    "depth of objects": ("POST", TABLE, b'{"a":' * (MIB)),
    "one long text": ("POST", "/lance/v1/table/t/describe", b'{"id":["%s"]}' % (b"x" * (8 * MIB - 30))),
}


@contextmanager
def little_memory(target: Target) -> Iterator[None]:
    """The process takes at most MOST_MORE bytes more meanwhile."""
    folder = Path(f"/proc/{target.process.pid}")
    (folder / "clear_refs").write_text("5")  # its peak begins anew
    before = target.process.memory_info().rss
    yield
    peak = next(line for line in (folder / "status").read_text().splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) * 1024 - before <= MOST_MORE


@pytest.mark.parametrize("name", ATTACKS)
def test_a_body_takes_little_memory_and_holds_up_nobody(target: Target, name: str) -> None:
    method, path, body = ATTACKS[name]
    with little_memory(target), target.serves_others():
        until = time.monotonic() + ATTACK_S
        while time.monotonic() < until:
            refused = target.request(method, path, body, **JSON)
            assert refused.status in (400, 413)
            assert len(refused.body) < 64 * 1024


def test_a_wide_table_is_made_and_holds_up_nobody(target: Target) -> None:
    made = json.dumps({"name": "wide", "schema": WIDE}).encode()
    with little_memory(target), target.serves_others():
        assert target.request("POST", TABLES, made, **JSON).status == 200
    loaded = json.loads(target.request("GET", f"{TABLES}/wide").body)
    assert len(loaded["metadata"]["schemas"][0]["fields"]) == len(WIDE["fields"])


@pytest.mark.parametrize(
    "path",
    [TABLES, TABLE, NAMESPACES, f"{NAMESPACES}/default/properties", f"{NAMESPACES}/default/register",
     "/v1/main/tables/rename", "/v1/main/transactions/commit", f"{TABLE}/metrics", "/lance/v1/table/t/describe",
     "/lance/v1/table/t/schema_metadata/update", f"{VERSIONS}/create", "/lance/v1/table/version/batch-create"],
)  # fmt: skip
def test_json_may_have_8_mib(target: Target, path: str) -> None:
    for size, status in ((8 * MIB, 400), (8 * MIB + 1, 413)):
        refused = target.request("POST", path, b" " * (size - 1) + b"x", **JSON)
        assert refused.status == status
    assert str(8 * MIB).encode() in refused.body


def nested(levels: int) -> Any:
    inner: Any = "int"
    for n in range(levels):
        inner = {"type": "list", "element-id": n + 100, "element": inner, "element-required": False}
    column = {"id": 1, "name": "c", "type": inner, "required": False}
    return {"name": "nested", "schema": {**SCHEMA, "fields": [column]}, "stage-create": True}


def test_json_may_be_100_levels_deep(target: Target) -> None:
    for depth, status in ((99, 400), (100, 400), (101, 400), (900, 400), (5000, 400)):
        body = b'{"namespace":[],"x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
        refused = target.request("POST", NAMESPACES, body, **JSON)
        assert refused.status == status
        assert (b"namespace" in refused.body) == (depth <= 100), "the others are refused for their depth"


def test_large_bodies_have_so_much_memory_together(start_target: StartTarget) -> None:
    """Two of the largest size. Small ones go on."""
    target = start_target(f"max_create_body_bytes = {MIB}\nmax_body_bytes = {MIB}")
    head = f"POST /lance/v1/table/made/create HTTP/1.1\r\nHost: {target.host}\r\nContent-Length: {MIB}\r\n"
    half = f"{head}Content-Type: application/vnd.apache.arrow.stream\r\n\r\n".encode() + b"x" * (MIB - 1)
    with target.connect() as first, target.connect() as second, target.connect() as third:
        for connection in (first, second, third):
            connection.sendall(half)
        assert _first_status(first, second, third) == 503
        made = target.request("POST", NAMESPACES, b'{"namespace":["small"]}', **JSON)
        assert made.status == 200
    large = b'{"namespace":["large"],"properties":{"a":"%s"}}' % (b"x" * 900_000)
    deadline = time.monotonic() + 20
    while (status := target.request("POST", NAMESPACES, large, **JSON).status) == 503:
        assert time.monotonic() < deadline, "what they took is given back when they end"
    assert status == 200


def _first_status(*connections: socket.socket) -> int:
    """Of the connection that is answered first."""
    ready, _, _ = select.select(connections, [], [], 20)
    return read_answer(ready[0]).status
