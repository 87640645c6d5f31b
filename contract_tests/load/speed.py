"""LoadTable and lists: how fast, held against peers and against smaller tables."""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import lance
import psutil
import requests

from contract_tests.load import folders, peers
from contract_tests.load.generator import Target
from contract_tests.load.report import Line, at_least, at_most, beside, left_out, rates
from contract_tests.worlds.java import CannotRun

COMMITS = 15


def load_table(url: str, root: Path) -> Iterator[Line]:
    bridge = Target(table_url(url, "wide"))
    with peers.lance_rest_adapter(root / "tables") as adapter:
        described = Target(f"{adapter}/v1/table/wide/describe?load_detailed_metadata=true", b"{}")
        found = rates({"bridge": bridge, "peer": described}, connections=8)
        yield at_least(
            "LoadTable / RestAdapter describe, 8 connections",
            found["bridge"].per_second,
            found["peer"].per_second,
            3,
        )
    what = "LoadTable / reference server's, 8 connections"
    try:
        with peers.reference_table(root / "reference") as reference:
            found = rates({"bridge": bridge, "peer": reference}, connections=8)
            yield at_least(what, found["bridge"].per_second, found["peer"].per_second, 3)
    except CannotRun as reason:
        yield left_out(what, str(reason))
    with peers.fixed_bytes(requests.get(bridge.url, timeout=60), root) as fixed:
        found = rates({"bridge": bridge, "peer": Target(fixed.url)}, connections=1)
        yield at_most("LoadTable / same bytes fixed, p50", found["bridge"].p50_ms, found["peer"].p50_ms, 3)


def refs(url: str, root: Path) -> Iterator[Line]:
    few, many = (Target(f"{table_url(url, name)}?snapshots=refs") for name in ("ten", "ten_thousand"))
    found = rates({"few": few, "many": many}, connections=1)
    yield at_most("snapshots=refs, 10,000 versions / 10, p50", found["many"].p50_ms, found["few"].p50_ms, 1.5)
    took: dict[str, list[float]] = {"ten": [], "ten_thousand": []}
    tables = {name: lance.dataset(root / "tables" / f"{name}.lance") for name in took}
    with requests.Session() as session:
        for step in range(COMMITS):
            for name, target in (("ten", few), ("ten_thousand", many)):
                tables[name].update_metadata({"step": f"again {step}"})
                start = time.perf_counter()
                session.get(target.url, timeout=60).raise_for_status()
                took[name].append((time.perf_counter() - start) * 1e3)
    # No target: Lance too lists a folder of manifests to find the latest in it.
    yield beside("the same, first load after a new version", median(took["ten_thousand"]), median(took["ten"]))


def pages(root: Path) -> Iterator[Line]:
    """The first page, and one from the middle where there is one."""
    with (
        peers.bridge(root / "names_100") as small,
        peers.bridge(root / "names_10000") as large,
    ):
        first = "/v1/namespaces/ns/tables?pageSize=100&pageToken="
        targets = {
            "small": Target(small.url + first),
            "first": Target(large.url + first),
            "middle": Target(large.url + first + _token_after(large.url + first, pages=50)),
        }
        found = rates(targets, connections=1)
        for which in ("first", "middle"):
            yield at_most(
                f"{which} page of 100 names, 10,000 tables / 100, p50",
                found[which].p50_ms,
                found["small"].p50_ms,
                3,
            )


def _token_after(url: str, pages: int) -> str:
    token = ""
    for _ in range(pages):
        answer = requests.get(url + token, timeout=60).json()
        assert len(answer["identifiers"]) == 100
        token = answer["next-page-token"]
    return token


def memory(root: Path) -> Iterator[Line]:
    with peers.bridge(root / "thousands") as server, requests.Session() as session:
        for n in range(folders.MANY_TABLES):
            session.get(table_url(server.url, f"t{n}"), timeout=60).raise_for_status()
        found = psutil.Process(server.pid).memory_full_info()
    own, resident = found.uss / 1e6, found.rss / 1e6
    yield Line("memory of its own after 2,000 tables", f"{own:.0f} MB", target="< 250 MB", ok=own < 250)
    # how much of the libraries' code is counted here, the kernel decides
    yield Line("the same with mapped libraries", f"{resident:.0f} MB", target="none")


def table_url(url: str, name: str) -> str:
    return f"{url}/v1/namespaces/default/tables/{name}"
