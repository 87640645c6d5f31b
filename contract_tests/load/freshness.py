"""What another process did shows in the next LoadTable, while the server is under load."""

import multiprocessing
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import lance
import pyarrow as pa
import requests

from contract_tests.load.generator import Target, background
from contract_tests.load.peers import Bridge
from contract_tests.load.report import Line, counted, left_out
from contract_tests.load.speed import table_url
from contract_tests.worlds.java import CannotRun

ROUNDS = 30
CHANGES = ["version", "tag", "table"]


def freshness(url: str, root: Path) -> Iterator[Line]:
    path = root / "tables" / "changing.lance"
    _make(path, "first")
    target = Target(table_url(url, "changing"))
    here, there = multiprocessing.Pipe()
    writer = multiprocessing.get_context("spawn").Process(target=_write, args=(there, path), daemon=True)
    writer.start()
    load = background(target, 8, 600)
    try:
        with requests.Session() as session:
            for change in CHANGES:
                stale = sum(not _shows(here, session, target.url, change, n) for n in range(ROUNDS))
                what = f"a {change} made by another process, under load"
                yield Line(what, f"{stale} of {ROUNDS} stale", target="0", ok=stale == 0)
    finally:
        writer.terminate()
        if load:
            load.kill()
            load.wait()


def _shows(writer: Connection, session: requests.Session, url: str, change: str, n: int) -> bool:
    writer.send((change, n))
    name, version = writer.recv()
    metadata = session.get(url, timeout=60).json()["metadata"]
    if change == "tag":
        return name in metadata["refs"]
    fields = [field["name"] for field in metadata["schemas"][0]["fields"]]
    return bool(metadata["current-snapshot-id"] == version) and (change != "table" or fields == [name])


def _write(orders: Connection, path: Path) -> None:
    while True:
        change, n = orders.recv()
        name = f"{change}_{n}"
        if change == "table":
            shutil.rmtree(path)
            _make(path, name)
        elif change == "tag":
            lance.dataset(path).tags.create(name, 1)
        else:
            lance.dataset(path).update_metadata({"step": name})
        orders.send((name, lance.dataset(path).version))


def _make(path: Path, column: str) -> None:
    lance.write_dataset(pa.table({column: [1]}), path)


def manifests_opened(server: Bridge, root: Path) -> Iterator[Line]:
    """After one more version of `wide`, which the server has loaded before."""
    what = "manifests opened by snapshots=all after one more version"
    path = root / "tables" / "wide.lance"
    url = f"{table_url(server.url, 'wide')}?snapshots=all"
    requests.get(url, timeout=60).raise_for_status()
    table = lance.dataset(path)
    table.update_metadata({"step": "one more"})
    answers: list[requests.Response] = []
    try:
        opened = opened_meanwhile(server, path, lambda: answers.append(requests.get(url, timeout=60)))
    except CannotRun as reason:
        yield left_out(what, str(reason))
        return
    (answer,) = answers
    assert answer.json()["metadata"]["current-snapshot-id"] == table.version
    yield counted(what, len(opened), 1)


def opened_meanwhile(server: Bridge, table: Path, ask: Callable[[], object]) -> list[str]:
    """The manifests of a table that the server opens while it is asked. CannotRun where nobody may look."""
    strace = shutil.which("strace")
    if not strace:
        raise CannotRun("strace is missing")
    with tempfile.NamedTemporaryFile("r") as seen:
        tracer = _attach(strace, server.pid, seen.name)
        ask()
        tracer.send_signal(signal.SIGINT)
        tracer.communicate()
        opened = set(re.findall(r'"([^"]*\.manifest)"', seen.read()))
    return [path for path in opened if f"/{table.name}/_versions/" in path and Path(path).exists()]


def _attach(strace: str, pid: int, output: str) -> "subprocess.Popen[str]":
    command = [strace, "-f", "-e", "trace=open,openat", "-s", "4096", "-o", output, "-p", str(pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr
    said = tracer.stderr.readline()
    if "attached" not in said:
        tracer.communicate()
        raise CannotRun("strace may not attach here")
    return tracer
