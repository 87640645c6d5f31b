"""What a faulty upstream does with a request."""

import threading
from collections.abc import Iterable

from contract_tests.upstream.faulty import Handler, Headers, Received, Reply, Wire, written

JSON = [("Content-Type", "application/json")]


def answer(status: int = 200, body: bytes = b"{}", headers: Iterable[tuple[str, str]] = JSON) -> Reply:
    given = list(headers)
    return lambda wire: wire.send(written(wire.received.method, status, given, body))


def raw(content: bytes) -> Reply:
    """Exactly these bytes; the connection stays open."""
    return lambda wire: wire.send(content)


def never() -> Reply:
    """A black hole: the request is taken, and nothing ever said."""
    return Wire.wait_for_end


def close() -> Reply:
    """The connection ends before an answer."""
    return Wire.close


def reset() -> Reply:
    return Wire.reset


def half(body: bytes, ending: Reply = Wire.close) -> Reply:
    """Half of the body that Content-Length promises, then the ending. An answer to HEAD has no body."""

    def reply(wire: Wire) -> None:
        head, end, content = written(wire.received.method, 200, JSON, body).partition(b"\r\n\r\n")
        wire.send(head + end + content[: len(content) // 2])
        ending(wire)

    return reply


def half_chunked(body: bytes, ending: Reply = Wire.close) -> Reply:
    """All of the body in one chunk, without the chunk that would end it. An answer to HEAD has no body."""

    def reply(wire: Wire) -> None:
        wire.send(_CHUNKED if wire.received.method == "HEAD" else _CHUNKED + b"%x\r\n%s\r\n" % (len(body), body))
        ending(wire)

    return reply


def half_head(ending: Reply = Wire.close) -> Reply:
    def reply(wire: Wire) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Ty")
        ending(wire)

    return reply


def trickle(body: bytes, seconds: float, at_once: int = 0) -> Reply:
    """One byte at a time, with a pause after each, behind what comes at once."""

    def reply(wire: Wire) -> None:
        content = written(wire.received.method, 200, JSON, body)
        wire.send(content[:at_once])
        for byte in content[at_once:]:
            wire.send(bytes([byte]))
            threading.Event().wait(seconds)

    return reply


def streamed(size: int, chunk: bytes = b"0123456789abcdef" * 4096, ending: Reply | None = None) -> Reply:
    """A chunked body of at least this size. With an ending it has no last chunk."""

    def reply(wire: Wire) -> None:
        wire.send(_CHUNKED)
        for _ in range(-(-size // len(chunk))):
            wire.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        if ending is None:
            wire.send(b"0\r\n\r\n")
        else:
            ending(wire)

    return reply


def held(until: threading.Event, then: Reply) -> Reply:
    """Waits for the test, then goes on."""

    def reply(wire: Wire) -> None:
        until.wait(30)
        then(wire)

    return reply


def done_but(then: Reply) -> Reply:
    """The server behind does what was asked; its answer is lost, and this comes instead."""

    def reply(wire: Wire) -> None:
        wire.ask_behind()
        then(wire)

    return reply


def done_but_half() -> Reply:
    """The server behind does what was asked; half of its answer comes."""

    def reply(wire: Wire) -> None:
        status, headers, body = wire.ask_behind()
        content = written(wire.received.method, status, headers, body)
        wire.send(content[: len(content) - (len(body) + 1) // 2])
        wire.close()

    return reply


def in_turn(*replies: Reply | None) -> Handler:
    """To the first request the first, and so on; to all further ones the last."""
    left = list(replies)
    lock = threading.Lock()

    def handle(_: Received) -> Reply | None:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return handle


def error(status: int, kind: str, headers: Headers | None = None) -> Reply:
    """As Iceberg servers put it."""
    body = f'{{"error":{{"message":"no luck","type":"{kind}","code":{status}}}}}'.encode()
    return answer(status, body, JSON + (headers or []))


_CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
