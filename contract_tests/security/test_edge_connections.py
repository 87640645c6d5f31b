"""Clients that hold connections, send too much, too slowly or not to the end, or never read."""

import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import psutil
import pytest

from contract_tests.security.conftest import StartTarget
from contract_tests.security.target import TABLE, Target, next_answer, read_answer, running_target
from contract_tests.worlds.bridge import assert_ok

KIB = 1024
MIB = 1024 * KIB
HALF_BODY = (
    "POST /v1/main/namespaces HTTP/1.1\r\nHost: {}\r\n"
    "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
)
HALF_HEAD = "GET /v1/config HTTP/1.1\r\nHost: {}\r\nX-Header: "
ANSWERED_WITHIN_S = 2


def is_closed(connection: socket.socket, within_s: float) -> bool:
    """By the other side, whatever came before."""
    connection.settimeout(within_s)
    deadline = time.monotonic() + within_s
    try:
        while connection.recv(1 << 16):
            if time.monotonic() > deadline:
                return False
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def send_endlessly(connection: socket.socket, piece: bytes, times: int) -> int:
    """How many bytes went out before the other side closed the connection."""
    sent = 0
    try:
        for _ in range(times):
            connection.sendall(piece)
            sent += len(piece)
    except ConnectionError:
        pass
    return sent


