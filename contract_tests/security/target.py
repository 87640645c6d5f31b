"""A bridge that a test attacks: what may not happen to it, and raw requests."""

import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import psutil

from contract_tests.security.other_client import Waits
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.writer import files_below, write

SECONDS = 60
SLOWER_AT_MOST = 5
"""The 99th percentile of what other clients wait during an attack, against that of a quiet time."""
NOISE_S = 0.05
"""A quiet percentile below this is taken for this: tests share a machine with others, and an attack is short."""
QUIET_S = 0.5
TABLE = "/v1/main/namespaces/default/tables/t"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes


@dataclass(frozen=True)
class Target:
    """A bridge over a folder with the table `t`, and a file outside of that folder."""

    server: Server
    root: Path
    canary: Path
    token: Mapping[str, str] = field(default_factory=dict)
    """The header that shows the token of the bridge, if it has one."""

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.server.url)
        return parts.hostname or "", parts.port or 0

    @property
    def host(self) -> str:
        return urlsplit(self.server.url).netloc

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self.server.process.pid)

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, SECONDS)

    def send(self, request: bytes) -> Answer:
        """The bytes as they are, on a connection of their own."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_answer(connection)

    def request(self, method: str, path: str, body: bytes = b"", /, **headers: str) -> Answer:
        """A request with these headers, the host of the bridge where none is among them, and nothing else. The
        underscores of a name stand for hyphens."""
        lines = {"Host": self.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body:
            lines["Content-Length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body)

    def is_well(self) -> bool:
        return self.request("GET", TABLE, **self.token).status == 200

    @contextmanager
    def serves_others(self) -> Iterator[None]:
        """Another client loads the table meanwhile and waits little longer than in a quiet time."""
        with _other_client(f"{self.server.url}{TABLE}") as others:
            others.wait(QUIET_S)
            before = others.waits()
            yield
            attacked = others.waits()
            if not attacked.answers:
                # the attack was over before the first answer, whose wait tells whether it was held up
                others.wait(QUIET_S)
                attacked = others.waits()
            others.wait(QUIET_S)
            quiet_s = max(before.p99_s, others.waits().p99_s, NOISE_S)
        assert attacked.answers > 0
        assert attacked.p99_s <= SLOWER_AT_MOST * quiet_s, (before, attacked)


class _OtherClient:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def wait(self, seconds: float) -> None:
        """The time in which it measures a quiet server."""
        time.sleep(seconds)

    def waits(self) -> Waits:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answers, p99_s, longest_s = self._process.stdout.readline().split()
        return Waits(int(answers), float(p99_s), float(longest_s))


@contextmanager
def _other_client(url: str) -> Iterator[_OtherClient]:
    command = [sys.executable, "-m", "contract_tests.security.other_client", url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            others = _OtherClient(process)
            while others.waits().answers == 0:
                assert process.poll() is None
                others.wait(0.05)
            yield others
        finally:
            process.kill()


@contextmanager
def running_target(
    folder: Path, settings: str = "", *arguments: str, more: str = "", prefix: tuple[str, ...] = ()
) -> Iterator[Target]:
    """A bridge below `folder`, with these settings for `[server]` and `more` sections. At the end it must be
    alive, have logged no traceback, and have changed neither the table `t` nor the canary. `prefix` is a command
    that runs the bridge's own."""
    root, canary = folder / "tables", folder / "outside" / "canary"
    write(root / "t.lance")
    canary.parent.mkdir()
    canary.write_text("sing")
    before = contents_below(root / "t.lance")
    configuration = f'[server]\n{settings}\n[warehouses.main]\nroot = "{root}"\n{more}'
    (folder / "irc-bridge.toml").write_text(configuration)
    with Server("--port", "0", *arguments, cwd=folder, prefix=prefix) as server:
        known = tomllib.loads(settings).get("token")
        target = Target(server, root, canary, {"Authorization": f"Bearer {known}"} if known else {})
        assert target.is_well()
        yield target
        assert target.is_well()
    assert "Traceback" not in (text := server.text()), text[text.index("Traceback") :][:5000]
    assert contents_below(root / "t.lance") == before
    assert canary.read_text() == "sing"


def read_answer(connection: socket.socket) -> Answer:
    """The only answer, or the last one, that comes by the connection."""
    with connection.makefile("rb") as stream:
        return next_answer(stream)


def next_answer(stream: IO[bytes]) -> Answer:
    status = int(stream.readline().split()[1])
    head = b""
    while (line := stream.readline()) not in (b"\r\n", b""):
        head += line
    headers = BytesParser().parsebytes(head)
    length = headers["content-length"]
    return Answer(status, headers, stream.read(int(length)) if length else b"")


def contents_below(folder: Path) -> dict[str, bytes]:
    return {path: (folder / path).read_bytes() for path in files_below(folder) if (folder / path).is_file()}
