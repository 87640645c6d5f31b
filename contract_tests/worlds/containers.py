"""Containers: the engine of this machine, the images that tests need, and the bridge in a container.

An image that the engine has or can pull is taken as it is. Where it cannot be pulled, a stand-in of the same name
is built from package registries, and `NOTES` says so.
"""

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from contract_tests.worlds.bridge import BANNER, SECONDS, Client
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.s3 import versitygw

PROJECT = Path(__file__).parents[2]
NOTES: list[str] = []
"""What the summary of this run shall still say about containers: the engine, stand-ins, sizes."""
USER = "10001:10001"
MEMORY = "512m"
VERSIONS = dict(
    line.split("=", 1) for line in (PROJECT / "docker/.env").read_text().splitlines() if line[:1] not in ("", "#")
)
PYTHON = f"python:{VERSIONS['PYTHON_VERSION']}"
SEAWEEDFS = f"chrislusf/seaweedfs:{VERSIONS['SEAWEEDFS_VERSION']}"
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
        done = _run([client, "version", "--format", "{{.Server.Version}}"])
        if done.returncode == 0:
            note(f"engine: docker {done.stdout.strip()}")
            return client
        reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "docker version failed"
    raise CannotRun(f"no container engine: {reason}")


def run_docker(*arguments: str | Path, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
    done = _run([docker(), *map(str, arguments)], **more)
    assert not check or done.returncode == 0, f"docker {arguments[0]}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done


def _run(command: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
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


def python_image() -> str:
    """The image that the Dockerfile begins with."""
    require_image(PYTHON, _debian_python)
    return PYTHON


def _debian_python() -> str:
    """A Debian with Python, by mmdebstrap. It has the certificates of this machine, so it is for tests alone."""
    tool, sources = shutil.which("mmdebstrap"), Path("/etc/apt/sources.list.d/debian.sources")
    if tool is None or not sources.exists() or os.geteuid() != 0:
        raise CannotRun(f"{PYTHON} cannot be pulled, and mmdebstrap cannot build a stand-in on this machine")
    certificates = (
        'cp /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/" 2>/dev/null || :'
    )
    names = 'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED; ln -sf python3 "$1/usr/bin/python"'
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as work:
        Path(work).chmod(0o755)
        archive = Path(work) / "base.tar"
        made = _run(
            [
                *(tool, "--quiet", "--mode=root", "--variant=apt"),
                "--include=ca-certificates,python3,python3-pip,python3-venv",
                *("--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/doc/*"),
                f'--customize-hook={certificates}; chroot "$1" update-ca-certificates',
                f"--customize-hook={names}",
                *("bookworm", str(archive), str(sources)),
            ],
            env={"TMPDIR": work},
        )
        if made.returncode:
            raise CannotRun(f"{PYTHON} cannot be pulled, and mmdebstrap failed: {made.stderr.strip()[-200:]}")
        changes = ("ENV LANG=C.UTF-8", "ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", 'CMD ["python3"]')
        labels = ("LABEL irc-bridge.stand-in=debian",)
        run_docker("import", *(f"--change={each}" for each in (*changes, *labels)), archive, PYTHON)
    return "Debian 12 with Python 3.11, by mmdebstrap"


def seaweedfs_image() -> str:
    require_image(SEAWEEDFS, _versitygw_image)
    return SEAWEEDFS


_WEED = """#!/bin/sh
# Takes the arguments of `weed mini` and runs versitygw: the keys are in the file of -s3.config.
for argument; do case "$argument" in -dir=*) dir=${argument#*=};; -s3.config=*) config=${argument#*=};; esac; done
value() { sed -n "s/.*\\"$1\\": *\\"\\([^\\"]*\\)\\".*/\\1/p" "$config" | head -n 1; }
export ROOT_ACCESS_KEY="$(value accessKey)" ROOT_SECRET_KEY="$(value secretKey)"
mkdir -p "$dir/buckets" && exec versitygw --port :8333 --keep-alive --quiet posix "$dir/buckets"
"""


def _versitygw_image() -> str:
    with tempfile.TemporaryDirectory() as work:
        shutil.copy(versitygw(), Path(work) / "versitygw")
        (Path(work) / "weed").write_text(_WEED)
        (Path(work) / "Dockerfile").write_text(
            f"FROM {python_image()}\nCOPY --chmod=755 versitygw weed /usr/local/bin/\n"
            'ENTRYPOINT ["weed"]\nLABEL irc-bridge.stand-in=versitygw\n'
        )
        run_docker("build", "--quiet", "-t", SEAWEEDFS, work)
    return "versitygw, by go install"


@cache
def bridge_image(target: str) -> str:
    """The image of the Dockerfile's target, built of this checkout."""
    name = {"server": "irc-bridge", "jobs": "irc-bridge-jobs"}[target] + f":{VERSIONS['IRC_BRIDGE_VERSION']}"
    arguments = ("--target", target, "--build-arg", f"BASE={python_image()}", "-t", name)
    run_docker("build", "--quiet", "-f", PROJECT / "docker/Dockerfile", *arguments, PROJECT)
    return name


class ContainerServer:
    """`irc-bridge serve` in a container as locked up as one can be; has the manners of `Server`."""

    def __init__(
        self,
        configuration: Path,
        *arguments: str,
        folders: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
        network: str | None = None,
    ) -> None:
        """`folders` are there under their own names; those of secrets belong to them too."""
        from testcontainers.core.container import DockerContainer

        self.cwd = configuration.parent
        container = (
            DockerContainer(bridge_image("server"))
            .with_command(["serve", *arguments])
            .with_exposed_ports(8181)
            .with_tmpfs_mount("/tmp")
            .with_volume_mapping(str(configuration), "/etc/irc-bridge/irc-bridge.toml", "ro")
            .with_kwargs(
                read_only=True,
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                user=USER,
                mem_limit=MEMORY,
                **({"network": network} if network else {}),
            )
        )
        for name, value in (environment or {}).items():
            container = container.with_env(name, value)
        for folder in folders:
            container = container.with_volume_mapping(str(folder), str(folder), "rw")
        self.container = container.start()
        self.docker: Any = self.container.get_wrapped_container()
        self._last_text: str | None = None
        """The log, once the container is gone."""
        try:
            self.wait_for(lambda line: BANNER.search(line) is not None)
        except BaseException:
            self.container.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._last_text = self.text()
        self.container.stop()

    @property
    def url(self) -> str:
        """A container that was started again has another port."""
        self.docker.reload()
        return f"http://127.0.0.1:{self.docker.ports['8181/tcp'][0]['HostPort']}"

    def client(self, prefix: str | None = "main", token: str | None = None) -> Client:
        return Client(self.url, prefix, token)

    def text(self) -> str:
        if self._last_text is not None:
            return self._last_text
        said: bytes = self.docker.logs()
        return said.decode(errors="replace")

    def wait_for(self, wanted: Callable[[str], bool]) -> str:
        """The first line of the log that is wanted."""
        lines = iter(self.docker.logs(stream=True, follow=True))
        timer = threading.Timer(SECONDS, self.docker.kill)
        timer.start()
        rest = b""
        try:
            for part in lines:
                *whole, rest = (rest + part).split(b"\n")
                for line in whole:
                    text: str = line.decode(errors="replace")
                    if wanted(text):
                        return text
        finally:
            timer.cancel()
        raise AssertionError(f"the container never said it:\n{self.text()}")

    def kill(self) -> None:
        self.docker.kill()
        self.docker.wait()

    def start_again(self) -> None:
        self.docker.start()
