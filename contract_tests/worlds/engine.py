"""The container engine of this machine, asked by its command, and what the summary of a run says about it."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from contract_tests.worlds.java import CannotRun

PROJECT = Path(__file__).parents[2]
NOTES: list[str] = []
"""What the summary of this run shall still say about containers: the engine, stand-ins, sizes."""
VERSIONS = dict(
    line.split("=", 1) for line in (PROJECT / "docker/.env").read_text().splitlines() if line[:1] not in ("", "#")
)
BUILD_S = 1500


def note(text: str) -> None:
    NOTES.append(text)


@cache
def docker() -> str:
    """The path of the docker client. CannotRun where no engine answers it."""
    candidates = dict.fromkeys(filter(None, ["/usr/bin/docker", shutil.which("docker")]))
    reason = "there is no docker command (on Debian and Ubuntu: apt install docker.io docker-compose)"
    for client in candidates:
        if not Path(client).exists():
            continue
        done = run_command([client, "version", "--format", "{{.Server.Version}}"])
        if done.returncode == 0:
            note(f"engine: docker {done.stdout.strip()}")
            return client
        reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "docker version failed"
    raise CannotRun(f"no container engine: {reason}")


def run_docker(*arguments: str | Path, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
    done = run_command([docker(), *map(str, arguments)], **more)
    assert not check or done.returncode == 0, f"docker {arguments[0]}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done


def run_command(command: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DOCKER_BUILDKIT": "1", **more.pop("env", {})}
    given = {"capture_output": True, "text": True, "check": False, "timeout": BUILD_S, **more}
    return subprocess.run(command, env=environment, **given)


def has_image(name: str) -> bool:
    return run_docker("image", "inspect", name, check=False).returncode == 0


def is_stand_in(name: str) -> bool:
    labels = run_docker("image", "inspect", "--format", "{{json .Config.Labels}}", name).stdout
    return "irc-bridge.stand-in" in labels


def require_image(name: str, stand_in: Callable[[], str]) -> None:
    """Leaves the image in the engine. `stand_in` builds one of the name and says what it is made of."""
    if not has_image(name):
        pulled = run_docker("pull", "--quiet", name, check=False)
        if pulled.returncode != 0:
            made_of = stand_in()
            note(f"{name} cannot be pulled: its stand-in is made of {made_of}")
            return
    if is_stand_in(name):
        note(f"{name} is a stand-in that an earlier run built")
