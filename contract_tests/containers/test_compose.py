"""docker/compose.yaml and the commands of docker/README.md."""

import os
import re
import shlex
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema

from contract_tests.worlds.engine import BUILD_S, PROJECT, VERSIONS, docker, run_docker
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.process import free_port
from contract_tests.worlds.stand_ins import PYTHON, iceberg_rest_image, seaweedfs_image, trino_image
from irc_bridge.backends import settings_models
from irc_bridge.backends.upstream.settings import UpstreamSettings
from irc_bridge.settings import load_settings

FILE = PROJECT / "docker/compose.yaml"
README = (PROJECT / "docker/README.md").read_text("utf-8")
PROFILES = ["spark", "trino", "upstream", "jobs"]
PROJECT_NAME = VERSIONS["COMPOSE_PROJECT_NAME"]
NAME = "irc-bridge-tests"
COMMANDS: list[str] = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]
COUNTED = 135
"""The rows of the sample table `orders`."""
SECONDS = 180


def compose_command() -> list[str]:
    """Compose v2 where the client has it, or else docker-compose."""
    if run_docker("compose", "version", check=False).returncode == 0:
        return [docker(), "compose"]
    for found in (shutil.which("docker-compose", path="/usr/bin"), shutil.which("docker-compose")):
        if found:
            return [found]
    raise CannotRun("no docker compose (on Debian and Ubuntu: apt install docker-compose)")


