"""What a relay passes on and back: everything, byte for byte, but what is about one connection or one identity."""

import asyncio
import gzip
import threading
from collections.abc import Awaitable, Callable

import pytest

from contract_tests.upstream.faulty import Handler, Received, Upstream, faulty_upstream
from contract_tests.upstream.relays import NOBODY, asked, commit, no_config, relay_to, value
from contract_tests.upstream.replies import answer, error, held, in_turn, raw, streamed
from irc_bridge.catalog.forward import ForwardRequest, ForwardResponse, Headers
from irc_bridge.errors import InvalidInput, MethodNotAllowed
from irc_bridge.irc_client.auth import Auth, Caller
from irc_bridge.irc_client.relay import Relay

MIB = 1024 * 1024


def passed_on(
    handler: Handler, request: ForwardRequest, auth: Auth | None = NOBODY, headers: dict[str, str] | None = None
) -> tuple[ForwardResponse, list[Received]]:
    with faulty_upstream(handler) as upstream:

        async def run() -> ForwardResponse:
            async with relay_to(upstream.url, auth, headers) as relay:
                return await relay.send(request, whole=True)

        return asyncio.run(run()), upstream.requests


def running(handler: Handler, use: Callable[[Relay, Upstream], Awaitable[None]]) -> None:
    with faulty_upstream(handler) as upstream:

        async def run() -> None:
            async with relay_to(upstream.url) as relay:
                await use(relay, upstream)

        asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (b"/v1/main/namespaces/a%1Fb%2Fc%25/tables/t%20x", b""),
        (b"/v1/namespaces/a+b~c/tables/%E4%BD%A0", b"pageToken="),
        (b"/v1/namespaces", b"parent=a%1fb&pageToken=&pageSize=2"),
        (b"/v1/namespaces/my%252ons%1Fb/tables", b"x&&=&q=%20+%3d&x=1"),
        (b"/v1/namespaces/..a/.b./%2e%2Ec/;v=1,'()*!$@:", b"a[]=/?:@&b={}|^`<>\\\"'"),
        (b"/v1/views/%zz%", b"%&%2"),
    ],
)
def test_path_and_query_reach_the_server_byte_for_byte(path: bytes, query: bytes) -> None:
    _, (received,) = passed_on(in_turn(answer()), asked(path=path, query=query))
    assert received.target == (path + b"?" + query if query else path).decode()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *[(each, b"/v1/namespaces") for each in ("TRACE", "CONNECT", "OPTIONS", "PATCH", "get", "X")],
        *[
            ("GET", path)
            for path in (
                *(b"/", b"/admin", b"/v1", b"/v1/", b"/v2/x", b"/V1/x", b"//v1/x", b"v1/x", b"http://else/v1/x"),
                *(b"/v1/../admin", b"/v1/a/..", b"/v1/./a", b"/v1/%2e%2e/a", b"/v1/a/.%2E", b"/v1/%252e%252e/a"),
                *(b"/v1/%25252e./a", b"/v1/..;/a", b"/v1/..;x=y/a", b"/v1/%2e%2e%3b/a", b"/v1/a%2f..%2fb"),
                *(
                    b"/v1/..%2fb",
                    b"/v1/a%5c..%5cb",
                    b"/v1/a\\..\\b",
                    b"/v1/a\\b",
                    b"/v1//a",
                    b"/v1/a/",
                    b"/v1/a#b",
                ),
            )
        ],
    ],
)
def test_what_no_client_of_a_catalog_sends_is_not_sent_on(method: str, path: bytes) -> None:
    with faulty_upstream(in_turn(answer())) as upstream:

        async def run() -> None:
            async with relay_to(upstream.url) as relay:
                with pytest.raises((InvalidInput, MethodNotAllowed)):
                    await relay.send(asked(method, path))

        asyncio.run(run())
    assert upstream.requests == []


def test_a_path_in_plain_utf8_is_encoded() -> None:
    _, (received,) = passed_on(in_turn(answer()), asked(path="/v1/namespaces/é".encode(), query=b"a=b%20c"))
    assert received.target == "/v1/namespaces/%C3%A9?a=b%20c"


def test_a_server_below_a_path_with_a_user_in_its_address() -> None:
    with faulty_upstream(in_turn(answer())) as upstream:
        url = upstream.url.replace("//", "//user:word@") + "/catalog/"

        async def run() -> ForwardResponse:
            async with relay_to(url) as relay:
                return await relay.send(asked(path=b"/v1/namespaces"))

        assert asyncio.run(run()).status == 200
    assert [each.target for each in upstream.requests] == ["/catalog/v1/namespaces"]
    assert upstream.requests[0].header("authorization") is None


