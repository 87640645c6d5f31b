"""A foreign server as a process of this machine: started, waited for, ended."""

import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


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
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        try:
            if not _answers(process, ready, seconds):
                log.seek(0)
                said = log.read().decode(errors="replace")[-4000:]
                raise RuntimeError(f"{command[0]} did not answer at {ready}. It said:\n{said}")
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


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