class Compose:
    """Runs commands of the README in a shell, in a project of this test alone."""

    def __init__(self) -> None:
        self.port = free_port()
        self._environment = {
            **os.environ,
            "COMPOSE_PROJECT_NAME": NAME,
            "BRIDGE_PORT": str(self.port),
            "UPSTREAM_PORT": str(upstream_port := free_port()),
            "DOCKER_BUILDKIT": "1",
            "COMPOSE_DOCKER_CLI_BUILD": "1",
        }
        self.upstream = f"http://127.0.0.1:{upstream_port}"
        self._compose = shlex.join(compose_command())

    def run(self, line: str, cwd: Path = PROJECT) -> str:
        """What the command prints. It must end well."""
        shown = re.sub(r"^docker compose ", f"{self._compose} ", line)
        shown = re.sub(r"^docker ", f"{shlex.quote(docker())} ", shown)
        done = subprocess.run(
            shown.replace(f"{PROJECT_NAME}_bucket", f"{NAME}_bucket"),
            shell=True,
            cwd=cwd,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_S,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout


TRIED: set[str] = set()


def command(words: str) -> str:
    """The command of the README that has these words. It may be there several times."""
    found = {line for line in COMMANDS if words in line}
    assert len(found) == 1, found
    TRIED.update(found)
    return found.pop()


@pytest.fixture(scope="module")
def compose(engine: str) -> Compose:
    try:
        seaweedfs_image()
        return Compose()
    except CannotRun as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def running(compose: Compose) -> Iterator[Compose]:
    """The services without a profile, by the first command of the README."""
    try:
        compose.run(command("compose.yaml up -d --build"))
        yield compose
    finally:
        compose.run(command("down -v"))


@pytest.mark.parametrize("profile", ["", *PROFILES])
def test_the_configuration_of_every_profile(compose: Compose, profile: str) -> None:
    flag = f"--profile {profile}" if profile else ""
    printed = yaml.safe_load(compose.run(f"docker compose -f {FILE} {flag} config"))
    images = {name: service.get("image") for name, service in printed["services"].items()}
    assert all(re.search(r":\d[\w.-]*$", image) for image in images.values()), images
    declared = yaml.safe_load(FILE.read_text())["services"]
    assert {each for service in declared.values() for each in service.get("profiles", ())} == set(PROFILES)


def test_the_versions_are_in_one_place() -> None:
    used = set(re.findall(r"\$\{([A-Z_]+)\}", FILE.read_text()))
    assert used == {name for name in VERSIONS if name.endswith("_VERSION")}
    dockerfile = (PROJECT / "docker/Dockerfile").read_text()
    for name, value in re.findall(r"^ARG ([A-Z]+_VERSION)=(\S+)$", dockerfile, re.MULTILINE):
        assert VERSIONS[name] == value
    assert f"ARG BASE={PYTHON}\n" in dockerfile


@pytest.mark.parametrize("name", ["irc-bridge.toml", "upstream.toml"])
def test_the_settings_files_are_such(name: str, tmp_path: Path) -> None:
    text = (PROJECT / "docker" / name).read_text().replace("/run/irc-bridge", str(tmp_path))
    for secret in ("token", "access_key", "secret_key"):
        (tmp_path / secret).write_text("some")
    (tmp_path / name).write_text(text)
    (warehouse,) = load_settings(tmp_path / name, {}, {}, settings_models()).warehouses.values()
    assert warehouse.storage["aws_secret_access_key"] == "some"
    assert isinstance(warehouse, UpstreamSettings) == (name == "upstream.toml")


def test_the_first_rows_with_pyiceberg(running: Compose) -> None:
    assert f"{COUNTED} rows" in running.run(command("rows default.orders"))


def test_a_pyiceberg_client_of_this_machine(running: Compose) -> None:
    token = running.run(command("cat /run/irc-bridge/token")).strip()
    uri = f"http://127.0.0.1:{running.port}"
    catalog = load_catalog("c", type="rest", uri=uri, warehouse="main", token=token)
    assert ("default", "orders") in catalog.list_tables("default")
    assert catalog.load_table("default.orders").current_snapshot() is not None


def test_no_secret_can_be_seen_from_outside(running: Compose) -> None:
    secrets = [running.run(f"docker compose -f {FILE} exec -T bridge cat /run/irc-bridge/{name}").strip()
               for name in ("token", "access_key", "secret_key")]  # fmt: skip
    ids = run_docker("ps", "--all", "--quiet", f"--filter=label=com.docker.compose.project={NAME}").stdout.split()
    assert len(ids) >= 4
    shown = [run_docker("inspect", *ids).stdout, run_docker("ps", "--all", "--no-trunc").stdout]
    running_ids = run_docker("ps", "--quiet", f"--filter=label=com.docker.compose.project={NAME}").stdout.split()
    shown += [run_docker("top", each, "-eo", "pid,args").stdout for each in running_ids]
    shown.append(running.run(f"docker compose -f {FILE} logs"))
    for text in shown:
        assert not [secret for secret in secrets if secret in text]


def test_the_first_rows_with_spark(running: Compose) -> None:
    running.run(command("build spark-sql"))
    assert str(COUNTED) in running.run(command("spark-sql -e")).split()


def test_the_first_rows_with_trino(running: Compose) -> None:
    start, query = command("--profile trino up"), command("trino trino --execute")
    require(trino_image)
    running.run(start)
    until_it_says(running, "trino", "SERVER STARTED")
    assert f'"{COUNTED}"' in until_it_ends_well(running, query)
    running.run(f"docker compose -f {FILE} --profile trino rm -sf trino")


def until_it_says(compose: Compose, service: str, words: str) -> None:
    """Until the log of the service has the words."""
    deadline = time.monotonic() + SECONDS
    while words not in (log := compose.run(f"docker compose -f {FILE} logs {service}")):
        assert time.monotonic() < deadline, log
        time.sleep(1)


def until_it_ends_well(compose: Compose, line: str) -> str:
    """What the command prints when the service is ready for it."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return compose.run(line)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def require(image: Callable[[], str]) -> None:
    try:
        image()
    except CannotRun as reason:
        pytest.skip(str(reason))


def test_the_profile_jobs_looks_for_new_versions(running: Compose) -> None:
    """test_jobs.py lets the same image mirror a table."""
    running.run(command("--profile jobs up"))
    until_it_says(running, "mirror", "Looking for new versions")
    running.run(f"docker compose -f {FILE} --profile jobs rm -sf mirror")


def test_a_bridge_before_another_server_by_the_profile_upstream(running: Compose) -> None:
    start = command("--profile upstream up")
    require(iceberg_rest_image)
    running.run(start)
    token = running.run(command("cat /run/irc-bridge/token")).strip()
    health = f"docker compose -f {FILE} exec -T bridge-upstream irc-bridge health http://127.0.0.1:8181"
    until_it_ends_well(running, health)
    catalog = load_catalog("c", type="rest", uri=running.upstream, warehouse="lake", token=token)
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.lance", Schema(), properties={"table_type": "lance"})
    assert table.location().startswith("s3://lance/")
    assert catalog.list_tables("ns") == [("ns", "lance")]
    running.run(f"docker compose -f {FILE} --profile upstream rm -sf bridge-upstream iceberg-rest")


def test_backup_and_upgrade(running: Compose, images: None, tmp_path: Path) -> None:
    running.run(command("compose.yaml stop"))
    running.run(command("-cf - -C /bucket"), tmp_path)
    with tarfile.open(tmp_path / "bucket.tar") as backup:
        assert len(backup.getnames()) > 10
    running.run(command("-xf - -C /bucket"), tmp_path)
    running.run(command("compose.yaml start"))
    assert " rows" in running.run(command("rows default.orders"))
    running.run(f"{command('compose.yaml build')} bridge")
    running.run("docker compose -f docker/compose.yaml up -d")
    assert "docker compose -f docker/compose.yaml up -d" in COMMANDS
    assert " rows" in running.run(command("rows default.orders"))


def test_down_leaves_nothing(running: Compose) -> None:
    running.run(command("down -v"))
    for kind in ("container", "volume", "network"):
        everything = ["--all"] if kind == "container" else []
        label = f"--filter=label=com.docker.compose.project={NAME}"
        assert run_docker(kind, "ls", "--quiet", *everything, label).stdout == "", kind


@pytest.fixture(scope="module")
def images(compose: Compose) -> None:
    """Both images, by the commands of the README."""
    arguments = f"--build-arg BASE={PYTHON}"
    for target in ("server", "jobs"):
        compose.run(command(f"--target {target}").replace("--target", f"{arguments} --target"))


def test_the_image_alone(compose: Compose, images: None, tmp_path: Path) -> None:
    for name in ("secrets", "tables"):
        (tmp_path / name).mkdir(mode=0o777)
        (tmp_path / name).chmod(0o777)
    (tmp_path / "secrets/token").write_text("0123456789\n")
    line = command("docker run -d").replace("8181:8181", f"{free_port()}:8181")
    container = compose.run(line.replace("--name irc-bridge", ""), tmp_path).strip()
    try:
        deadline = time.monotonic() + SECONDS
        health = ("exec", container, "irc-bridge", "health", "http://127.0.0.1:8181")
        while (done := run_docker(*health, check=False)).returncode:
            assert time.monotonic() < deadline, done.stdout
            time.sleep(0.2)
    finally:
        run_docker("rm", "--force", container)


def test_every_command_of_the_readme_is_tried(compose: Compose) -> None:
    """By the tests above. Without a cluster test_kubernetes.py checks what kubectl would send."""
    others = {line for line in COMMANDS if not line.startswith("kubectl ")} - TRIED
    assert others == {"docker compose -f docker/compose.yaml up -d"}
