"""HTTP/1.1 as a relay speaks it: where an answer ends, and which connection is used again."""

import asyncio
import socket
import ssl
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import uvloop

from contract_tests.upstream.faulty import Handler, Reply, Upstream, Wire, faulty_upstream
from contract_tests.upstream.relays import asked, commit, relay_to, value
from contract_tests.upstream.replies import answer, in_turn, raw, streamed
from irc_bridge.catalog.forward import ForwardRequest, ForwardResponse
from irc_bridge.errors import BadGateway, CommitStateUnknown, GatewayTimeout, ServiceUnavailable
from irc_bridge.irc_client import connections
from irc_bridge.irc_client.relay import Relay

MIB = 1024 * 1024
LENGTH_2 = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\nETag: x\r\n\r\n" + b"{}" * 1000


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner


def using(
    runner: asyncio.Runner,
    handler: Handler,
    use: Callable[[Relay, Upstream], Awaitable[None]],
    read_timeout: float = 5,
) -> Upstream:
    with faulty_upstream(handler) as upstream:

        async def run() -> None:
            async with relay_to(upstream.url, read_timeout=read_timeout) as relay:
                await use(relay, upstream)

        runner.run(run())
        assert upstream.wait(lambda: not upstream.open), "a connection is still open"
    return upstream


def answered(runner: asyncio.Runner, reply: Reply, request: ForwardRequest) -> tuple[ForwardResponse, int]:
    """What came, and by how many connections that and another answer came."""
    found: list[ForwardResponse] = []

    async def use(relay: Relay, _: Upstream) -> None:
        found.append(await relay.send(request, whole=True))
        assert (await relay.send(asked())).content == b"[]"

    upstream = using(runner, in_turn(reply, answer(200, b"[]")), use)
    assert len(upstream.requests) == 2
    return found[0], upstream.connections


def ended(content: bytes) -> Reply:
    def reply(wire: Wire) -> None:
        wire.send(content)
        wire.close()

    return reply


@pytest.mark.parametrize(
    ("content", "method"),
    [
        (LENGTH_2, "GET"),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}", "GET"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + LENGTH_2, "POST"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nX: trailer\r\n\r\n", "GET"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "HEAD"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD"),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2000\r\n\r\n", "GET"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "DELETE"),
    ],
)
def test_after_a_whole_answer_its_connection_is_used_again(
    runner: asyncio.Runner, content: bytes, method: str
) -> None:
    got, connections = answered(runner, raw(content), asked(method))
    assert got.content == (b"{}" if content.endswith((b"{}", b"trailer\r\n\r\n")) else b"")
    assert got.headers == []
    assert connections == 1


