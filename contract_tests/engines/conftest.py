import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from contract_tests.client.catalogs import s3_settings
from contract_tests.engines.lake import Lake, fill
from contract_tests.engines.mirror_lake import Place
from contract_tests.engines.mirror_lake import fill as fill_mirrored
from contract_tests.worlds.bridge import Client, Server, assert_ok, namespace_path
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.s3 import S3
from contract_tests.worlds.servers import reference_server
from contract_tests.worlds.upstream import bridge_over

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


def _served(name: str, folder: Path, root: str, options: Mapping[str, str]) -> Iterator[Place]:
    tables = fill_mirrored(root, options)
    storage = "".join(f'storage.{key} = "{value}"\n' for key, value in options.items())
    (folder / "irc-bridge.toml").write_text(f'[warehouses.main]\nroot = "{root}"\n{storage}')
    with Server("--port", "0", cwd=folder) as server:
        yield Place(name, server.url, "default", tables)
        assert "Traceback" not in server.text()


@pytest.fixture(scope="session")
def local_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("mirrored")
    yield from _served("local", folder, f"{folder}/tables", {})


@pytest.fixture(scope="session")
def s3_place(tmp_path_factory: pytest.TempPathFactory, s3: S3) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("mirrored-s3")
    yield from _served("s3", folder, f"{s3.bucket('mirrored')}/tables", s3.options)


@pytest.fixture(scope="session")
def places_behind(
    tmp_path_factory: pytest.TempPathFactory, s3: S3, local_place: Place, s3_place: Place
) -> Iterator[dict[str, Place]]:
    """The same tables once more, of a bridge before another server."""
    folder = tmp_path_factory.mktemp("mirrored-behind")
    with ExitStack() as stack:
        try:
            url = stack.enter_context(reference_server(folder, s3_settings(s3)))
        except CannotRun as reason:
            pytest.skip(str(reason))
        places = (local_place, s3_place)
        folders = [_location(place, name).rpartition("/")[0] for place in places for name in place.tables]
        allowed = ", ".join(f'"{each}"' for each in set(folders))
        settings = f"allowed_locations = [{allowed}]\n"
        bridge = stack.enter_context(bridge_over(url, folder / "bridge", settings, s3.options))
        with bridge.client() as client:
            for place in places:
                client.create_namespace(place.name)
                for name in place.tables:
                    location = _location(place, name)
                    body = {"name": name, "metadata-location": location}
                    assert_ok(client.post(f"{namespace_path((place.name,))}/register", json=body))
        yield {
            f"{place.name}, another server": Place(
                f"{place.name}, another server", bridge.url, place.name, place.tables
            )
            for place in (local_place, s3_place)
        }


def _location(place: Place, table: str) -> str:
    with Client(place.url) as client:
        location: str = client.metadata((place.namespace,), table)["location"]
    return location


PLACES = ["local", "s3", "local, another server", "s3, another server"]


@pytest.fixture(scope="session")
def places(local_place: Place, s3_place: Place, places_behind: dict[str, Place]) -> list[Place]:
    return [local_place, s3_place, *places_behind.values()]


@pytest.fixture(scope="session", params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    """What is read, on each storage, of each kind of warehouse."""
    name: str = request.param
    if "another" not in name:
        found: Place = request.getfixturevalue(f"{name}_place")
        return found
    behind: dict[str, Place] = request.getfixturevalue("places_behind")
    return behind[name]
