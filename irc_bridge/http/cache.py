"""The cache of finished answers. A version of a table never changes, so its answer is encoded once."""

import sys
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock

from irc_bridge.http.replies import SlottedReply


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    token: Hashable
    """The catalog's token: tells whether the table is still as the answer shows it."""
    reply: SlottedReply
    etag: str = ""


class AnswerCache:
    """Removes the least recently used answers when all answers and their keys are larger than `max_bytes`."""

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._answers: OrderedDict[Hashable, CachedAnswer] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> CachedAnswer | None:
        with self._lock:
            answer = self._answers.get(key)
            if answer is not None:
                self._answers.move_to_end(key)
            return answer

    def put(self, key: Hashable, answer: CachedAnswer) -> None:
        with self._lock:
            self._drop(key)
            self._answers[key] = answer
            self._bytes += _size(key, answer)
            while self._bytes > self._max_bytes:
                self._drop(next(iter(self._answers)))

    def _drop(self, key: Hashable) -> None:
        old = self._answers.pop(key, None)
        if old is not None:
            self._bytes -= _size(key, old)


_OBJECTS = 2 * 1024
"""Bytes of the objects of one entry: the answer, its token and reply, the key and its place in the cache."""


def _size(key: Hashable, answer: CachedAnswer) -> int:
    return _OBJECTS + _key_size(key) + len(answer.reply.body)


def _key_size(key: Hashable) -> int:
    return sum(map(_key_size, key)) if isinstance(key, tuple) else sys.getsizeof(key)
