"""CreateTableVersion in one process, held against the commits that pylance makes alone on the same disk."""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance

from contract_tests.directory.opened import Directory, load, new_table, path_of
from contract_tests.directory.staging import Listener, Request
from contract_tests.load.report import Line, at_least, rate_beside, rates_of
from irc_bridge.backends.directory import open_directory

COMMITS = 200
ROUNDS = 3
TABLE = ("t",)


def create_table_version(root: Path) -> Iterator[Line]:
    files, rows = (_catalog(root / name, managed=name == "rows") for name in ("files", "rows"))
    measures = {"alone": _alone(root / "alone"), "files": _through(files), "rows": _through(rows)}
    found = rates_of(measures, ROUNDS)
    yield at_least("CreateTableVersion / pylance's own commits", found["files"], found["alone"], 0.8)
    yield rate_beside("the same, versions kept in the manifest", found["rows"], found["alone"])


def _catalog(root: Path, managed: bool) -> Directory:
    catalog: Any = open_directory(str(root), table_version_management=managed)
    catalog.create_table(TABLE, new_table(managed_by="impl" if managed else "storage"))
    assert (catalog.load_table(TABLE).managed_by == "impl") is managed
    return catalog  # type: ignore[no-any-return]


def _alone(root: Path) -> Callable[[], float]:
    catalog: Any = open_directory(str(root), manifest_enabled=False)
    location = path_of(catalog.create_table(TABLE, new_table()))

    def measure() -> float:
        dataset = lance.dataset(location)
        start = time.perf_counter()
        for operation in operations(COMMITS):
            dataset = lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)
        return COMMITS / (time.perf_counter() - start)

    return measure


def _through(catalog: Directory) -> Callable[[], float]:
    def measure() -> float:
        entries = [request.entry(TABLE) for request in staged(path_of(load(catalog, TABLE)), COMMITS)]
        start = time.perf_counter()
        for entry in entries:
            catalog.create_table_versions([entry])
        return COMMITS / (time.perf_counter() - start)

    return measure


def staged(location: str, count: int) -> list[Request]:
    """Manifests of the next versions, each built upon the one before."""
    listener = Listener(location)
    dataset = lance.dataset(location)
    for operation in operations(count):
        dataset = lance.LanceDataset.commit(
            dataset,
            operation,
            read_version=dataset.version,
            max_retries=0,
            namespace_client=listener,
            table_id=["t"],
            namespace_client_managed_versioning=True,
        )
    assert len(listener.heard) == count
    return listener.heard


_numbers = itertools.count()


def operations(count: int) -> Iterator[Any]:
    for _ in range(count):
        updates: Any = lance.LanceOperation.UpdateMap(updates={"step": str(next(_numbers))}, replace=False)
        yield lance.LanceOperation.UpdateConfig(table_metadata_updates=updates)
