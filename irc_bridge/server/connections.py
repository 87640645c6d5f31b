"""The open connections of one process: their greatest number, and the end of connections without progress.

Once a second a sweep looks at all connections. It ends a connection whose activity and progress have not changed
for as long as the activity allows. A new connection beyond the limit ends others first: connections with an
unfinished request head, then idle connections, then connections that wait for a client that does nothing, the
longest first.
"""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import inf
from operator import itemgetter
from typing import Protocol

if sys.platform != "win32":
    import resource

log = logging.getLogger(__name__)

_SWEEP_S = 1
_STALLED_S = 5
"""Seconds without progress after which a connection may be ended for a new one."""
_ENDED_AT_ONCE = 16
"""A new connection beyond the limit ends one in this number of connections: a look at all connections takes too
long to end a single one."""
_FOR_FILES = 512
"""Descriptors that are kept for files and other sockets; half of all where a process may have few."""
_MOST_DESCRIPTORS = 65_536


class Activity(Enum):
    IDLE = "idle"
    HEAD = "with an unfinished request head"
    BODY = "with an unfinished request body"
    REST = "with the rest of a body that was answered already"
    ANSWER = "with an answer that the client does not read"
    WORK = "with a request under way"


class Watched(Protocol):
    """A connection as the sweep sees it."""

    def activity(self) -> tuple[Activity, int]:
        """The activity, and a number that changes whenever the activity makes progress."""

    def end(self, activity: Activity) -> None:
        """Closes the connection because its activity made no progress."""

    def refuse(self) -> None:
        """Closes the connection because there are too many."""


@dataclass(slots=True)
class _State:
    progress: tuple[Activity, int]
    since: float


class Connections:
    """`idle_s` are the seconds after which an idle connection is ended, `stalled_s` the seconds after which the
    connection of a client is ended that neither sends its request nor reads its answer."""

    def __init__(self, most: int, idle_s: float, stalled_s: float) -> None:
        self._most = most
        self._patience = dict.fromkeys(Activity, stalled_s) | {Activity.IDLE: idle_s, Activity.WORK: inf}
        self._open: dict[Watched, _State] = {}
        self._sweeping = False
        self._ended: Counter[str] = Counter()

    def add(self, connection: Watched) -> None:
        loop = asyncio.get_running_loop()
        self._open[connection] = _State((Activity.IDLE, -1), loop.time())
        if len(self._open) > self._most and not self._make_room(loop.time()):
            self._ended["refused"] += 1
            connection.refuse()
        if not self._sweeping:
            self._sweeping = True
            loop.call_later(_SWEEP_S, self._sweep)

    def remove(self, connection: Watched) -> None:
        self._open.pop(connection, None)

    def _sweep(self) -> None:
        """Ends connections without progress, and calls itself again as long as there are connections."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection, activity, since in list(self._look(now)):
            if now - since >= self._patience[activity]:
                self._end(connection, activity)
        self._report()
        self._sweeping = bool(self._open)
        if self._sweeping:
            loop.call_later(_SWEEP_S, self._sweep)

    def _look(self, now: float) -> Iterator[tuple[Watched, Activity, float]]:
        """All connections with their activity and the time of its last progress."""
        for connection, state in self._open.items():
            progress = connection.activity()
            if progress != state.progress:
                state.progress, state.since = progress, now
            yield connection, progress[0], state.since

    def _make_room(self, now: float) -> bool:
        """Ends some connections of the lowest rank. False if there is none that may be ended."""
        candidates = [
            (_RANK[activity], since, number, connection, activity)
            for number, (connection, activity, since) in enumerate(self._look(now))
            if activity in _RANK and number < len(self._open) - 1
            if activity in (Activity.HEAD, Activity.IDLE) or now - since >= _STALLED_S
        ]
        candidates.sort(key=itemgetter(0, 1, 2))
        for *_, connection, activity in candidates[: max(1, self._most // _ENDED_AT_ONCE)]:
            self._ended[activity.value] += 1
            self._end(connection, activity)
        return bool(candidates)

    def _end(self, connection: Watched, activity: Activity) -> None:
        self.remove(connection)
        connection.end(activity)

    def _report(self) -> None:
        if self._ended:
            ended = ", ".join(f"{count} {kind}" for kind, count in self._ended.items())
            log.warning("There are too many connections, %d are allowed: ended %s", self._most, ended)
            self._ended.clear()


_RANK = {Activity.HEAD: 0, Activity.IDLE: 1, Activity.REST: 2, Activity.ANSWER: 2, Activity.BODY: 2}
"""Connections of a lower rank are ended first for a new one."""


def most_connections() -> int:
    """The most connections that the process can have. Raises its limit of descriptors as far as allowed."""
    if sys.platform == "win32":
        return _MOST_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = _at_most(hard)
    if _at_most(soft) < descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))
    return descriptors - min(_FOR_FILES, descriptors // 2)


def _at_most(limit: int) -> int:
    """The limit, or _MOST_DESCRIPTORS if that is less; RLIM_INFINITY is below zero."""
    return min(limit, _MOST_DESCRIPTORS) if limit >= 0 else _MOST_DESCRIPTORS
