"""kill -9 of the server at each step of its commits, under load. It starts again and dies again, one step later;
whoever got no answer sends the same commit again. Nothing acknowledged is lost, and nothing is there twice."""

import itertools
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from contract_tests.contract.test_commits import commit, set_properties
from contract_tests.contract.test_version_commits import add
from contract_tests.directory.staging import Request, stage
from contract_tests.worlds.bridge import Client, Server, assert_ok, versions_in
from contract_tests.worlds.dying import ALLOWED, ROOT, DyingServer
from contract_tests.worlds.marking import MarkingClient
from contract_tests.worlds.roots import Root, S3Root
from contract_tests.worlds.s3_watch import CHANGES, watched
from contract_tests.worlds.world import COMPATIBLE, IRC, S3_WORLDS, VERSIONS, UpstreamWorld, World, _worlds

PLACE = ("default",)
PROJECT = Path(__file__).parents[2]
ROWS, COLUMNS = "rows", "columns"
"""The tables: one gets versions with rows, the other properties and columns."""


class Writer(ABC):
    """Sends a commit until it is answered: what it means to be refused is up to the kind of commit."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.acknowledged: list[str] = []
        self._numbers = itertools.count()
        self._pending: Any = None
        self._about = ""

    def write_one(self, client: Client) -> None:
        while True:
            if self._pending is None:
                self._about = self._about or f"{self.name}{next(self._numbers)}"
                self._pending = self.prepare(client, self._about)
            answer = self.send(client, self._pending)
            if answer.status_code in (200, 409):
                self._pending = None
            if answer.status_code == 200:
                self.acknowledged.append(self._about)
                self._about = ""
                return
            assert answer.status_code in (409, 500, 503), answer.text

    @abstractmethod
    def prepare(self, client: Client, about: str) -> Any: ...

    @abstractmethod
    def send(self, client: Client, prepared: Any) -> requests.Response: ...


class AddsSnapshots(Writer):
    def __init__(self, name: str, root: Root, location: str) -> None:
        super().__init__(name)
        self._root = root
        self._location = location

    def prepare(self, client: Client, about: str) -> Request:
        return stage(self._location, int(about), options=self._root.options)

    def send(self, client: Client, prepared: Request) -> requests.Response:
        answer: requests.Response = add(client, PLACE, ROWS, prepared)
        return answer


class CreatesVersions(AddsSnapshots):
    """Over the Lance protocol."""

    def send(self, client: Client, prepared: Request) -> requests.Response:
        body = {
            "version": prepared.version,
            "manifest_path": prepared.manifest_path,
            "naming_scheme": prepared.naming_scheme,
        }
        return requests.post(
            f"{client.url}/lance/v1/table/{lance_id(client, ROWS)}/version/create", json=body, timeout=60
        )


def lance_id(client: Client, table: str) -> str:
    return f"default${table}" if isinstance(client, MarkingClient) else table


class SetsProperties(Writer):
    def prepare(self, client: Client, about: str) -> str:
        return about

    def send(self, client: Client, prepared: str) -> requests.Response:
        answer: requests.Response = commit(client, PLACE, COLUMNS, set_properties(**{prepared: "x"}))
        return answer


class AddsColumns(Writer):
    def prepare(self, client: Client, about: str) -> Any:
        metadata = client.metadata(PLACE, COLUMNS)
        field = {"id": metadata["last-column-id"] + 1, "name": about, "type": "long", "required": False}
        schema = {**metadata["schemas"][0], "fields": [*metadata["schemas"][0]["fields"], field]}
        return schema, metadata["last-column-id"]

    def send(self, client: Client, prepared: Any) -> requests.Response:
        schema, last = prepared
        updates = ({"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1})
        asserts = {"type": "assert-last-assigned-field-id", "last-assigned-field-id": last}
        answer: requests.Response = commit(client, PLACE, COLUMNS, *updates, requirements=[asserts])
        return answer


class Reader:
    """No version that it saw goes away, and the current one never falls."""

    def __init__(self) -> None:
        self._seen: dict[str, set[int]] = {ROWS: set(), COLUMNS: set()}

    def read(self, client: Client) -> None:
        for table, seen in self._seen.items():
            metadata = client.metadata(PLACE, table)
            present = {each["snapshot-id"] for each in versions_in(metadata)}
            assert seen <= present
            assert metadata["current-snapshot-id"] == max(present)
            path = f"table/{lance_id(client, table)}/version/list"
            listed = requests.post(f"{client.url}/lance/v1/{path}", json={}, timeout=60)
            assert present <= {each["version"] for each in assert_ok(listed)["versions"]}
            seen |= present


@dataclass
class Lake:
    world: World
    root: Root
    folder: Path

    def configure(self, **changed: str) -> Path:
        file = self.folder / "irc-bridge.toml"
        storage = "".join(
            f'storage.{key} = "{value}"\n' for key, value in {**self.root.options, **changed}.items()
        )
        text = f'[warehouses.main]\nroot = "{self.root}"\n{self.world.settings}{storage}'
        file.write_text(self.world.configuration(self.root) if self.is_upstream else text)
        return file

    @property
    def is_upstream(self) -> bool:
        return isinstance(self.world, UpstreamWorld)

    def client(self, url: str) -> Client:
        return MarkingClient(url) if self.is_upstream else Client(url)

    @contextmanager
    def server(self) -> Iterator[Server]:
        with Server("--config", self.configure(), "--port", "0", cwd=self.folder) as server:
            yield server

    @contextmanager
    def dying(self, allowed: int) -> Iterator[Server]:
        if isinstance(self.root, S3Root):
            with self._dying_on_s3(allowed) as server:
                yield server
            return
        environment = {ROOT: str(self.root), ALLOWED: str(allowed), "PYTHONPATH": str(PROJECT)}
        arguments = ("--config", self.configure(), "--port", "0")
        with DyingServer(*arguments, cwd=self.folder, environment=environment) as server:
            yield server

    @contextmanager
    def _dying_on_s3(self, allowed: int) -> Iterator[Server]:
        left = itertools.count(allowed, -1)

        def watch(method: str, _: str) -> int | None:
            if method in CHANGES and next(left) <= 0:
                with suppress(ProcessLookupError):
                    os.kill(server.process.pid, signal.SIGKILL)
                return 500
            return None

        with (
            watched(self.root.options["aws_endpoint"], watch) as endpoint,
            Server("--config", self.configure(aws_endpoint=endpoint), "--port", "0", cwd=self.folder) as server,
        ):
            yield server


@pytest.fixture
def lake(world: World, tmp_path: Path) -> Lake:
    return Lake(world, world.make_root(tmp_path), tmp_path)


def prepare(lake: Lake) -> list[Writer]:
    with lake.server() as server, lake.client(server.url) as client:
        made = [client.create_table(PLACE, name, properties={"managed_by": "impl"}) for name in (ROWS, COLUMNS)]
    location = made[0]["metadata"]["location"]
    return [
        AddsSnapshots("10", lake.root, location),
        AddsSnapshots("20", lake.root, location),
        CreatesVersions("30", lake.root, location),
        CreatesVersions("40", lake.root, location),
        SetsProperties("p"),
        AddsColumns("c"),
    ]


def until_it_dies(lake: Lake, server: Server, writers: list[Writer], reader: Reader) -> None:
    url = server.url
    over = threading.Event()

    def again_and_again(step: Callable[[Client], None]) -> None:
        with lake.client(url) as client, suppress(requests.RequestException):
            while not over.is_set():
                step(client)

    with ThreadPoolExecutor(len(writers) + 1) as pool:
        running = [pool.submit(again_and_again, each.write_one) for each in writers]
        reading = pool.submit(again_and_again, reader.read)
        server.process.wait(60)
        over.set()
        for each in (*running, reading):
            each.result()


def assert_all_there(lake: Lake, client: Client, writers: list[Writer]) -> None:
    ids = sorted(int(about) for each in writers if isinstance(each, AddsSnapshots) for about in each.acknowledged)
    table = lake.root.open(client.metadata(PLACE, ROWS)["location"])
    assert sorted(table.to_table()["id"].to_pylist()) == ids
    assert table.version == len(ids) + 1
    metadata = client.metadata(PLACE, COLUMNS)
    [properties, columns] = [each.acknowledged for each in writers[-2:]]
    assert set(properties) <= metadata["properties"].keys()
    assert [field["name"] for field in metadata["schemas"][0]["fields"]] == ["id", "name", *columns]
    made = len(columns) if "property versions" in lake.world.cannot else len(properties) + len(columns)
    assert metadata["current-snapshot-id"] == 1 + made
    for name in (ROWS, COLUMNS):
        snapshots = versions_in(client.metadata(PLACE, name))
        assert [each["snapshot-id"] for each in snapshots] == [*range(1, len(snapshots) + 1)]


@_worlds(COMPATIBLE, VERSIONS[1], S3_WORLDS[0], IRC)
def test_killed_at_each_step(lake: Lake) -> None:
    writers, reader = prepare(lake), Reader()
    for allowed in range(4 if lake.is_upstream else 8 if lake.world.on_s3 else 16):
        with lake.dying(allowed) as server:
            until_it_dies(lake, server, writers, reader)
            assert server.process.returncode == -signal.SIGKILL
    with lake.server() as server, lake.client(server.url) as client:
        for each in writers:
            each.write_one(client)
            each.write_one(client)
        reader.read(client)
        assert_all_there(lake, client, writers)
    assert all(each.acknowledged for each in writers)