def test_the_server_gets_the_headers_of_the_client_and_no_other() -> None:
    given: Headers = [
        (b"host", b"bridge.example:8181"),
        (b"accept", b"application/json"),
        (b"x-iceberg-access-delegation", b"vended-credentials,remote-signing"),
        (b"idempotency-key", b"0192"),
        (b"if-none-match", b'W/"a", "b"'),
        (b"x-name", "José".encode()),
        (b"x-latin", b"Jos\xe9"),
        (b"x-twice", b"1"),
        (b"x-twice", b"2"),
        (b"connection", b"keep-alive, X-Hop"),
        (b"x-hop", b"1"),
        (b"keep-alive", b"timeout=5"),
        (b"te", b"trailers"),
        (b"trailer", b"x"),
        (b"upgrade", b"h2c"),
        (b"proxy-authorization", b"Basic x"),
        (b"expect", b"100-continue"),
        (b"content-length", b"2"),
        (b"content_length", b"1"),
        (b"transfer-encoding", b"chunked"),
        (b"transfer_encoding", b"chunked"),
        (b"x-http-method-override", b"DELETE"),
        (b"x-original-url", b"/admin"),
        (b"x_rewrite_url", b"/admin"),
        (b"x-api-key", b"the bridge's"),
        (b"x-forwarded-user", b"root"),
    ]
    _, (received,) = passed_on(in_turn(answer()), asked("POST", headers=given, body=b"{}"))
    names = (
        "accept",
        "x-iceberg-access-delegation",
        "idempotency-key",
        "if-none-match",
        "x-name",
        "x-latin",
        "x-twice",
    )
    expected = [(name.decode(), each.decode("latin-1")) for name, each in given if name.decode() in names]
    sent = [each for each in received.headers if each[0] not in ("host", "content-length")]
    assert sent == expected
    assert received.header("host") != "bridge.example:8181"
    assert received.header("content-length") == "2"


def test_without_headers_of_the_client_there_are_none() -> None:
    _, (received,) = passed_on(in_turn(answer()), asked())
    assert [name for name, _ in received.headers] == ["host"]


@pytest.mark.parametrize("header", [b"a\r\nx-smuggled: 1", b"a\nx-smuggled: 1", b"a\rb", b"a\0"])
def test_a_header_that_cannot_be_passed_on_is_refused_before_anything_is_sent(header: bytes) -> None:
    with faulty_upstream(in_turn(answer())) as upstream:

        async def run() -> None:
            async with relay_to(upstream.url) as relay:
                with pytest.raises(InvalidInput, match="x-user cannot be passed on"):
                    await relay.send(asked("POST", headers=[(b"x-user", header)]))

        asyncio.run(run())
    assert upstream.requests == []


