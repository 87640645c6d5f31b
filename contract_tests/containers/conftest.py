"""Worlds in which the bridge and the S3 server run in containers. Without an engine all of this is left out."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import S3FileSystem

from contract_tests.contract.conftest import place as place
from contract_tests.worlds import engine as engines
from contract_tests.worlds.containers import ContainerServer
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.s3 import KEY, S3, SECRET
from contract_tests.worlds.stand_ins import python_image, seaweedfs_image
from contract_tests.worlds.world import COMPATIBLE, Bridge, World

IDENTITY = {"identities": [{"name": "admin", "credentials": [{"accessKey": KEY, "secretKey": SECRET}]}]}
IDENTITY["identities"][0]["actions"] = ["Admin", "Read", "List", "Tagging", "Write"]
WHERE = (
    "the bridge, the S3 server and the servers behind run in containers here, and as local processes in all other "
    "tests, which kill them, trace them and look into their files"
)
# docker-py leaves the sockets of its streams to the garbage collector
LEAVES_SOCKETS = (
    "ignore:unclosed <socket:ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "containers" in item.path.parts:
            for rule in LEAVES_SOCKETS:
                item.add_marker(pytest.mark.filterwarnings(rule))


@pytest.fixture(scope="session")
def engine() -> str:
    """The docker client, with the images that its engine shall have. Skips where no engine answers."""
    try:
        client = engines.docker()
        python_image()
    except CannotRun as reason:
        pytest.skip(str(reason))
    engines.note(WHERE)
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
    os.environ.setdefault("TESTCONTAINERS_CONNECTION_MODE", "docker_host")
    return client


@pytest.fixture(autouse=True)
def notes(record_property: Any) -> Iterator[None]:
    """Hands what is known about containers to the summary of the run."""
    yield
    while engines.NOTES:
        record_property("containers", engines.NOTES.pop(0))


class ContainerS3(S3):
    def bucket(self, name: str) -> str:
        """A new empty bucket; gives its URI."""
        uri = super().bucket(name)
        files = S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            endpoint_override=self.endpoint,
            region="us-east-1",
            allow_bucket_creation=True,
        )
        files.create_dir(uri.removeprefix("s3://"))
        return uri


@contextmanager
def s3_container(folder: Path) -> Iterator[ContainerS3]:
    """SeaweedFS in a container, at an address that this process and other containers reach."""
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import HttpWaitStrategy

    (folder / "s3.json").write_text(json.dumps(IDENTITY, indent=1))
    container = (
        DockerContainer(seaweedfs_image())
        .with_command("mini -dir=/data -s3.config=/run/secrets/s3.json -s3.port.iceberg=0")
        .with_exposed_ports(8333)
        .with_volume_mapping(str(folder / "s3.json"), "/run/secrets/s3.json", "ro")
        .with_tmpfs_mount("/data")
        .waiting_for(HttpWaitStrategy(8333).for_status_code_matching(lambda status: status < 500))
    )
    with container as started:
        wrapped = started.get_wrapped_container()
        wrapped.reload()
        address = next(iter(wrapped.attrs["NetworkSettings"]["Networks"].values()))["IPAddress"]
        (folder / "names").mkdir()
        yield ContainerS3(f"http://{address}:8333", folder / "names")


class ContainerWorld(World):
    """The bridge in a container: over a folder that is mounted, or over a bucket."""

    def server(self, configuration: Path, *arguments: str) -> Any:
        folders = () if self.on_s3 else (configuration.parent / "tables",)
        for folder in folders:
            folder.mkdir(exist_ok=True)
            folder.chmod(0o777)
        return ContainerServer(configuration, "--insecure", *arguments, folders=folders)


ON_A_VOLUME = ContainerWorld("container", COMPATIBLE.settings, COMPATIBLE.cannot)
ON_S3 = replace(ON_A_VOLUME, name="container-s3", on_s3=True)


@pytest.fixture(scope="session", params=[ON_A_VOLUME, ON_S3], ids=lambda world: world.name)
def world(request: pytest.FixtureRequest, engine: str) -> World:
    chosen: World = request.param
    return replace(chosen, s3=request.getfixturevalue("s3_in_container")) if chosen.on_s3 else chosen


@pytest.fixture(scope="session")
def s3_in_container(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with ExitStack() as stack:
        try:
            server = stack.enter_context(s3_container(tmp_path_factory.mktemp("s3-container")))
        except CannotRun as reason:
            pytest.skip(str(reason))
        yield server


@pytest.fixture(scope="session")
def bridge(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """What the tests write must be writable for the user of the container too."""
    mask = os.umask(0)
    try:
        with world.start(tmp_path_factory.mktemp(world.name)) as bridge:
            yield bridge
    finally:
        os.umask(mask)
