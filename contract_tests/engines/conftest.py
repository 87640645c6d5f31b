import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from contract_tests.engines.lake import Lake, fill
from contract_tests.worlds.bridge import Server

Connect = Callable[[str, str], str]


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("lake")
    fill(folder / "tables")
    with Server(folder / "tables", "--port", "0", cwd=folder) as server:
        yield Lake(folder / "tables", server.url)


@pytest.fixture(scope="session")
def connect(lake: Lake) -> Connect:
    """What `irc-bridge connect ENGINE --output OUTPUT` prints for the running server."""

    def printed(engine: str, output: str) -> str:
        port = lake.url.rsplit(":", 1)[1]
        command = [sys.executable, "-m", "irc_bridge", "connect", engine, "--port", port, "--output", output]
        return subprocess.run(command, capture_output=True, check=True, text=True, cwd=lake.root.parent).stdout

    return printed
