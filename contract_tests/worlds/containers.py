"""The bridge in a container."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from contract_tests.worlds.bridge import BANNER, SECONDS, Client
from contract_tests.worlds.engine import PROJECT, VERSIONS, run_docker
from contract_tests.worlds.stand_ins import python_image

USER = "10001:10001"
MEMORY = "512m"


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
