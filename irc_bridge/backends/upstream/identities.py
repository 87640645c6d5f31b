"""A server as each of the clients sees it that are passed through. What one is told is told to no other."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.irc_client.auth import Auth, Caller

_KEPT = 256


class Identities:
    def __init__(self, open_tables: Callable[[Auth], Tables]) -> None:
        self._open_tables = open_tables
        self._lock = threading.Lock()
        self._tables: OrderedDict[str | None, Tables] = OrderedDict()

    def tables(self, authorization: str | None) -> Tables:
        """The tables as one client sees them. The clients that asked last are kept, with the configuration that
        the server gave them."""
        with self._lock:
            known = self._tables.pop(authorization, None) or self._open_tables(Caller(authorization))
            self._tables[authorization] = known
            while len(self._tables) > _KEPT:
                self._tables.popitem(last=False)
        return known
