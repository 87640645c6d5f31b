import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contract_tests.worlds.bridge import Server

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `irc-bridge ARGUMENTS` in an empty folder; keyword arguments are its environment."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("IRC_BRIDGE__")}

    def run_command(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "irc_bridge", *arguments],
            cwd=tmp_path,
            env=own | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run_command


class Demo(Server):
    command = "demo"


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Runs in a folder whose settings it must not read."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "irc-bridge.toml").write_text('server.host = "192.0.2.1"\n')
    with Demo("--port", "0", cwd=folder) as server:
        server.wait_for(lambda line: "Ctrl-C" in line)
        yield server
