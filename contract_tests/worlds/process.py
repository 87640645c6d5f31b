"""A foreign server as a process of this machine: started, waited for, ended."""

import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

BEHIND = 10
LAST = ["nice", "-n", str(BEHIND)]
"""Before a command that keeps all processors busy. Tests that wait for a disk or a server take little of them, and
with Spark beside them would wait for each little bit."""


class Guard:
    """Ends a process and its children when this process dies and can do so no more. For a process with a session
    of its own."""

    def __init__(self, process: subprocess.Popen[Any]) -> None:
        # the pipe closes when this process dies, however it dies; a line says that there is nothing left to do
        watch = 'read -r _ || kill -KILL "-$1"'
        self._watcher = subprocess.Popen(
            ["sh", "-c", watch, "sh", str(process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        if self._watcher.poll() is None:
            self._watcher.communicate(b"\n")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(
    command: Sequence[str], ready: str, env: Mapping[str, str] | None = None, seconds: float = 60
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs `command` until the block ends; the block begins when the URL `ready` answers anything at all."""
    with tempfile.TemporaryFile() as log:
        environment = {**os.environ, **(env or {})}
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
        guard = Guard(process)
        try:
            if not _answers(process, ready, seconds):
                log.seek(0)
                said = log.read().decode(errors="replace")[-4000:]
                raise RuntimeError(f"{command[0]} did not answer at {ready}. It said:\n{said}")
            yield process
        finally:
            # what it keeps is thrown away, so it need not take its leave of those who are connected
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            guard.release()


def _answers(process: subprocess.Popen[bytes], url: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return True
        except urllib.error.HTTPError as answered:
            answered.close()
            return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    return False
