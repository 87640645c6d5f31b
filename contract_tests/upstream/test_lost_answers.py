"""A server that cannot be reached, is slow, breaks off or talks nonsense: an honest error, in time, and nothing
that may have been done is sent twice."""

import asyncio
import gc
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager

import psutil
import pytest

from contract_tests.upstream.faulty import Handler, Reply, Upstream, faulty_upstream, refusing, unreachable
from contract_tests.upstream.relays import asked, commit, relay_to
from contract_tests.upstream.replies import (
    answer,
    close,
    half,
    half_chunked,
    half_head,
    in_turn,
    never,
    raw,
    reset,
    streamed,
    trickle,
)
from irc_bridge.catalog.forward import ForwardRequest
from irc_bridge.errors import BadGateway, BridgeError, CommitStateUnknown, GatewayTimeout, ServiceUnavailable
from irc_bridge.irc_client.relay import Relay

MIB = 1024 * 1024
LARGE = 32 * MIB
SHORT_S = 0.3
LONG_S = 10.0
READS = [asked("GET"), asked("HEAD")]
CHANGES = [asked("DELETE"), asked("POST", body=b"{}"), asked("PUT")]
UNKNOWN = "Whether it was done is not known"

TOO_SLOW: dict[str, Reply] = {
    "black hole": never(),
    "half a head": half_head(never()),
    "half a body": half(b"{}" * 50, never()),
    "half a chunked body": half_chunked(b"{}" * 50, never()),
    "a head that trickles": trickle(b"", 0.1),
    "a body that trickles": trickle(b"{}" * 500, 0.1, at_once=80),
}
BROKEN: dict[str, Reply] = {
    "closed": close(),
    "reset": reset(),
    "half a head": half_head(),
    "half a head, reset": half_head(reset()),
    "half a body": half(b"{}" * 50),
    "half a body, reset": half(b"{}" * 50, reset()),
    "half a chunked body": half_chunked(b"{}" * 50),
    "half a chunked body, reset": half_chunked(b"{}" * 50, reset()),
    "a bad chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n"),
    "no HTTP": raw(b"220 mail.example ESMTP\r\n\r\n"),
}
NO_ANSWER_AT_ALL = {"closed", "reset", "half a head", "half a head, reset"}


@asynccontextmanager
async def facing(handler: Handler, read_timeout: float = LONG_S) -> AsyncIterator[tuple[Relay, Upstream]]:
    with faulty_upstream(handler) as upstream:
        async with relay_to(upstream.url, connect_timeout=1, read_timeout=read_timeout) as relay:
            yield relay, upstream
        assert upstream.wait(lambda: not upstream.open), "a connection is still open"


def meeting(fault: Reply, request: ForwardRequest, read_timeout: float) -> tuple[BridgeError, Upstream]:
    """The error, and the upstream afterwards."""

    async def run() -> tuple[BridgeError, Upstream]:
        async with facing(in_turn(fault), read_timeout) as (relay, upstream):
            with pytest.raises(BridgeError) as raised:
                await relay.send(request)
            assert await asyncio.to_thread(upstream.wait, lambda: not upstream.open), "not released"
            return raised.value, upstream

    return asyncio.run(run())


@pytest.mark.parametrize("place", [refusing, unreachable])
@pytest.mark.parametrize("request_", [*READS, *CHANGES, commit()], ids=lambda each: each.method)
def test_nothing_was_sent(place: Callable[[], AbstractContextManager[str]], request_: ForwardRequest) -> None:
    with place() as url:
        secret = url.replace("//", "//user:word@")

        async def run() -> BridgeError:
            async with relay_to(secret, connect_timeout=0.5, read_timeout=SHORT_S) as relay:
                with pytest.raises(BridgeError) as raised:
                    await relay.send(request_)
                return raised.value

        began = time.monotonic()
        error = asyncio.run(run())
    assert time.monotonic() - began < 5
    assert type(error) is ServiceUnavailable
    assert (error.status, error.headers) == (503, {})
    assert error.message.endswith(". Nothing was changed")
    why = "Connection refused" if place is refusing else "no connection in time (connect_timeout)"
    assert f"{url} cannot be reached: {why}" in error.message


def test_a_server_whose_name_is_not_known() -> None:
    async def run() -> BridgeError:
        async with relay_to("http://nowhere.invalid") as relay:
            with pytest.raises(ServiceUnavailable, match=r"nowhere\.invalid cannot be reached") as raised:
                await relay.send(commit())
            return raised.value

    assert asyncio.run(run()).status == 503


@pytest.mark.parametrize("fault", TOO_SLOW)
@pytest.mark.parametrize("request_", [READS[0], CHANGES[1], commit()], ids=["read", "post", "commit"])
def test_an_answer_that_does_not_come_in_time(fault: str, request_: ForwardRequest) -> None:
    began = time.monotonic()
    error, upstream = meeting(TOO_SLOW[fault], request_, SHORT_S)
    assert time.monotonic() - began < 8
    assert type(error) is (CommitStateUnknown if request_.commits else GatewayTimeout)
    assert error.status == 504
    assert "no answer in time (read_timeout)" in error.message
    assert (UNKNOWN in error.message) == (request_.method != "GET")
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("request_", [READS[0], *CHANGES[:2], commit()], ids=["read", "drop", "post", "commit"])
def test_an_answer_that_breaks_off(fault: str, request_: ForwardRequest) -> None:
    error, upstream = meeting(BROKEN[fault], request_, LONG_S)
    assert type(error) is (CommitStateUnknown if request_.commits else BadGateway)
    assert error.status == 502
    assert (UNKNOWN in error.message) == (request_.method != "GET")
    tries = 3 if request_.method == "GET" and fault in NO_ANSWER_AT_ALL else 1
    assert len(upstream.requests) == tries


