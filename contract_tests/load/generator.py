"""Requests on kept connections, as many as the server answers: `wrk` where it is, asyncio otherwise."""

import asyncio
import re
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

WRK = shutil.which("wrk")
SCRIPT = Path(__file__).with_name("report.lua")


@dataclass(frozen=True)
class Target:
    url: str
    body: bytes | None = None

    def request(self) -> bytes:
        parts = urlsplit(self.url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        head = f"{'GET' if self.body is None else 'POST'} {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        if self.body is None:
            return f"{head}\r\n".encode()
        kind = "Content-Type: application/json\r\n"
        return f"{head}{kind}Content-Length: {len(self.body)}\r\n\r\n".encode() + self.body


@dataclass(frozen=True)
class Rate:
    per_second: float
    p50_ms: float


def measure(target: Target, connections: int, seconds: float) -> Rate:
    """Raises when an answer is not 200."""
    if WRK:
        return _wrk(WRK, target, connections, seconds)
    return asyncio.run(_asyncio(target, connections, seconds))


def background(target: Target, connections: int, seconds: int) -> subprocess.Popen[bytes] | None:
    """Load that goes on beside the test, answers of every status included."""
    if not WRK:
        return None
    command = [WRK, "-t1", f"-c{connections}", f"-d{seconds}s", target.url]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def _wrk(wrk: str, target: Target, connections: int, seconds: float) -> Rate:
    command = [wrk, "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", str(SCRIPT), target.url]
    body = [] if target.body is None else ["--", target.body.decode()]
    said = subprocess.run([*command, *body], capture_output=True, text=True, check=True).stdout
    match = re.search(r"^report (\d+) (\d+) ([\d.]+) (\d+)$", said, re.MULTILINE)
    if not match or int(match[4]):
        raise RuntimeError(f"{target.url} did not answer every request with 200:\n{said}")
    return Rate(int(match[1]) / int(match[2]) * 1e6, float(match[3]) / 1e3)


async def _asyncio(target: Target, connections: int, seconds: float) -> Rate:
    end = time.perf_counter() + seconds
    parts = await asyncio.gather(*[_ask(target, end) for _ in range(connections)])
    took = [one for part in parts for one in part]
    return Rate(len(took) / seconds, statistics.median(took) * 1e3)


async def _ask(target: Target, end: float) -> list[float]:
    parts = urlsplit(target.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=2**24)
    request, took = target.request(), []
    while (start := time.perf_counter()) < end:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(f"{target.url} answered {head.decode()}")
        if length := re.search(rb"content-length: (\d+)", head):
            await reader.readexactly(int(length[1]))
        else:
            await reader.readuntil(b"\r\n0\r\n\r\n")
        took.append(time.perf_counter() - start)
    writer.close()
    return took
