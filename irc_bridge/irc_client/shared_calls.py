"""Blocking calls that tasks of an event loop have in common."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from anyio.to_thread import run_sync

T = TypeVar("T")


class SharedCalls:
    """Calls that several tasks share: a task that needs the result of a call under way waits for that call, and
    gets its failure too, so that many tasks occupy one thread. A task that is cancelled does not stop the
    others."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}

    async def run(self, key: Hashable, call: Callable[[], T]) -> T:
        task: asyncio.Task[T] | None = self._running.get(key)
        if task is None:
            task = asyncio.create_task(run_sync(call, abandon_on_cancel=True))
            self._running[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    def _forget(self, key: Hashable, done: asyncio.Task[Any]) -> None:
        del self._running[key]
        if not done.cancelled():
            done.exception()  # when nobody waits for it any more, asyncio would complain
