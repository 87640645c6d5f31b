"""Blocking calls that tasks of an event loop have in common."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from anyio.to_thread import run_sync

T = TypeVar("T")


class SharedCalls:
    """Whoever wants the same while it is under way waits for that one call, and has its failure too: many tasks
    never occupy more than one thread. Nobody holds up the others by going away."""

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
