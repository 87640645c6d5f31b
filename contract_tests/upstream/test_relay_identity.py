"""Tokens and the configuration that a relay gets for itself, while nobody waits who need not."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from contract_tests.upstream.faulty import Handler, Received, Reply, faulty_upstream
from contract_tests.upstream.relays import asked, commit, relay_to
from contract_tests.upstream.replies import answer, close, held, in_turn, never
from irc_bridge.catalog.forward import ForwardRequest
from irc_bridge.errors import BridgeError, ServiceUnavailable, Unauthenticated
from irc_bridge.irc_client.auth import Auth, Bearer, Caller, ClientCredentials
from irc_bridge.irc_client.connection import Connection
from irc_bridge.irc_client.pool import Pool
from irc_bridge.irc_client.server import Config, IrcServer

TOKENS = "/v1/oauth/tokens"


def credentials(url: str) -> ClientCredentials:
    return ClientCredentials(Pool(5, 5).post_form, url + TOKENS, "id:secret", "catalog")


def with_tokens(other: Handler, token: Handler | None = None) -> Handler:
    """Hands out t1, t2, ..."""
    given = iter(range(1, 100))

    def handle(received: Received) -> Reply | None:
        if received.path != TOKENS:
            return other(received)
        return token(received) if token else answer(200, b'{"access_token":"t%d"}' % next(given))

    return handle


def taking(*tokens: str, refusal: int = 401) -> Handler:
    return lambda each: answer(200 if each.header("authorization") in tokens else refusal)


@pytest.mark.parametrize("refusal", [401, 419])
@pytest.mark.parametrize("request_", [asked(), asked("DELETE"), commit()], ids=["read", "drop", "commit"])
def test_a_token_that_is_no_longer_taken_is_renewed_once(refusal: int, request_: ForwardRequest) -> None:
    with faulty_upstream(with_tokens(taking("Bearer t2", refusal=refusal))) as upstream:

        async def run() -> list[int]:
            async with relay_to(upstream.url, credentials(upstream.url)) as relay:
                return [(await relay.send(request_)).status for _ in range(3)]

        assert asyncio.run(run()) == [200, 200, 200]
    sent = [each.header("authorization") for each in upstream.requests if each.path != TOKENS]
    assert sent == ["Bearer t1", "Bearer t2", "Bearer t2", "Bearer t2"]


def test_a_renewed_token_that_is_refused_as_well_is_the_answer() -> None:
    with faulty_upstream(with_tokens(taking("nobody"))) as upstream:

        async def run() -> int:
            async with relay_to(upstream.url, credentials(upstream.url)) as relay:
                return (await relay.send(commit())).status

        assert asyncio.run(run()) == 401
    assert len([each for each in upstream.requests if each.path != TOKENS]) == 2


@pytest.mark.parametrize("auth", [None, Bearer("t"), Caller("Bearer t")])
def test_who_has_no_other_token_is_not_sent_twice(auth: Auth | None) -> None:
    with faulty_upstream(in_turn(answer(401, b"no"))) as upstream:

        async def run() -> tuple[int, bytes]:
            async with relay_to(upstream.url, auth) as relay:
                answered = await relay.send(asked(headers=[(b"authorization", b"Bearer client")]))
                return answered.status, answered.content

        assert asyncio.run(run()) == (401, b"no")
    assert len(upstream.requests) == 1


def test_many_wait_for_one_token_and_those_who_go_away_take_it_from_nobody() -> None:
    release = threading.Event()
    token = held(release, answer(200, b'{"access_token":"t1"}'))
    with faulty_upstream(with_tokens(taking("Bearer t1"), in_turn(token))) as upstream:

        async def run() -> list[int]:
            async with relay_to(upstream.url, credentials(upstream.url)) as relay:
                waiting = [asyncio.create_task(relay.send(commit())) for _ in range(60)]
                assert await asyncio.to_thread(upstream.wait, lambda: len(upstream.requests) == 1)
                waiting[0].cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting[0]
                release.set()
                return [each.status for each in await asyncio.gather(*waiting[1:])]

        assert asyncio.run(run()) == [200] * 59
    assert len([each for each in upstream.requests if each.path == TOKENS]) == 1
    assert len(upstream.requests) == 60


def test_a_token_that_is_still_good_is_used_while_another_one_is_fetched() -> None:
    release = threading.Event()
    first, second = (answer(200, b'{"access_token":"t%d"}' % each) for each in (1, 2))
    with faulty_upstream(with_tokens(taking("Bearer t1"), in_turn(first, held(release, second)))) as upstream:
        auth = credentials(upstream.url)
        renewing = threading.Thread(target=auth.renewed, args=(auth.header(),))
        renewing.start()
        try:
            assert upstream.wait(lambda: len(upstream.requests) == 2)

            async def run() -> int:
                async with relay_to(upstream.url, auth) as relay:
                    return (await relay.send(commit())).status

            assert asyncio.run(run()) == 200
            assert renewing.is_alive()
        finally:
            release.set()
            renewing.join()


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        (answer(401, b'{"error":"invalid_client"}'), Unauthenticated),
        (close(), ServiceUnavailable),
    ],
)
def test_without_a_token_nothing_is_sent(token: Reply, kind: type[BridgeError]) -> None:
    with faulty_upstream(with_tokens(in_turn(answer()), in_turn(token))) as upstream:

        async def run() -> list[BaseException | object]:
            async with relay_to(upstream.url, credentials(upstream.url)) as relay:
                return await asyncio.gather(*[relay.send(commit()) for _ in range(3)], return_exceptions=True)

        failures = asyncio.run(run())
    assert [type(each) for each in failures] == [kind] * 3
    assert {each.path for each in upstream.requests} == {TOKENS}


def configured_by(url: str) -> Callable[[str | None], Config]:
    def config(authorization: str | None) -> Config:
        return IrcServer(Connection(url, Pool(5, 5), Caller(authorization), {}), "prod").config

    return config


CONFIG = b'{"overrides":{"prefix":"main|prod"},"defaults":{"prefix":"x","namespace-separator":"%2E"}}'


def test_prefix_and_separator_are_asked_for_once() -> None:
    with faulty_upstream(in_turn(answer(200, CONFIG))) as upstream:

        async def run() -> set[tuple[bytes, str]]:
            async with relay_to(upstream.url, config=configured_by(upstream.url)) as relay:
                prefixes = await asyncio.gather(*[relay.prefix("Bearer client") for _ in range(60)])
                return {(prefix, await relay.separator(None)) for prefix in prefixes}

        assert asyncio.run(run()) == {(b"/main%7Cprod", ".")}
    assert [each.target for each in upstream.requests] == ["/v1/config?warehouse=prod"]
    assert upstream.requests[0].header("authorization") is None


def test_a_server_without_a_prefix() -> None:
    with faulty_upstream(in_turn(answer(200, b'{"overrides":{},"defaults":{}}'))) as upstream:

        async def run() -> tuple[bytes, str]:
            async with relay_to(upstream.url, config=configured_by(upstream.url)) as relay:
                return await relay.prefix(None), await relay.separator(None)

        assert asyncio.run(run()) == (b"", "\x1f")


def test_each_client_asks_for_itself_when_identities_are_passed_through() -> None:
    def handle(received: Received) -> Reply:
        who = received.header("authorization")
        return answer(401) if who is None else answer(200, b'{"overrides":{"prefix":"of-%s"}}' % who.encode()[-1:])

    with faulty_upstream(handle) as upstream:

        async def run() -> list[bytes]:
            async with relay_to(upstream.url, auth=None, config=configured_by(upstream.url)) as relay:
                with pytest.raises(Unauthenticated):
                    await relay.prefix(None)
                return [await relay.prefix(f"Bearer {who}") for who in "abab"]

        assert asyncio.run(run()) == [b"/of-a", b"/of-b", b"/of-a", b"/of-b"]
    assert [each.header("authorization") for each in upstream.requests] == [None, "Bearer a", "Bearer b"]


def test_a_configuration_that_could_not_be_read_is_asked_for_again() -> None:
    with faulty_upstream(in_turn(answer(500), answer(200, CONFIG))) as upstream:

        async def run() -> bytes:
            async with relay_to(upstream.url, config=configured_by(upstream.url)) as relay:
                with pytest.raises(BridgeError):
                    await relay.prefix(None)
                return await relay.prefix(None)

        assert asyncio.run(run()) == b"/main%7Cprod"
    assert len(upstream.requests) == 2


def test_who_waits_for_the_configuration_may_go_away() -> None:
    with faulty_upstream(in_turn(never())) as upstream:

        async def run() -> None:
            async with relay_to(upstream.url, config=configured_by(upstream.url)) as relay:
                task = asyncio.create_task(relay.prefix(None))
                assert await asyncio.to_thread(upstream.wait, lambda: len(upstream.requests) == 1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

        asyncio.run(run())
    assert len(upstream.requests) == 1
