"""`.ci/with-engine`, as far as it can be tried without starting an engine."""

import os
import subprocess
from pathlib import Path

import pytest

from contract_tests.worlds.engine import PROJECT


@pytest.mark.parametrize("code", [0, 7])
def test_where_an_engine_answers_the_command_simply_runs(tmp_path: Path, code: int) -> None:
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\nexit 0\n")
    client.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "DOCKER_HOST": f"unix://{tmp_path}/docker.sock",
    }
    done = subprocess.run(
        [PROJECT / ".ci/with-engine", "sh", "-c", f'echo "$DOCKER_HOST"; exit {code}'],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code
    assert done.stdout.strip() == environment["DOCKER_HOST"], "it starts no engine of its own"