@pytest.mark.parametrize("fault", ["closed", "reset"])
@pytest.mark.parametrize("request_", [*CHANGES, commit()], ids=["drop", "post", "put", "commit"])
def test_what_changes_something_arrives_once_also_on_a_kept_connection(
    fault: str, request_: ForwardRequest
) -> None:
    async def run() -> None:
        async with facing(in_turn(answer(), BROKEN[fault])) as (relay, upstream):
            await relay.send(asked())
            with pytest.raises(BridgeError) as raised:
                await relay.send(request_)
            assert raised.value.status == 502
            assert [each.connection for each in upstream.requests] == [1, 1]

    asyncio.run(run())


@pytest.mark.parametrize("request_", READS, ids=lambda each: each.method)
def test_a_read_is_tried_again_when_the_connection_failed(request_: ForwardRequest) -> None:
    async def run() -> None:
        async with facing(in_turn(close(), reset(), answer())) as (relay, upstream):
            assert (await relay.send(request_)).status == 200
            assert len(upstream.requests) == 3

    asyncio.run(run())


def test_a_body_that_is_not_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]

        async def run() -> BridgeError:
            async with relay_to(f"http://127.0.0.1:{port}", connect_timeout=0.5, read_timeout=SHORT_S) as relay:
                with pytest.raises(CommitStateUnknown) as raised:
                    await relay.send(commit(b" " * 32 * MIB))
                await asyncio.sleep(0)
                ours = [each for each in psutil.Process().net_connections("tcp") if each.raddr]
                assert port not in [each.raddr.port for each in ours], "not released"
                return raised.value

        began = time.monotonic()
        assert asyncio.run(run()).status == 504
        assert time.monotonic() - began < 8


def test_an_answer_before_the_body_was_taken() -> None:
    """A server may refuse a large body by its head."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        async def run() -> int:
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            async with relay_to(url) as relay:
                sending = asyncio.create_task(relay.send(commit(b" " * 32 * MIB)))
                connection, _ = await asyncio.to_thread(server.accept)
                with connection:
                    connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
                    return (await sending).status

        assert asyncio.run(run()) == 413


LARGE_FAULTS: dict[str, tuple[Reply, type[BridgeError], int]] = {
    "closed": (close(), BadGateway, 502),
    "reset": (reset(), BadGateway, 502),
    "silent": (never(), GatewayTimeout, 504),
}


@pytest.mark.parametrize("fault", LARGE_FAULTS)
@pytest.mark.parametrize("commits", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_a_large_answer_that_breaks_off_never_looks_whole(fault: str, commits: bool, whole: bool) -> None:
    ending, kind, status = LARGE_FAULTS[fault]
    request = commit() if commits else asked()

    async def read_all(relay: Relay) -> None:
        answered = await relay.send(request, whole)
        assert answered.rest is not None
        async for _ in answered.rest:
            pass

    async def run() -> None:
        in_time = SHORT_S if fault == "silent" else LONG_S
        async with facing(in_turn(streamed(8 * MIB, ending=ending)), in_time) as (relay, upstream):
            with pytest.raises(BridgeError) as raised:
                await read_all(relay)
            assert type(raised.value) is (CommitStateUnknown if commits else kind)
            assert raised.value.status == status
            assert len(upstream.requests) == 1
            assert await asyncio.to_thread(upstream.wait, lambda: not upstream.open)

    asyncio.run(run())


async def _close_unread(relay: Relay) -> None:
    answered = await relay.send(asked())
    assert answered.rest is not None
    await answered.rest.aclose()
    assert [each async for each in answered.rest] == []


async def _close_half_read(relay: Relay) -> None:
    answered = await relay.send(asked())
    assert answered.rest is not None
    await anext(answered.rest)
    await answered.rest.aclose()


async def _forget(relay: Relay) -> None:
    await relay.send(asked())
    gc.collect()


async def _go_away_while_reading(relay: Relay) -> None:
    answered = await relay.send(asked())
    assert answered.rest is not None
    left = LARGE - len(answered.content)
    while left:
        left -= len(await anext(answered.rest))
    waiting = asyncio.ensure_future(anext(answered.rest))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize("leave", [_close_unread, _close_half_read, _forget, _go_away_while_reading])
def test_the_connection_of_an_answer_that_nobody_reads_on_is_released(
    leave: Callable[[Relay], Awaitable[None]],
) -> None:
    async def run() -> None:
        async with facing(in_turn(streamed(LARGE, ending=never()), answer())) as (relay, upstream):
            await leave(relay)
            assert await asyncio.to_thread(upstream.wait, lambda: not upstream.open)
            assert (await relay.send(asked())).status == 200

    asyncio.run(run())


@pytest.mark.parametrize("fault", [never(), half(b"{}" * 50, never()), streamed(MIB // 2, ending=never())])
def test_a_client_that_goes_away_ends_its_request(fault: Reply) -> None:
    async def run() -> None:
        with faulty_upstream(in_turn(fault, answer())) as upstream:
            async with relay_to(upstream.url, read_timeout=30) as relay:
                task = asyncio.create_task(relay.send(commit()))
                assert await asyncio.to_thread(upstream.wait, lambda: len(upstream.requests) == 1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await asyncio.to_thread(upstream.wait, lambda: not upstream.open)
                assert (await relay.send(commit())).status == 200
                assert len(upstream.requests) == 2

    asyncio.run(run())
