"""Before a server that does its work, a faulty upstream loses requests, answers, or nothing."""

import asyncio

import pytest

from contract_tests.upstream.faulty import Handler, Reply, faulty_upstream
from contract_tests.upstream.relays import asked, commit, relay_to, value
from contract_tests.upstream.replies import answer, close, done_but, done_but_half, error, in_turn, reset
from irc_bridge.catalog.forward import ForwardResponse
from irc_bridge.errors import CommitStateUnknown

HEADERS = [("ETag", '"1"'), ("X-Twice", "1"), ("X-Twice", "2")]


def committed(fault: Handler) -> tuple[ForwardResponse | CommitStateUnknown, int, int]:
    """What a commit came to, and how often it arrived before and behind the fault."""
    with (
        faulty_upstream(in_turn(answer(200, b"committed", HEADERS))) as real,
        faulty_upstream(fault, behind=real.url) as upstream,
    ):

        async def run() -> ForwardResponse | CommitStateUnknown:
            async with relay_to(upstream.url) as relay:
                try:
                    return await relay.send(commit())
                except CommitStateUnknown as unknown:
                    return unknown

        return asyncio.run(run()), len(upstream.requests), len(real.requests)


def test_as_it_is() -> None:
    answered, before, behind = committed(lambda _: None)
    assert isinstance(answered, ForwardResponse)
    assert (answered.status, answered.content) == (200, b"committed")
    assert [each for _, each in answered.headers] == [b'"1"', b"1", b"2"]
    assert (before, behind) == (1, 1)


@pytest.mark.parametrize("fault", [close(), reset()])
def test_the_server_never_got_it(fault: Reply) -> None:
    lost, before, behind = committed(lambda _: fault)
    assert isinstance(lost, CommitStateUnknown)
    assert (before, behind) == (1, 0)


@pytest.mark.parametrize("fault", [done_but(close()), done_but(reset()), done_but_half()])
def test_the_server_did_it_once_and_the_answer_is_lost(fault: Reply) -> None:
    lost, before, behind = committed(lambda _: fault)
    assert isinstance(lost, CommitStateUnknown)
    assert (before, behind) == (1, 1)


def test_the_server_did_it_and_something_else_is_said() -> None:
    answered, _, behind = committed(lambda _: done_but(error(503, "x", [("Retry-After", "1")])))
    assert isinstance(answered, ForwardResponse)
    assert (answered.status, value(answered, b"retry-after"), behind) == (503, b"1", 1)


def test_requests_reach_the_server_behind_as_they_came() -> None:
    with (
        faulty_upstream(in_turn(answer())) as real,
        faulty_upstream(lambda _: None, behind=real.url) as upstream,
    ):

        async def run() -> None:
            async with relay_to(upstream.url) as relay:
                await relay.send(asked("GET", b"/v1/a%1Fb/c+d", b"pageToken=", [(b"x", b"1"), (b"x", b"2")]))
                assert (await relay.send(asked("HEAD"))).content == b""
                assert (await relay.send(asked("DELETE"))).status == 200

        asyncio.run(run())
    assert [(each.method, each.target) for each in real.requests] == [
        ("GET", "/v1/a%1Fb/c+d?pageToken="),
        ("HEAD", "/v1/namespaces"),
        ("DELETE", "/v1/namespaces"),
    ]
    assert [each.headers for each in real.requests] == [each.headers for each in upstream.requests]