def limited(descriptors: int, soft_only: bool = False) -> tuple[str, ...]:
    """A command that runs another one with so many file descriptors."""
    return ("sh", "-c", f'ulimit {"-Sn" if soft_only else "-n"} {descriptors} && exec "$@"', "sh")


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """For the test's own ends of many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4000:
        pytest.skip(f"this process may open {hard} files, and the test wants 4000")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class TestHead:
    @pytest.mark.parametrize(
        "more",
        [
            lambda size: ["X: " + "x" * size],
            lambda size: [f"X-{n}: " + "x" * 1000 for n in range(size // 1010)],
            lambda size: ["x" * (size // 2) + ": " + "x" * (size // 2)],
        ],
        ids=["one long line", "many lines", "a long name"],
    )
    def test_it_may_have_64_kib_in_all(self, target: Target, more: Callable[[int], list[str]]) -> None:
        for size, status in ((60 * KIB, 200), (66 * KIB, 431), (120 * KIB, 431)):
            lines = "\r\n".join([f"GET {TABLE} HTTP/1.1", f"Host: {target.host}", *more(size)])
            head = f"{lines}\r\n\r\n".encode()
            assert target.send(head).status == status
            with target.connect() as connection:  # and the same in pieces
                for start in range(0, len(head), 7000):
                    try:
                        connection.sendall(head[start : start + 7000])
                    except ConnectionError:
                        break
                    time.sleep(0.001)
                assert read_answer(connection).status == status
                assert status == 200 or is_closed(connection, 10)

    def test_the_path_counts(self, target: Target) -> None:
        assert target.request("GET", "/v1/" + "x" * 70 * KIB).status == 431

    def test_a_pipelined_head_is_measured_by_itself(self, target: Target) -> None:
        one = f"GET {TABLE} HTTP/1.1\r\nHost: {target.host}\r\nX: {'x' * 40 * KIB}\r\n\r\n".encode()
        with target.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(one * 5)
            assert [next_answer(stream).status for _ in range(5)] == [200] * 5

    @pytest.mark.parametrize("part", ["header line", "headers", "path", "chunk extension", "trailer"])
    def test_64_mib_do_not_hold_up_others(self, target: Target, part: str) -> None:
        start = f"GET {TABLE} HTTP/1.1\r\nHost: {target.host}\r\nX: "
        if part == "path":
            start = "GET /v1/"
        if part in ("chunk extension", "trailer"):
            start = f"POST {TABLE} HTTP/1.1\r\nHost: {target.host}\r\nContent-Type: application/json\r\n"
            start += "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n" + (
                "1;" if part == "chunk extension" else "0\r\nX: "
            )
        piece = b"x: " + b"y" * (MIB - 5) + b"\r\n" if part == "headers" else b"x" * MIB
        with target.serves_others():
            for _ in range(5):
                with target.connect() as connection:
                    connection.sendall(start.encode())
                    assert send_endlessly(connection, piece, 64) < 32 * MIB, "it went on reading"
                    assert is_closed(connection, 10)


class TestTime:
    """With short times; those of a server without settings are longer."""

    @pytest.fixture(scope="class")
    @classmethod
    def hasty(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
        settings = 'request_timeout = "1s"\nidle_timeout = "3s"'
        with running_target(tmp_path_factory.mktemp("hasty"), settings) as target:
            yield target

    def test_a_head_has_an_end_in_time_however_it_dribbles(self, hasty: Target) -> None:
        with hasty.connect() as silent, hasty.connect() as dribbling:
            silent.sendall(HALF_HEAD.format(hasty.host).encode())
            dribbling.sendall(HALF_HEAD.format(hasty.host).encode())
            started = time.monotonic()
            assert read_answer(silent).status == 408
            assert is_closed(silent, 10)
            try:
                while time.monotonic() < started + 20:
                    dribbling.sendall(b"x")
                    time.sleep(0.1)
            except ConnectionError:
                pass
            assert time.monotonic() < started + 20

    def test_a_body_goes_on_in_time(self, hasty: Target) -> None:
        with hasty.connect() as connection:
            connection.sendall(HALF_BODY.format(hasty.host).encode())
            answer = read_answer(connection)
            assert answer.status == 408
            assert b"BadRequestException" in answer.body
            assert is_closed(connection, 10)

    def test_a_slow_body_is_read(self, hasty: Target) -> None:
        with hasty.connect() as connection:
            connection.sendall(HALF_BODY.format(hasty.host).encode())
            for piece in (b" ", b'"', b"a", b'"', b":", b" ", b"1", b"}"):
                time.sleep(0.4)
                connection.sendall(piece)
            assert read_answer(connection).status == 400

    def test_the_rest_of_a_body_that_was_answered_is_not_read_for_ever(self, hasty: Target) -> None:
        with hasty.connect() as connection:
            head = HALF_BODY.format(hasty.host).replace("Content-Length: 9", "Content-Length: 999999999")
            connection.sendall(head.encode())
            assert read_answer(connection).status == 413
            started = time.monotonic()
            try:
                while time.monotonic() < started + 20:
                    connection.sendall(b"x")
                    time.sleep(0.05)
            except ConnectionError:
                pass
            assert time.monotonic() < started + 20

    @pytest.mark.parametrize("requests", [0, 1])
    def test_an_idle_connection_ends(self, hasty: Target, requests: int) -> None:
        with hasty.connect() as connection:
            for _ in range(requests):
                connection.sendall(f"GET {TABLE} HTTP/1.1\r\nHost: {hasty.host}\r\n\r\n".encode())
                assert read_answer(connection).status == 200
            started = time.monotonic()
            assert is_closed(connection, 20)
            assert time.monotonic() - started > 1.5

    def test_one_that_is_used_does_not(self, hasty: Target) -> None:
        with hasty.connect() as connection:
            for _ in range(12):
                connection.sendall(f"GET {TABLE} HTTP/1.1\r\nHost: {hasty.host}\r\n\r\n".encode())
                assert read_answer(connection).status == 200
                time.sleep(0.5)

    def test_an_answer_that_nobody_reads_ends(self, hasty: Target) -> None:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(hasty.address)
            port = connection.getsockname()[1]
            one = f"GET {TABLE} HTTP/1.1\r\nHost: {hasty.host}\r\n\r\n".encode()
            connection.settimeout(1)
            with pytest.raises((TimeoutError, ConnectionError)):
                while True:
                    connection.sendall(one * 100)
            assert _wait(lambda: port not in _ports_of_clients(hasty.process), 20), (
                "it waits for a client for ever"
            )


class TestDescriptors:
    def test_a_new_client_is_answered_beside_1200_half_sent_heads(
        self, start_target: StartTarget, many_descriptors: None
    ) -> None:
        target = start_target("", prefix=limited(1024))
        with ExitStack() as stack:
            for _ in range(1200):
                connection = stack.enter_context(target.connect())
                connection.sendall(HALF_HEAD.format(target.host).encode())
            for _ in range(3):
                started = time.monotonic()
                assert target.is_well()
                assert time.monotonic() - started < ANSWERED_WITHIN_S
            target.server.wait_for(
                lambda line: "too many connections" in line and "unfinished request head" in line
            )
            with target.server.client() as client:
                client.create_namespace("opens_files")

    def test_files_can_be_opened_beside_idle_connections(
        self, start_target: StartTarget, many_descriptors: None
    ) -> None:
        target = start_target("", prefix=limited(256))
        with ExitStack() as stack:
            idle = [stack.enter_context(target.connect()) for _ in range(246)]
            for connection in idle[::2]:
                with suppress(ConnectionError):  # it was ended for a later one
                    connection.sendall(f"GET {TABLE} HTTP/1.1\r\nHost: {target.host}\r\n\r\n".encode())
            with target.server.client() as client:
                for n in range(5):
                    client.create_namespace(f"ns{n}")
                    client.create_table((f"ns{n}",), "t")
                    assert_ok(client.get(f"namespaces/ns{n}/tables"))
                    assert_ok(client.get("/health/ready"))
            assert target.process.num_fds() < 256

    def test_working_connections_are_not_ended_for_new_ones(self, start_target: StartTarget) -> None:
        target = start_target("max_connections = 8")
        with ExitStack() as stack:
            bodies = [stack.enter_context(target.connect()) for _ in range(8)]
            for connection in bodies:
                head = HALF_BODY.format(target.host).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n")
                connection.sendall(head.encode())
                assert b" 100 " in connection.recv(100), "the application waits for the rest"
            assert target.request("GET", TABLE).status == 503
            for connection in bodies:
                connection.sendall(b'"a": 11}')
                assert read_answer(connection).status == 400
            target.server.wait_for(lambda line: "too many connections" in line and "refused" in line)

    def test_the_soft_limit_is_raised(self, start_target: StartTarget, many_descriptors: None) -> None:
        target = start_target("", prefix=limited(256, soft_only=True))
        with ExitStack() as stack:
            connections = [stack.enter_context(target.connect()) for _ in range(1000)]
            for connection in connections:
                connection.sendall(f"GET {TABLE} HTTP/1.1\r\nHost: {target.host}\r\n\r\n".encode())
            assert {read_answer(connection).status for connection in connections} == {200}
        assert "too many connections" not in target.server.text()


GARBAGE = [
    b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50,
    b"\x00" * 100, b"\xff" * 1000, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n",
    b"\r\n" * 50_000,
    b"GET / HTTP/9.9\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
    b"GET \xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET http:// HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n\x00\x01\x02",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x00\x01\x02",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nPRI * HTTP/2.0\r\n\r\n",
    b"HEAD /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense", b"GET /v1/config\r\n", b"GET /",
]  # fmt: skip


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda each: repr(each[:40]))
def test_garbage_is_refused_and_nobody_notices(target: Target, garbage: bytes) -> None:
    """No answer of it is a 5xx; that there is no traceback is looked at when the target ends."""
    for reset in (False, True):
        with target.connect() as connection:
            connection.sendall(garbage)
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                continue
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(10)
            said = b""
            while chunk := connection.recv(1 << 16):
                said += chunk
            assert (
                not said or b"HTTP/1.1 4" in said.partition(b"\r\n")[0] or b" 200 " in said.partition(b"\r\n")[0]
            )
            assert b"HTTP/1.1 5" not in said
    assert target.is_well()


def _ports_of_clients(process: psutil.Process) -> set[int]:
    return {each.raddr.port for each in process.net_connections("tcp") if each.raddr}


def _wait(happened: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not (done := happened()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return done
