"""Numbers about a version of a table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from irc_bridge.catalog.models import Lengths, TableStats
from irc_bridge.errors import TableVersionNotFound
from irc_bridge.lance_store.counting_pool import COUNTING
from irc_bridge.lance_store.failures import Missing, lance_errors
from irc_bridge.lance_store.predicates import require_cheap
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.storage.base import Storage

SMALL = 100_000
"""Rows below which LanceDB, too, calls a fragment small."""


def count_rows(storage: Storage, tables: LanceTables, path: str, version: int, predicate: str | None) -> int:
    """With a predicate in another process, which a bad one may end."""
    with _gone_meanwhile(storage, path, version):
        if predicate is None:
            return int(tables.open(path, version).count_rows())
        require_cheap(predicate)
        tables.require_own_files(path, version)
        uri, location = storage.lance_uri(path), storage.location(path)
        return COUNTING.count(uri, storage.options, location, version, predicate)


def table_stats(storage: Storage, tables: LanceTables, path: str, version: int) -> TableStats:
    with _gone_meanwhile(storage, path, version):
        dataset = tables.open(path, version)
        lengths = sorted(each.physical_rows - each.num_deletions for each in dataset.get_fragments())
        current: dict[str, Any] = dict(dataset._ds.current_version())
        names = {index.name for index in dataset.describe_indices()}
    return TableStats(
        total_bytes=int(current["metadata"].get("total_files_size", 0)),
        rows=sum(lengths),
        indices=len(names),
        fragments=len(lengths),
        small_fragments=sum(length < SMALL for length in lengths),
        lengths=_lengths(lengths),
    )


def _lengths(ordered: Sequence[int]) -> Lengths:
    if not ordered:
        return Lengths(0, 0, 0, 0, 0, 0, 0)
    last = len(ordered) - 1
    p25, p50, p75, p99 = (ordered[round(last * part)] for part in (0.25, 0.5, 0.75, 0.99))
    return Lengths(ordered[0], ordered[-1], sum(ordered) // len(ordered), p25, p50, p75, p99)


@contextmanager
def _gone_meanwhile(storage: Storage, path: str, version: int) -> Iterator[None]:
    location = storage.location(path)
    try:
        with lance_errors(location):
            yield
    except Missing as error:
        raise TableVersionNotFound(f"The table at {location} has no version {version} any more") from error
