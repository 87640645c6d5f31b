"""Processes that count rows for this one. They are started when they are needed and end by themselves.

a predicate that                       what becomes of it
needs more memory than BUDGET_BYTES    the process ends, 400
makes native code crash                the same
takes longer than SECONDS              the kernel ends the process, 400
"""

import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from irc_bridge import errors
from irc_bridge.errors import InvalidInput, ServiceUnavailable
from irc_bridge.lance_store.failures import Missing

log = logging.getLogger(__name__)

_START_S = 60
_GRACE_S = 5
_ATTEMPTS = 3
_FROM_OUTSIDE = (0, -signal.SIGKILL, -signal.SIGTERM)
"""How a process ends that had nothing to do for a while, or that somebody ended."""
_ENVIRONMENT = {
    "TOKIO_WORKER_THREADS": "4",
    "LANCE_CPU_THREADS": "4",
    "LANCE_DEFAULT_IO_BUFFER_SIZE": str(256 * 1024**2),
    "RUST_BACKTRACE": "0",
}

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Limits:
    processes: int = 2
    seconds: int = 30
    memory: int = 1024**3
    """In bytes; what a process takes before it counts comes on top."""


class _Ended(Exception):
    """A process ended instead of answering."""

    def __init__(self, code: int) -> None:
        self.code = code


class _Process:
    def __init__(self, limits: Limits) -> None:
        self._seconds = limits.seconds
        own = {key: value for key, value in os.environ.items() if not key.startswith("IRC_BRIDGE__")}
        # others can read a command line and an environment: what a request holds goes through the pipe
        numbers = [str(limits.seconds), str(limits.memory)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "irc_bridge.lance_store.counting_process", *numbers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**own, **_ENVIRONMENT},
            bufsize=0,
        )
        self._read(_START_S)

    def ask(self, request: Json) -> Json:
        assert self._process.stdin is not None
        left = json.dumps(request).encode() + b"\n"
        try:
            while left:
                left = left[os.write(self._process.stdin.fileno(), left) :]
        except BrokenPipeError:
            raise self.end() from None
        answer: Json = json.loads(self._read(self._seconds + _GRACE_S))
        return answer

    def end(self, code: int | None = None) -> _Ended:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        ended_with = self._process.wait()
        return _Ended(ended_with if code is None else code)

    def _read(self, seconds: float) -> bytes:
        """One line."""
        assert self._process.stdout is not None
        deadline, line = time.monotonic() + seconds, b""
        ready = select.poll()
        ready.register(self._process.stdout, select.POLLIN)
        while not line.endswith(b"\n"):
            if not ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise self.end(-signal.SIGALRM)
            some = os.read(self._process.stdout.fileno(), 65536)
            if not some:
                raise self.end()
            line += some
        return line


class CountingPool:
    def __init__(self, limits: Limits = Limits()) -> None:
        self._limits = limits
        self._places = threading.Semaphore(limits.processes)
        self._idle: list[_Process] = []

    def count(self, uri: str, options: Mapping[str, str], location: str, version: int, predicate: str) -> int:
        """InvalidInput, ServiceUnavailable, Missing and what reading the table raises."""
        request = {
            "uri": uri,
            "options": dict(options),
            "location": location,
            "version": version,
            "predicate": predicate,
        }
        with self._places:
            answer = self._answer_to(request)
        if "count" in answer:
            return int(answer["count"])
        if answer["error"] == Missing.__name__:
            raise Missing(answer["message"])
        raise getattr(errors, answer["error"])(answer["message"])

    def close(self) -> None:
        while (process := self._idle_process()) is not None:
            process.end()

    def _answer_to(self, request: Json) -> Json:
        for _ in range(_ATTEMPTS):
            process = self._idle_process() or self._start()
            try:
                answer = process.ask(request)
            except _Ended as end:
                if end.code in _FROM_OUTSIDE:
                    continue
                raise self._fault(end) from None
            self._idle.append(process)
            return answer
        raise ServiceUnavailable("The process that counts rows is ended by somebody each time: try again")

    def _idle_process(self) -> _Process | None:
        with suppress(IndexError):
            return self._idle.pop()
        return None

    def _start(self) -> _Process:
        try:
            return _Process(self._limits)
        except (_Ended, OSError) as error:
            log.warning("the process that counts rows did not start: %r", error)
            raise ServiceUnavailable("The process that counts rows did not start: try again") from error

    def _fault(self, end: _Ended) -> InvalidInput:
        if end.code == -signal.SIGALRM:
            why = f"took more than {self._limits.seconds} seconds"
        else:
            memory = self._limits.memory // 1024**2
            why = f"took more than {memory} MiB of memory, or the predicate is nested too deep for Lance"
        return InvalidInput(f"predicate: counting the rows {why}. Use a simpler one")


COUNTING = CountingPool()
"""One for all warehouses of this process: their number of processes is bounded together."""