@pytest.mark.parametrize(
    ("content", "method"),
    [
        (LENGTH_2 + LENGTH_2, "GET"),
        (LENGTH_2 + b"more", "GET"),
        (LENGTH_2 + b"HTTP/1.1 4", "GET"),
        (LENGTH_2 + b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", "GET"),
        (LENGTH_2, "HEAD"),
        (b"HTTP/1.1 204 No Content\r\n\r\n{}", "GET"),
        (LENGTH_2.replace(b"1.1", b"1.0"), "GET"),
        (LENGTH_2.replace(b"OK\r\n", b"OK\r\nConnection: X, Close\r\n"), "GET"),
    ],
)
def test_a_connection_that_is_not_clean_is_not_used_again(
    runner: asyncio.Runner, content: bytes, method: str
) -> None:
    got, connections = answered(runner, raw(content), asked(method))
    assert got.content == (b"" if method == "HEAD" or got.status == 204 else b"{}")
    assert connections == 2


def test_the_end_of_the_connection_may_be_that_of_the_answer(runner: asyncio.Runner) -> None:
    got, connections = answered(runner, ended(UNTIL_CLOSE), commit())
    assert (got.content, value(got, b"etag"), connections) == (b"{}" * 1000, b"x", 2)
    got, _ = answered(runner, ended(UNTIL_CLOSE + b"x" * 5 * MIB), commit())
    assert got.content == b"{}" * 1000 + b"x" * 5 * MIB


def test_a_reset_is_no_end_of_an_answer(runner: asyncio.Runner) -> None:
    def reply(wire: Wire) -> None:
        wire.send(UNTIL_CLOSE)
        threading.Event().wait(0.2)  # a reset throws away what was not yet read
        wire.reset()

    async def use(relay: Relay, _: Upstream) -> None:
        with pytest.raises(CommitStateUnknown, match="its answer broke off"):
            await relay.send(commit())

    assert len(using(runner, in_turn(reply), use).requests) == 1


@pytest.mark.parametrize("endless", [b"X-Long: " + b"x" * MIB, b"X: y\r\n" * 300_000])
def test_a_head_without_an_end(runner: asyncio.Runner, endless: bytes) -> None:
    async def use(relay: Relay, _: Upstream) -> None:
        with pytest.raises(BadGateway, match="what it said is not HTTP"):
            await relay.send(asked())

    using(runner, in_turn(raw(b"HTTP/1.1 200 OK\r\n" + endless)), use)


@pytest.mark.parametrize("farewell", [b"", b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"])
def test_a_connection_that_the_server_ends_meanwhile_is_not_used_again(
    runner: asyncio.Runner, farewell: bytes
) -> None:
    """A commit that is sent over it would be one whose fate nobody knows."""
    go_on = threading.Event()

    def reply(wire: Wire) -> None:
        wire.send(LENGTH_2)
        go_on.wait(10)
        if farewell:
            wire.send(farewell)
            wire.wait_for_end()
        wire.close()

    async def use(relay: Relay, upstream: Upstream) -> None:
        await relay.send(asked())
        go_on.set()
        assert await asyncio.to_thread(upstream.wait, lambda: not upstream.open)
        await asyncio.sleep(0.05)  # the loop hears of it after that
        assert (await relay.send(commit())).content == b"[]"

    upstream = using(runner, in_turn(reply, answer(200, b"[]")), use)
    assert (len(upstream.requests), upstream.connections) == (2, 2)


def test_an_idle_connection_is_not_kept_for_long(runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_KEPT_S", 0.2)

    async def use(relay: Relay, upstream: Upstream) -> None:
        await relay.send(asked())
        await relay.send(asked())
        assert (upstream.connections, len(upstream.open)) == (1, 1)
        assert await asyncio.to_thread(upstream.wait, lambda: not upstream.open)
        assert (await relay.send(asked())).status == 200

    assert using(runner, in_turn(answer()), use).connections == 2


def test_a_connection_that_still_sends_a_body_is_not_used_again(runner: asyncio.Runner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)

        async def run() -> None:
            async with relay_to(f"http://127.0.0.1:{server.getsockname()[1]}") as relay:
                sending = asyncio.create_task(relay.send(commit(b" " * 32 * MIB)))
                first, _ = await asyncio.to_thread(server.accept)
                with first:
                    first.sendall(LENGTH_2)
                    assert (await sending).content == b"{}"
                    second_one = asyncio.create_task(relay.send(commit()))
                    second, _ = await asyncio.to_thread(server.accept)
                    with second:
                        second.sendall(LENGTH_2)
                        assert (await second_one).content == b"{}"

        runner.run(run())


def test_who_reads_slowly_is_no_slow_server(runner: asyncio.Runner) -> None:
    async def use(relay: Relay, _: Upstream) -> None:
        got = await relay.send(asked())
        assert got.rest is not None
        await asyncio.sleep(0.5)
        read = len(got.content) + sum([len(chunk) async for chunk in got.rest])
        assert read == 32 * MIB

    upstream = using(runner, in_turn(streamed(32 * MIB), answer()), use, read_timeout=0.2)
    assert upstream.connections == 1


@pytest.mark.parametrize("piece", [b"x", b"1;y=z\r\nx\r\n"])
def test_an_answer_that_hardly_comes_on_ends(runner: asyncio.Runner, piece: bytes) -> None:
    """Each byte comes within the time-out between bytes."""
    stopped = threading.Event()

    def reply(wire: Wire) -> None:
        chunked = piece != b"x"
        length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % (100 * MIB)
        first = b"x" * 2 * MIB
        wire.send(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % length)
        wire.send(b"%x\r\n%b\r\n" % (len(first), first) if chunked else first)
        while not stopped.wait(0.02):
            wire.send(piece)

    async def run(url: str) -> None:
        async with relay_to(url, connect_timeout=0.3, read_timeout=0.3) as relay:
            got = await relay.send(asked())
            assert got.rest is not None
            with pytest.raises(GatewayTimeout):
                async for _ in got.rest:
                    pass

    with faulty_upstream(in_turn(reply)) as upstream:
        try:
            runner.run(asyncio.wait_for(run(upstream.url), 30))
        finally:
            stopped.set()


def test_an_answer_that_comes_slowly_comes_to_its_end(runner: asyncio.Runner) -> None:
    """It takes longer than the patience with an answer that does not come on."""

    def reply(wire: Wire) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (2 * MIB))
        for _ in range(64):
            wire.send(b"x" * (MIB // 32))
            threading.Event().wait(0.03)

    async def run(url: str) -> None:
        async with relay_to(url, connect_timeout=0.2, read_timeout=0.2) as relay:
            assert len((await relay.send(asked(), whole=True)).content) == 2 * MIB

    with faulty_upstream(in_turn(reply)) as upstream:
        runner.run(run(upstream.url))


def test_of_a_large_answer_no_more_is_taken_than_is_read(runner: asyncio.Runner) -> None:
    sent: list[int] = []

    def reply(wire: Wire) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (256 * MIB))
        for _ in range(256):
            wire.send(b"x" * MIB)
            sent.append(MIB)

    async def use(relay: Relay, _: Upstream) -> None:
        got = await relay.send(asked())
        assert got.rest is not None
        await asyncio.sleep(0.5)
        assert sum(sent) < 64 * MIB
        await got.rest.aclose()

    using(runner, in_turn(reply), use)


class _Said(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(LENGTH_2)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def over_tls(folder: Path) -> Iterator[tuple[str, Path]]:
    """A URL, and the certificate of who answers there."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ExitStack() as stack:
        server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), _Said))
        server.socket = stack.enter_context(
            context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        )
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        stack.callback(serving.join)
        stack.callback(server.shutdown)
        yield f"https://127.0.0.1:{server.server_port}", certificate


def test_over_tls(runner: asyncio.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def send(url: str) -> list[bytes]:
        async with relay_to(url) as relay:
            return [(await relay.send(commit(b" " * size))).content for size in (1, 8 * MIB, 1)]

    with over_tls(tmp_path) as (url, certificate):
        with pytest.raises(ServiceUnavailable, match=r"certificate.*Nothing was changed"):
            runner.run(send(url))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert runner.run(send(url)) == [b"{}"] * 3
