"""Servers that tests start never outlive the tests, however these end."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

TESTS = """
import sys, time
from pathlib import Path
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.process import free_port, serving

port = str(free_port())
command = [sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1"]
with (
    Server("tables", "--port", "0", "--workers", "2", cwd=Path(sys.argv[1])) as bridge,
    serving(command, f"http://127.0.0.1:{port}") as other,
):
    print(bridge.url, bridge.process.pid, other.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_they_die_with_the_tests(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-c", TESTS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tests:
        assert tests.stdout
        pids = [int(pid) for pid in tests.stdout.readline().split()[1:]]
        servers = [psutil.Process(pid) for pid in pids]
        servers += [child for each in servers for child in each.children(recursive=True)]
        assert len(servers) >= 4
        tests.send_signal(how)
        gone, alive = psutil.wait_procs(servers, timeout=20)
    assert not alive
    assert len(gone) == len(servers)
