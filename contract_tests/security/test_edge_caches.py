"""What is kept for later requests has a size, keys and objects included."""

import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from contract_tests.security.target import TABLE, Target, next_answer
from irc_bridge.catalog.models import History
from irc_bridge.http.cache import AnswerCache, CachedAnswer
from irc_bridge.http.replies import SlottedReply
from irc_bridge.iceberg_rest.load_cache import LoadCache

MIB = 1024 * 1024
LONG = "y" * 8000


def reply(text: str) -> SlottedReply:
    return SlottedReply({"x": text.encode()}, slot={})


def answers(number: int, cache: AnswerCache) -> None:
    name = f"{number}{LONG}"
    cache.put(("main", (name, name), History.ALL), CachedAnswer(number, reply(name), f"e{number}"))


def small_answers(number: int, cache: AnswerCache) -> None:
    cache.put(("main", ("ns", f"t{number}"), History.ALL), CachedAnswer(number, reply(f"x{number}"), f"e{number}"))


@pytest.mark.parametrize(("put", "times"), [(answers, 5_000), (small_answers, 40_000)])
def test_answers(put: Callable[[int, AnswerCache], None], times: int) -> None:
    cache = AnswerCache(8 * MIB)
    assert grown(lambda number: put(number, cache), times) < 10 * MIB
    assert cache.get(("main", ("ns", f"t{times - 1}"), History.ALL)) or put is answers


def test_requests_that_are_answered_at_once() -> None:
    warehouse: Any = SimpleNamespace(catalog=SimpleNamespace(probes_inline=True), vend_credentials=False)
    loads = LoadCache()

    def remember(number: int) -> None:
        asked = (f"{TABLE}{number}".encode(), f"x={number}{LONG}".encode())
        loads.remember(asked, warehouse, ("main", ("default", "t"), History.ALL))

    assert grown(remember, 10_000) < 12 * MIB


def grown(step: Callable[[int], None], times: int) -> int:
    """By how many bytes memory grows in so many steps."""
    tracemalloc.start()
    try:
        for number in range(times):
            step(number)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_long_queries_are_not_kept(target: Target) -> None:
    """Each query makes thousands of objects."""
    before = target.process.memory_info().rss
    with target.connect() as connection, connection.makefile("rb") as stream:
        for number in range(1_100):
            path = TABLE if number % 2 else f"{TABLE}{number}"
            query = f"x={number}&" + "&".join(["a"] * 4000)
            connection.sendall(f"GET {path}?{query} HTTP/1.1\r\nHost: {target.host}\r\n\r\n".encode())
            assert next_answer(stream).status == (200 if number % 2 else 404)
    assert target.process.memory_info().rss - before < 60 * MIB