def test_an_answer_comes_with_its_headers_but_those_of_the_connection() -> None:
    given = [
        ("Content-Type", "application/json"),
        ("ETag", 'W/"x"'),
        ("Retry-After", "7"),
        ("Idempotency-Key", "0192"),
        ("Cache-Control", "no-store"),
        ("WWW-Authenticate", 'Bearer realm="a"'),
        ("Vary", "Accept"),
        ("Vary", "Authorization"),
        ("X-Long", "x" * 20_000),
        ("Connection", "X-Hop"),
        ("X-Hop", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Authenticate", "Basic"),
        ("Date", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("Server", "other"),
        ("Set-Cookie", "session=ours"),
    ]
    head = "".join(f"{name}: {each}\r\n" for name, each in given)
    answered, _ = passed_on(
        in_turn(raw(f"HTTP/1.1 200 OK\r\n{head}Content-Length: 2\r\n\r\n{{}}".encode())), asked()
    )
    assert answered.headers == [(name.lower().encode(), each.encode()) for name, each in given[:9]]
    assert answered.content == b"{}"


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{ "a" :\t1.50 }', gzip.compress(b"{}" * 100, mtime=0), bytes(range(256)) * 12_000]
)
def test_bodies_go_there_and_back_byte_for_byte(body: bytes) -> None:
    encoded = [("Content-Encoding", "gzip")]
    request = asked("POST", headers=[(b"content-encoding", b"gzip")], body=body)
    answered, (received,) = passed_on(in_turn(answer(200, body, encoded)), request)
    assert received.body == body
    assert received.header("content-encoding") == "gzip"
    assert (answered.content, answered.headers) == (body, [(b"content-encoding", b"gzip")])


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize("status", [200, 204, 302, 304, 400, 404, 409, 419, 429, 500, 502, 503, 504, 599])
def test_any_answer_is_passed_back_after_one_request(method: str, status: int) -> None:
    headers = [("ETag", '"1"'), ("Retry-After", "1"), ("Location", "http://127.0.0.1:1/")]
    answered, received = passed_on(in_turn(answer(status, b"said", headers)), asked(method, body=b""))
    assert answered.status == status
    assert answered.content == (b"" if method == "HEAD" or status in (204, 304) else b"said")
    assert answered.headers == [(name.lower().encode(), each.encode()) for name, each in headers]
    assert [each.method for each in received] == [method]


def test_the_client_is_who_it_is_when_identities_are_passed_through() -> None:
    headers = [(b"authorization", b"Bearer client"), (b"cookie", b"a=b")]
    cookie = [("Set-Cookie", "a=c")]
    answered, (received,) = passed_on(in_turn(answer(200, b"", cookie)), asked(headers=headers), auth=None)
    assert received.headers[1:] == [("authorization", "Bearer client"), ("cookie", "a=b")]
    assert value(answered, b"set-cookie") == b"a=c"


@pytest.mark.parametrize("ours", ["Bearer ours", None])
def test_who_the_client_is_stays_here_otherwise(ours: str | None) -> None:
    headers = [(b"authorization", b"Bearer client"), (b"cookie", b"a=b"), (b"x", b"1")]
    _, (received,) = passed_on(in_turn(answer()), asked(headers=headers), auth=Caller(ours))
    expected = [("x", "1")] + ([("authorization", ours)] if ours else [])
    assert received.headers[1:] == expected


def test_configured_headers_go_along_instead_of_those_of_the_client() -> None:
    configured = {"X-Realm": "ours", "Authorization": "Basic configured"}
    headers = [(b"x-realm", b"theirs"), (b"x-other", b"1")]
    _, (received,) = passed_on(in_turn(answer()), asked(headers=headers), headers=configured)
    assert received.headers[1:] == [("x-other", "1"), ("x-realm", "ours"), ("authorization", "Basic configured")]
    _, (received,) = passed_on(in_turn(answer()), asked(), Caller("Bearer ours"), configured)
    assert received.headers[1:] == [("x-realm", "ours"), ("authorization", "Bearer ours")]


def test_a_connection_is_kept_and_used_again() -> None:
    async def use(relay: Relay, upstream: Upstream) -> None:
        for request in [asked(), commit(), asked("HEAD"), asked("DELETE"), commit(b"x" * 2 * MIB), asked()]:
            await relay.send(request, whole=True)
        assert (len(upstream.requests), upstream.connections) == (6, 1)

    running(lambda each: streamed(3 * MIB) if each.method == "DELETE" else answer(), use)


def test_slow_answers_hold_up_nobody() -> None:
    release = threading.Event()

    async def use(relay: Relay, upstream: Upstream) -> None:
        slow = [asyncio.create_task(relay.send(asked(path=b"/v1/slow"))) for _ in range(2)]
        for _ in range(20):
            assert (await relay.send(asked())).status == 200
        assert not any(each.done() for each in slow)
        release.set()
        assert [each.status for each in await asyncio.gather(*slow)] == [200, 200]

    running(lambda each: held(release, answer()) if each.path == "/v1/slow" else answer(), use)


def test_a_small_answer_is_whole_and_a_large_one_comes_bit_by_bit() -> None:
    chunk = bytes(range(256)) * 16

    async def use(relay: Relay, _: Upstream) -> None:
        small = await relay.send(asked(path=b"/v1/small"))
        assert (small.content, small.rest) == (chunk * 16, None)
        large = await relay.send(asked())
        assert large.rest is not None
        assert MIB <= len(large.content) < 3 * MIB
        assert large.content + b"".join([each async for each in large.rest]) == chunk * 2560
        whole = await relay.send(asked(), whole=True)
        assert (whole.content, whole.rest) == (chunk * 2560, None)

    running(lambda each: streamed(16 * len(chunk) if each.path == "/v1/small" else 10 * MIB, chunk), use)


def test_the_errors_of_the_server_are_its_own_words() -> None:
    answered, _ = passed_on(in_turn(error(500, "CommitStateUnknownException")), commit())
    assert answered.content == b'{"error":{"message":"no luck","type":"CommitStateUnknownException","code":500}}'


def test_one_relay_serves_several_event_loops() -> None:
    closing = raw(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    with faulty_upstream(in_turn(closing)) as upstream:
        relay = Relay(upstream.url, NOBODY, {}, no_config, 5, 5)

        async def run(last: bool) -> int:
            try:
                return (await relay.send(asked())).status
            finally:
                if last:
                    await relay.close()

        assert [asyncio.run(run(last=False)), asyncio.run(run(last=True))] == [204, 204]
