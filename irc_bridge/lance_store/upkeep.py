"""Keeps a table small and fast that is changed row by row. Beside the callers, by the amount of change; safe
beside other processes, because each step is a commit of its own that gives way to theirs."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Literal

import lance

from irc_bridge.errors import BridgeError
from irc_bridge.lance_store.failures import lance_errors
from irc_bridge.lance_store.tables import LanceTables

_MANY_FRAGMENTS = 32
_MANY_VERSIONS = 500
_KEPT = timedelta(hours=1)
"""Longer than a reader follows versions without listing them."""

Indexes = Mapping[str, tuple[str, Literal["BTREE", "BITMAP", "LABEL_LIST"]]]
"""Column -> name and kind of its index."""


class Upkeep:
    def __init__(
        self, tables: LanceTables, path: str, location: str, indexes: Indexes, fold: Callable[[], None]
    ) -> None:
        """`fold` makes few fragments of many."""
        self._tables = tables
        self._path = path
        self._location = location
        self._indexes = indexes
        self._fold = fold
        self._working = threading.Lock()
        self._cleaned = 0

    def index(self) -> None:
        self._step(self._index)

    def after_change(self, version: int, small_fragments: int) -> None:
        """Starts what the table needs, unless this process is at it already."""
        self._cleaned = self._cleaned or version
        much = small_fragments > _MANY_FRAGMENTS or version - self._cleaned > _MANY_VERSIONS
        if much and self._working.acquire(blocking=False):
            # not a daemon: the interpreter waits for the commit under way
            threading.Thread(target=self._work, args=(small_fragments,), name="manifest upkeep").start()

    def _work(self, small_fragments: int) -> None:
        try:
            if small_fragments > _MANY_FRAGMENTS:
                with suppress(BridgeError):
                    self._fold()
            self._step(self._index)
            self._step(self._clean)
        finally:
            self._working.release()

    def _step(self, step: Callable[[lance.LanceDataset], object]) -> None:
        # what loses to another writer is left to the next change
        with suppress(BridgeError), lance_errors(self._location):
            step(self._tables.open(self._path))

    def _index(self, dataset: lance.LanceDataset) -> None:
        there = {index.name for index in dataset.describe_indices()}
        if there:
            dataset.optimize.optimize_indices()
        for column, (name, kind) in self._indexes.items():
            if name not in there:
                dataset.create_scalar_index(column, kind, name=name)

    def _clean(self, dataset: lance.LanceDataset) -> None:
        if dataset.version - self._cleaned > _MANY_VERSIONS:
            dataset.cleanup_old_versions(older_than=_KEPT, error_if_tagged_old_versions=False)
            self._cleaned = dataset.version
