"""Containers that die under commits, and two of them on one bucket: no commit that was answered is lost."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests

from contract_tests.containers.conftest import ON_A_VOLUME, ON_S3, ContainerWorld
from contract_tests.worlds.bridge import Client, assert_ok, table_path
from contract_tests.worlds.containers import ContainerServer
from contract_tests.worlds.s3 import S3
from contract_tests.worlds.world import Bridge

TABLE = ("default",), "counted"
PATH = table_path(*TABLE)
KILLS = 3
COMMITS_BETWEEN = 5


def commit(client: Client, key: str) -> requests.Response:
    body = {"updates": [{"action": "set-properties", "updates": {key: "yes"}}], "requirements": []}
    return client.post(PATH, json=body)


class Writer(threading.Thread):
    """Commits one property after another, and remembers those that were answered."""

    def __init__(self, server: ContainerServer, name: str) -> None:
        super().__init__()
        self._server = server
        self._prefix = name
        self._stopped = threading.Event()
        self._progress = threading.Condition()
        self.answered: list[str] = []

    def run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            number += 1
            key = f"{self._prefix}-{number}"
            try:
                with self._server.client() as client:
                    answer = commit(client, key)
            except (requests.ConnectionError, KeyError, IndexError):  # killed, or without a port yet
                self._stopped.wait(0.05)
                continue
            if answer.status_code == 200:
                with self._progress:
                    self.answered.append(key)
                    self._progress.notify_all()

    def wait_for(self, more: int) -> None:
        """Until so many more commits are answered."""
        with self._progress:
            wanted = len(self.answered) + more
            assert self._progress.wait_for(lambda: len(self.answered) >= wanted, 60), self._server.text()

    def stop(self) -> list[str]:
        self._stopped.set()
        self.join(60)
        return self.answered


@pytest.fixture
def s3_world(s3_in_container: S3) -> ContainerWorld:
    return replace(ON_S3, s3=s3_in_container)


def test_a_container_that_is_killed_under_commits_loses_nothing(engine: str, tmp_path: Path) -> None:
    with ON_A_VOLUME.start(tmp_path) as bridge:
        bridge.client.create_table(*TABLE)
        server: Any = bridge.server
        writer = Writer(server, "key")
        writer.start()
        for _ in range(KILLS):
            writer.wait_for(COMMITS_BETWEEN)
            server.kill()
            server.start_again()
        writer.wait_for(COMMITS_BETWEEN)
        answered = writer.stop()
        with server.client() as client:
            properties = client.metadata(*TABLE)["properties"]
        assert len(answered) >= (KILLS + 1) * COMMITS_BETWEEN
        assert [key for key in answered if properties.get(key) != "yes"] == []


@pytest.fixture
def pair(s3_world: ContainerWorld, tmp_path: Path) -> Iterator[tuple[Bridge, Bridge]]:
    with s3_world.start(tmp_path) as first, s3_world.start_another(first) as second:
        yield first, second


def test_two_containers_on_one_bucket(pair: tuple[Bridge, Bridge]) -> None:
    first, second = pair
    first.client.create_table(*TABLE)
    assert second.client.tables(("default",)) == ["counted"]
    writers = []
    for number, bridge in enumerate(pair):
        server: Any = bridge.server
        writers.append(Writer(server, f"of-{number}"))
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.wait_for(COMMITS_BETWEEN)
    answered = [key for writer in writers for key in writer.stop()]
    for bridge in pair:
        properties = assert_ok(bridge.client.get(PATH))["metadata"]["properties"]
        assert [key for key in answered if properties.get(key) != "yes"] == []
