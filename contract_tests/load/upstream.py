"""The bridge before another server: what it adds to that server's own answers, and what a Lance table there costs
beside one in a folder."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import requests
import uvloop

from contract_tests.load import peers
from contract_tests.load.freshness import opened_meanwhile
from contract_tests.load.generator import Target, measure
from contract_tests.load.report import Line, adds_at_most, at_least, beside, counted, left_out, rates
from contract_tests.load.speed import table_url
from contract_tests.upstream.faulty import Received, Reply, Wire, faulty_upstream, written
from contract_tests.upstream.replies import answer
from contract_tests.worlds.bridge import DUMMY_SCHEMA
from contract_tests.worlds.java import CannotRun
from irc_bridge.irc_client.connections import Connections
from irc_bridge.irc_client.exchange import MOST_AT_ONCE

CONNECTIONS, SECONDS, PASSES = 8, 3, 500
LOADS = 5
TABLE = "lance_wide"
PLAIN = {"Accept-Encoding": "identity"}
"""As the generator asks."""
ETAG = ("ETag", '"the-other-servers"')


def upstream(root: Path) -> Iterator[Line]:
    folder = root / "upstream"
    folder.mkdir()
    try:
        with peers.reference_table(folder / "behind") as straight:
            behind = straight.url.partition("/v1/")[0]
            with peers.bridge_over(behind, folder / "bridge") as bridge:
                yield from _passes(bridge, straight, folder)
                yield from _lance_table(bridge, behind, root)
            yield from _requests(behind, folder)
    except CannotRun as reason:
        yield left_out("the bridge before another server", str(reason))


def _passes(bridge: peers.Bridge, straight: Target, folder: Path) -> Iterator[Line]:
    through = Target(table_url(bridge.url, "wide"))
    targets = {"through": through, "straight": straight}
    found = rates(targets, connections=1)
    what = "LoadTable of an Iceberg table through / straight"
    yield adds_at_most(f"{what}, p50", found["through"].p50_ms, found["straight"].p50_ms, 1.5)
    found = rates(targets, CONNECTIONS)
    yield at_least(f"{what}, 8 connections", found["through"].per_second, found["straight"].per_second, 0.6)
    yield _cpu("CPU of the bridge for one of them", _cpu_of(bridge.pid, lambda: _passed(through)))
    with peers.fixed_bytes(requests.get(straight.url, headers=PLAIN, timeout=60), folder) as fixed:
        answered = Target(fixed.url)
        yield _cpu("of it its web server (the same bytes, fixed)", _cpu_of(fixed.pid, lambda: _passed(answered)))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        client = _cpu_of(psutil.Process().pid, lambda: loop.run(_asked_by_its_client(straight)))
    yield _cpu("of it its client (the same GET)", client)


def _cpu(what: str, milliseconds: float) -> Line:
    return Line(what, f"{milliseconds:.3f} ms", target="none")


def _cpu_of(pid: int, ask: Callable[[], float]) -> float:
    """Milliseconds that a process spends on a request. `ask` tells how many there were."""
    ask()
    before = psutil.Process(pid).cpu_times()
    count = ask()
    after = psutil.Process(pid).cpu_times()
    return (after.user + after.system - before.user - before.system) / count * 1e3


def _passed(target: Target) -> float:
    return measure(target, CONNECTIONS, SECONDS).per_second * SECONDS


async def _asked_by_its_client(target: Target) -> int:
    parts = urlsplit(target.url)
    assert parts.hostname and parts.port
    connections = Connections(parts.hostname, parts.port, None, 5, 5)
    head = target.request()

    async def ask() -> None:
        for _ in range(PASSES):
            exchange = await connections.ask("GET", head, b"")
            assert await exchange.read(MOST_AT_ONCE)

    await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))
    connections.close()
    return CONNECTIONS * PASSES


def _lance_table(bridge: peers.Bridge, behind: str, root: Path) -> Iterator[Line]:
    lake = root / "upstream" / "lake"
    shutil.copytree(root / "tables" / "wide.lance", lake / f"{TABLE}.lance")
    table = {
        "name": TABLE,
        "location": (lake / f"{TABLE}.lance").as_uri(),
        "schema": DUMMY_SCHEMA,
        "properties": {"table_type": "lance"},
    }
    requests.post(f"{behind}/v1/namespaces/default/tables", json=table, timeout=60).raise_for_status()
    with peers.bridge(lake) as directory:
        urls = {"irc": bridge.url, "dir": directory.url, "straight": behind}
        targets = {name: Target(table_url(url, TABLE)) for name, url in urls.items()}
        for connections in (1, 8):
            found = {name: rate.p50_ms for name, rate in rates(targets, connections).items()}
            what = f"LoadTable of a Lance table over irc / dir + straight, p50, {connections} conn."
            yield beside(what, found["irc"], found["dir"] + found["straight"])


def _requests(behind: str, folder: Path) -> Iterator[Line]:
    """The server behind has no ETags of its own: it is given some."""
    with (
        faulty_upstream(_with_etags, behind) as watched,
        peers.bridge_over(watched.url, folder / "watched") as bridge,
    ):
        url = table_url(bridge.url, TABLE)
        loaded = requests.get(url, timeout=60)
        loaded.raise_for_status()
        watched.requests.clear()
        for _ in range(LOADS):
            requests.get(url, timeout=60).raise_for_status()
        yield counted("requests to the server behind for a Lance table", len(watched.requests) / LOADS, 1)
        what = "manifests opened by a conditional request that it answers with 304"
        statuses: list[int] = []
        asks = {"If-None-Match": loaded.headers["ETag"]}

        def ask() -> None:
            statuses.append(requests.get(url, headers=asks, timeout=60).status_code)

        try:
            opened = opened_meanwhile(bridge, folder / "lake" / f"{TABLE}.lance", ask)
        except CannotRun as reason:
            yield left_out(what, str(reason))
            return
        assert statuses == [304], statuses
        yield counted(what, len(opened), 0)


def _with_etags(received: Received) -> Reply | None:
    if received.method != "GET" or "/tables/" not in received.path:
        return None
    return answer(304, b"", [ETAG]) if received.header("if-none-match") == ETAG[1] else _tagged


def _tagged(wire: Wire) -> None:
    status, headers, body = wire.ask_behind()
    wire.send(written(wire.received.method, status, [*headers, ETAG], body))
