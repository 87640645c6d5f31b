"""What the bridge is held against: two other servers, and the fastest that its own web server can be."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from contract_tests.load.folders import COLUMNS
from contract_tests.load.generator import Target
from contract_tests.worlds.process import free_port, serving
from contract_tests.worlds.servers import reference_server

SNAPSHOTS = 100
ICEBERG_TYPES = ["long", "string", "double", "timestamp", "list"]


@dataclass(frozen=True)
class Bridge:
    url: str
    pid: int


@contextmanager
def bridge(root: Path) -> Iterator[Bridge]:
    """One worker over one folder."""
    with _bridge(str(root)) as bridge:
        yield bridge


@contextmanager
def bridge_over(url: str, folder: Path) -> Iterator[Bridge]:
    """One worker before another server; `folder` is for its settings."""
    folder.mkdir()
    settings = folder / "irc-bridge.toml"
    settings.write_text(f'[warehouses.main]\nbackend = "irc"\nuri = "{url}"\n')
    with _bridge("--config", str(settings)) as bridge:
        yield bridge


@contextmanager
def _bridge(*arguments: str) -> Iterator[Bridge]:
    """Its log goes to a file, so that nobody spends time on reading it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "irc_bridge", "serve", *arguments, "--port", str(port)]
    with serving(command, f"{url}/health/live") as process:
        yield Bridge(url, process.pid)


@contextmanager
def lance_rest_adapter(root: Path, *properties: str) -> Iterator[str]:
    """pylance's own server over a folder."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with serving([sys.executable, "-m", "contract_tests.load.adapter", str(root), str(port), *properties], url):
        yield url


@contextmanager
def fixed_bytes(answer: requests.Response, folder: Path) -> Iterator[Bridge]:
    """One answer, served again and again by the bridge's web server with its settings."""
    (folder / "answer").write_bytes(answer.content)
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    command = [sys.executable, "-m", "contract_tests.load.fixed", str(folder / "answer"), str(port)]
    with serving(command, url) as process:
        yield Bridge(url, process.pid)


@contextmanager
def reference_table(folder: Path) -> Iterator[Target]:
    """An Iceberg table of the shape of `wide` in the reference server: as many columns and snapshots."""
    folder.mkdir()
    with reference_server(folder) as url, requests.Session() as session:
        _post(session, f"{url}/v1/namespaces", {"namespace": ["default"], "properties": {}})
        table = {
            "name": "wide",
            "schema": {"type": "struct", "fields": [_field(n) for n in range(COLUMNS)]},
            "properties": {"write.metadata.previous-versions-max": "1"},
        }
        _post(session, f"{url}/v1/namespaces/default/tables", table)
        target = f"{url}/v1/namespaces/default/tables/wide"
        for snapshot in range(1, SNAPSHOTS + 1):
            _post(session, target, _new_snapshot(snapshot, folder))
        yield Target(target)


def _post(session: requests.Session, url: str, body: object) -> None:
    session.post(url, json=body, timeout=60).raise_for_status()


def _field(n: int) -> dict[str, object]:
    kind: object = ICEBERG_TYPES[n % len(ICEBERG_TYPES)]
    if kind == "list":
        kind = {"type": "list", "element-id": COLUMNS + n + 1, "element": "float", "element-required": False}
    return {"id": n + 1, "name": f"column_{n}", "required": False, "type": kind}


def _new_snapshot(number: int, folder: Path) -> dict[str, object]:
    snapshot: dict[str, object] = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": time.time_ns() // 1_000_000,
        "manifest-list": f"{folder}/metadata/snap-{number}.avro",
        "summary": {"operation": "append", "total-records": str(number), "total-data-files": str(number)},
        "schema-id": 0,
    }
    if number > 1:
        snapshot["parent-snapshot-id"] = number - 1
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
    return {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}, main]}
