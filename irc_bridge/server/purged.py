"""Removes the files of purged tables when they are due. Every server process tries; the storage decides which
process removes a table."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from irc_bridge.catalog.models import Purge
from irc_bridge.catalog.ports import CanKeepPurged
from irc_bridge.catalog.warehouses import Warehouse, Warehouses
from irc_bridge.errors import BridgeError, ConcurrentModification
from irc_bridge.names import dotted

log = logging.getLogger(__name__)

_EVERY_S = 300
"""The pause between two looks for purges by other processes."""
_AGAIN_S = 5
"""The pause after a purge that another process is working on."""


@contextmanager
def removing_purged(warehouses: Warehouses) -> Iterator[None]:
    """Runs the removal in a thread of its own, for which neither requests nor the end of the process wait."""
    remover = _Remover(warehouses)
    thread = Thread(target=remover.run, name="purged tables", daemon=True)
    thread.start()
    try:
        yield
    finally:
        remover.stop()


class _Remover:
    def __init__(self, warehouses: Warehouses) -> None:
        self._warehouses = warehouses
        self._is_stopped = False
        self._warnings: set[str] = set()

    def run(self) -> None:
        while not self._is_stopped:
            self._warehouses.purge_made.clear()
            seconds = min(map(self._look_at, self._warehouses.values()), default=_EVERY_S)
            self._warehouses.purge_made.wait(seconds)

    def stop(self) -> None:
        self._is_stopped = True
        self._warehouses.purge_made.set()

    def _look_at(self, warehouse: Warehouse) -> float:
        """Removes files that are due, and returns the seconds until the next look. With `purge_after = "never"` a
        person removes the files."""
        if (
            warehouse.read_only
            or warehouse.purge_after_ms is None
            or not isinstance(warehouse.catalog, CanKeepPurged)
        ):
            return _EVERY_S
        try:
            purges = warehouse.catalog.purges()
            return min((self._seconds(warehouse, warehouse.catalog, purge) for purge in purges), default=_EVERY_S)
        except BridgeError as error:
            self._warn(f"{warehouse.name}: the purged tables cannot be listed: {error.message}")
        except Exception:
            log.exception("%s: the purged tables cannot be looked at", warehouse.name)
        return _EVERY_S

    def _seconds(self, warehouse: Warehouse, catalog: CanKeepPurged, purge: Purge) -> float:
        left_s = _EVERY_S if purge.due_ms is None else purge.due_ms / 1000 - time.time()
        if left_s > 0 or self._is_stopped:
            return min(left_s, _EVERY_S)
        name = f"{warehouse.name}: {dotted(purge.table)}"
        try:
            if catalog.remove_purged(purge):
                log.info("%s was purged and is due: its files at %s are removed", name, purge.location)
        except ConcurrentModification:
            return _AGAIN_S
        except BridgeError as error:
            self._warn(f"{name} was purged and is due, and its files stay: {error.message}")
        return _EVERY_S

    def _warn(self, text: str) -> None:
        """Logs a warning once."""
        if text not in self._warnings:
            self._warnings.add(text)
            log.warning(text)
