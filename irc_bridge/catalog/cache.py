"""Finished answers. A version never changes, so its bytes are made once."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True, slots=True)
class Answer:
    token: Hashable
    body: bytes
    etag: str
    reply: object
    """What the protocol sends where nothing about the request asks for more."""


class AnswerCache:
    """The least recently used answers go first once all together are larger than `max_bytes`."""

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Answer | None:
        with self._lock:
            answer = self._answers.get(key)
            if answer is not None:
                self._answers.move_to_end(key)
            return answer

    def put(self, key: Hashable, answer: Answer) -> None:
        with self._lock:
            self._drop(key)
            self._answers[key] = answer
            self._bytes += len(answer.body)
            while self._bytes > self._max_bytes:
                self._drop(next(iter(self._answers)))

    def _drop(self, key: Hashable) -> None:
        old = self._answers.pop(key, None)
        if old is not None:
            self._bytes -= len(old.body)
