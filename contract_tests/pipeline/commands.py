"""Commands of irc-bridge as processes with a Spark of their own."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from contract_tests.pipeline.cluster import Environment
from contract_tests.worlds.process import LAST

BRIDGE = [sys.executable, "-m", "irc_bridge"]
SECONDS = 120


@contextmanager
def running(folder: Path, command: list[str], environment: Environment) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen([*LAST, *command], cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(folder: Path, command: list[str], environment: Environment) -> tuple[int, str, str]:
    """Its exit code and what it said, on both streams."""
    with running(folder, command, environment) as process:
        said = process.communicate(timeout=SECONDS)
        return process.returncode, *said


def until(true: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
