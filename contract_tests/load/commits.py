"""Versions that Lance writers make through the bridge, held against those that they make alone on the same disk
and through pylance's own server."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import requests
from lance.namespace import RestNamespace
from lance_namespace import DescribeTableRequest

from contract_tests.contract.test_version_commits import adds, asserts
from contract_tests.load import peers
from contract_tests.load.report import Line, at_least, rate_beside, rates_of, share_beside
from contract_tests.load.speed import table_url
from contract_tests.load.versions import operations, staged

WRITERS = 16
HISTORY = 500
"""Versions that each table has before. Who commits as fast as is measured here has them within seconds."""
ROWS, WIDTH = 1_000, 128
"""Of the batch that a writer appends: half a megabyte of vectors."""
ALONE, EACH = 40, 15
"""Commits of a writer in a round: of one writer, of each of many."""
ONE_WRITERS_ROUNDS, ROUNDS = 25, 7
"""A machine may be twice as fast for some seconds as it is in the long run, and the disk too."""

Write = Callable[["Place", str, int], float]


@dataclass(frozen=True)
class Place:
    folder: Path
    uri: str | None = None
    """Of the server that decides about versions. None where the disk does."""

    def way(self, name: str) -> dict[str, Any]:
        if self.uri is None:
            return {"uri": self.folder / f"{name}.lance"}
        return {"namespace_client": RestNamespace(uri=self.uri), "table_id": [name]}

    def require_managed(self) -> None:
        assert self.uri is not None
        said = RestNamespace(uri=self.uri).describe_table(DescribeTableRequest(id=["t0"]))
        assert said.managed_versioning, f"{self.uri} leaves the versions to the disk"


def commits(root: Path) -> Iterator[Line]:
    for name in ("alone", "bridge", "adapter"):
        _tables(root / "commits" / name)
    alone, folder = Place(root / "commits/alone"), root / "commits"
    with (
        peers.bridge(folder / "bridge") as server,
        peers.lance_rest_adapter(folder / "adapter", "table_version_tracking_enabled=true") as adapter_url,
    ):
        bridge, adapter = Place(folder / "bridge", f"{server.url}/lance"), Place(folder / "adapter", adapter_url)
        bridge.require_managed()
        adapter.require_managed()
        yield from _one_writer(alone, bridge, adapter, server.url)
        yield from _many_writers(bridge, adapter)
        yield from _one_table(alone, bridge)


def _one_writer(alone: Place, bridge: Place, adapter: Place, url: str) -> Iterator[Line]:
    measures = {
        f"{place}, {write.__name__}": _by_one(where, write)
        for write in (appends, bare_commits)
        for place, where in (("alone", alone), ("bridge", bridge), ("adapter", adapter))
    }
    found = rates_of({**measures, "add-snapshot": _add_snapshots(bridge, url)}, ONE_WRITERS_ROUNDS)
    what = f"appends of {ROWS:,} vectors / pylance alone"
    yield at_least(what, found["bridge, appends"], found["alone, appends"], 0.7)
    yield rate_beside("the same, RestAdapter / pylance alone", found["adapter, appends"], found["alone, appends"])
    yield rate_beside("bare commits / pylance alone", found["bridge, bare_commits"], found["alone, bare_commits"])
    what = "the same, RestAdapter / pylance alone"
    yield rate_beside(what, found["adapter, bare_commits"], found["alone, bare_commits"])
    yield rate_beside("add-snapshot by IRC / the same", found["add-snapshot"], found["alone, bare_commits"])


def _many_writers(bridge: Place, adapter: Place) -> Iterator[Line]:
    measures = {
        f"{place}, {write.__name__}": _by_many(where, write)
        for write in (appends, bare_commits)
        for place, where in (("bridge", bridge), ("adapter", adapter))
    }
    found = rates_of(measures, ROUNDS)
    what = f"by {WRITERS} writers to as many tables / RestAdapter"
    yield at_least(f"bare commits {what}", found["bridge, bare_commits"], found["adapter, bare_commits"], 1.5)
    yield rate_beside(f"appends {what}", found["bridge, appends"], found["adapter, appends"])


def _one_table(alone: Place, bridge: Place) -> Iterator[Line]:
    ours, native = (_conflicts_per_commit(place) for place in (bridge, alone))
    yield share_beside(f"conflicts per commit, {WRITERS} writers on one table", ours, native)


def appends(place: Place, name: str, count: int) -> float:
    """Seconds for so many versions of a table that is open, as all that write."""
    dataset = lance.dataset(**place.way(name))
    start = time.perf_counter()
    for _ in range(count):
        dataset.insert(BATCH)
    return time.perf_counter() - start


def bare_commits(place: Place, name: str, count: int) -> float:
    """Of versions that are a manifest and nothing else."""
    dataset, way = lance.dataset(**place.way(name)), _of_commit(place, name)
    start = time.perf_counter()
    for operation in operations(count):
        dataset = lance.LanceDataset.commit(dataset, operation, read_version=dataset.version, **way)
    return time.perf_counter() - start


def _of_commit(place: Place, name: str) -> dict[str, Any]:
    return {} if place.uri is None else {**place.way(name), "namespace_client_managed_versioning": True}


def _by_one(place: Place, write: Write) -> Callable[[], float]:
    def measure() -> float:
        return ALONE / write(place, write.__name__, ALONE)

    return measure


def _by_many(place: Place, write: Write) -> Callable[[], float]:
    def measure() -> float:
        with ThreadPoolExecutor(WRITERS) as writers:
            start = time.perf_counter()
            list(writers.map(lambda number: write(place, f"t{number}", EACH), range(WRITERS)))
            return WRITERS * EACH / (time.perf_counter() - start)

    return measure


def _add_snapshots(place: Place, url: str) -> Callable[[], float]:
    target = table_url(url, "snapshots")

    def measure() -> float:
        bodies = [
            {
                "requirements": [asserts(request.version - 1)],
                "updates": adds(request.version, f"/{request.manifest_path}"),
            }
            for request in staged(str(place.folder / "snapshots.lance"), ALONE)
        ]
        with requests.Session() as session:
            start = time.perf_counter()
            for body in bodies:
                session.post(target, json=body, timeout=60).raise_for_status()
            return ALONE / (time.perf_counter() - start)

    return measure


def _conflicts_per_commit(place: Place) -> float:
    lost = 0
    begin = threading.Barrier(WRITERS)

    def write(_: int) -> int:
        lost, way = 0, _of_commit(place, "contended")
        dataset = lance.dataset(**place.way("contended"))
        begin.wait()
        for operation in operations(EACH):
            while True:
                dataset.checkout_latest()
                try:
                    lance.LanceDataset.commit(
                        dataset, operation, read_version=dataset.version, max_retries=0, **way
                    )
                    break
                except OSError as error:
                    assert "onflict" in str(error), error
                    lost += 1
        return lost

    with ThreadPoolExecutor(WRITERS) as writers:
        lost = sum(writers.map(write, range(WRITERS)))
    return lost / (WRITERS * EACH)


def _tables(folder: Path) -> None:
    """One made by Lance with its history, the rest copies of it."""
    names = [*(f"t{number}" for number in range(WRITERS)), "appends", "bare_commits", "snapshots", "contended"]
    first = lance.write_dataset(BATCH, folder / f"{names[0]}.lance")
    first.update_metadata({"managed_by": "impl"})
    while first.version < HISTORY:
        first.update_metadata({"step": str(first.version)})
    for name in names[1:]:
        shutil.copytree(folder / f"{names[0]}.lance", folder / f"{name}.lance")


def _vectors() -> pa.Table:
    numbers = pa.array([n % 97 / 97 for n in range(ROWS * WIDTH)], pa.float32())
    ids = pa.array(range(ROWS), pa.int64())
    return pa.table({"id": ids, "vector": pa.FixedSizeListArray.from_arrays(numbers, WIDTH)})


BATCH = _vectors()
