import itertools
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from contract_tests.worlds.bridge import (
    DUMMY_SCHEMA,
    SCHEMA,
    Client,
    Server,
    as_loaded,
    assert_error,
    namespace_path,
    table_path,
)
from contract_tests.worlds.world import COMPATIBLE, Bridge, World

Place = tuple[str, ...]
CLIENTS = 50
PURGE = {"purgeRequested": "true"}


def all_at_once(servers: list[Server], ask: Callable[[Client], requests.Response]) -> list[requests.Response]:
    """Fifty clients, each with a connection of its own, over the servers in turn."""
    start = threading.Barrier(CLIENTS)

    def one(number: int) -> requests.Response:
        with servers[number % len(servers)].client() as client:
            client.get("/v1/config")
            start.wait()
            return ask(client)

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(one, range(CLIENTS)))


def assert_one_winner(answers: list[requests.Response]) -> requests.Response:
    (winner,) = [each for each in answers if each.status_code == 200]
    for each in answers:
        if each is not winner:
            assert_error(each, 409, "AlreadyExistsException")
    return winner


class TestOneName:
    """Fifty clients make one name at once: one 200, forty-nine 409."""

    @pytest.mark.parametrize("schema", [SCHEMA, DUMMY_SCHEMA], ids=["table", "declared"])
    def test_a_table(self, bridge: Bridge, place: Place, name: str, schema: dict[str, Any]) -> None:
        properties = {"table_type": "lance"} if schema is DUMMY_SCHEMA else {}
        body = {"name": name, "schema": schema, "properties": properties}
        path = f"{namespace_path(place)}/tables"
        winner = assert_one_winner(all_at_once([bridge.server], lambda client: client.post(path, json=body)))
        created = winner.json()["metadata"]
        expected = created if schema is DUMMY_SCHEMA else as_loaded(created)
        assert bridge.client.metadata(place, name) == expected
        assert bridge.client.tables(place).count(name) == 1

    def test_a_table_over_two_servers(self, bridge: Bridge, place: Place, name: str) -> None:
        body = {"name": name, "schema": SCHEMA}
        path = f"{namespace_path(place)}/tables"
        with bridge.world.start_another(bridge) as other:
            servers = [bridge.server, other.server]
            winner = assert_one_winner(all_at_once(servers, lambda client: client.post(path, json=body)))
            for each in (bridge.client, other.client):
                assert each.metadata(place, name) == as_loaded(winner.json()["metadata"])
                assert each.tables(place).count(name) == 1
        assert bridge.root.open(winner.json()["metadata"]["location"]).version == 1

    @pytest.mark.needs("child namespaces")
    def test_a_namespace_over_two_servers(self, bridge: Bridge, name: str) -> None:
        with bridge.world.start_another(bridge) as other:
            servers = [bridge.server, other.server]
            body = {"namespace": [name]}
            assert_one_winner(all_at_once(servers, lambda client: client.post("namespaces", json=body)))
        assert bridge.client.namespaces().count((name,)) == 1

    def test_a_drop(self, bridge: Bridge, place: Place, name: str) -> None:
        bridge.client.create_table(place, name)
        path = table_path(place, name)
        answers = all_at_once([bridge.server], lambda client: client.delete(path, params=PURGE))
        assert not [each.text for each in answers if each.status_code not in (204, 404)]
        assert 204 in [each.status_code for each in answers]

    @pytest.mark.needs("rename")
    def test_a_rename(self, bridge: Bridge, place: Place, name: str) -> None:
        bridge.client.create_table(place, name)
        numbers = iter(range(CLIENTS))

        def rename(client: Client) -> requests.Response:
            names = {"source": name, "destination": f"{name}_{next(numbers)}"}
            body = {key: {"namespace": place, "name": value} for key, value in names.items()}
            return client.post("tables/rename", json=body)

        statuses = [each.status_code for each in all_at_once([bridge.server], rename)]
        assert statuses.count(204) == 1
        assert set(statuses) <= {204, 404, 409}
        (left,) = [each for each in bridge.client.tables(place) if each.startswith(name)]
        assert bridge.client.metadata(place, left)["current-snapshot-id"] == 1


def test_many_names_at_once(bridge: Bridge, place: Place, name: str) -> None:
    numbers = iter(range(CLIENTS))

    def create(client: Client) -> requests.Response:
        body = {"name": f"{name}_{next(numbers):02}", "schema": SCHEMA}
        return client.post(f"{namespace_path(place)}/tables", json=body)

    answers = all_at_once([bridge.server], create)
    assert [each.status_code for each in answers] == [200] * CLIENTS
    mine = [each for each in bridge.client.tables(place) if each.startswith(f"{name}_")]
    assert mine == [f"{name}_{number:02}" for number in range(CLIENTS)]
    assert len({each.json()["metadata"]["location"] for each in answers}) == CLIENTS


def test_lists_while_others_create_and_drop(bridge: Bridge, place: Place, name: str) -> None:
    """A list always answers, and never without the tables that nobody touches."""
    stay = [f"{name}_stay{number}" for number in range(3)]
    for each in stay:
        bridge.client.declare_table(place, each)
    done = threading.Event()

    def churn(number: int) -> None:
        with bridge.server.client() as client:
            for _ in range(8):
                client.create_table(place, f"{name}_go{number}")
                dropped = client.delete(table_path(place, f"{name}_go{number}"), params=PURGE)
                assert dropped.status_code == 204, dropped.text

    def look() -> int:
        looks = 0
        with bridge.server.client() as client:
            while not done.is_set():
                assert set(stay) <= set(client.tables(place))
                looks += 1
        return looks

    with ThreadPoolExecutor(5) as pool:
        looking = pool.submit(look)
        churning = [pool.submit(churn, number) for number in range(4)]
        failures = [future.exception() for future in churning]
        done.set()
        assert failures == [None] * 4
        assert looking.result() > 0


def test_two_servers_and_two_workers_answer_alike(tmp_path: Path) -> None:
    with COMPATIBLE.start(tmp_path, "", "--workers", "2") as first, first.world.start_another(first) as second:
        place = first.client.create_namespace("ns")
        for number in range(5):
            maker = (first, second)[number % 2].client
            maker.create_table(place, f"t{number}", properties={"number": str(number)})
            maker.create_table(("default",), f"t{number}")
        table = first.root.open(first.client.metadata(place, "t0")["location"])
        table.update_metadata({"a": "b"})
        table.tags.create("t", 1)
        for namespace in (place, ("default",)):
            for path in (
                f"{namespace_path(namespace)}/tables",
                *(table_path(namespace, f"t{n}") for n in range(5)),
            ):
                answers = set()
                for bridge in [first] * 8 + [second] * 2:
                    with bridge.server.client() as client:  # a new connection may meet another worker
                        response = client.get(path)
                    answers.add((response.status_code, response.headers.get("ETag"), response.content))
                assert len(answers) == 1


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    with COMPATIBLE.start(tmp_path, "", "--workers", "2") as bridge:
        bridge.client.create_namespace("ns")
        workers = [
            each for each in psutil.Process(bridge.server.process.pid).children(recursive=True)
            if "resource_tracker" not in " ".join(each.cmdline())
        ]  # fmt: skip
        assert len(workers) >= 2
        workers[-1].kill()
        workers[-1].wait(20)
        for _ in range(20):
            with bridge.server.client() as client, suppress(requests.ConnectionError):
                if client.head("namespaces/ns").status_code == 204:
                    break
        else:
            pytest.fail("nobody answers any more")


def test_kill_while_tables_are_made(tmp_path: Path, world: World) -> None:
    """kill -9 at random moments leaves either a table or nothing that a list shows."""
    chance = random.Random(7)
    flat = "child namespaces" in world.cannot
    acknowledged: dict[tuple[Place, str], str] = {}
    with world.start(tmp_path) as bridge:
        places: list[Place] = [("default",)] if flat else [("default",), bridge.client.create_namespace("ns")]
    for round_number in range(5):
        kill_while_creating(bridge, places, acknowledged, chance, round_number)
    with world.start_another(bridge) as after:
        for place in places:
            assert_whole(after.client, place, {t: u for (p, t), u in acknowledged.items() if p == place})
            after.client.create_table(place, "after_all")
    assert len(acknowledged) > 12


def kill_while_creating(
    bridge: Bridge,
    places: list[Place],
    acknowledged: dict[tuple[Place, str], str],
    chance: random.Random,
    round_number: int,
) -> None:
    """Tables are made, declared and purged by four clients until the server is shot."""
    with Server("--config", "irc-bridge.toml", "--port", "0", cwd=bridge.folder) as server:
        url, first = server.url, threading.Event()

        def create(number: int) -> None:
            with Client(url) as client, suppress(requests.RequestException):
                for count in range(1000):
                    place, name = places[count % len(places)], f"r{round_number}_{number}_{count}"
                    make = client.declare_table if count % 3 == 2 else client.create_table
                    acknowledged[place, name] = make(place, name)["metadata"]["table-uuid"]
                    first.set()
                    if count % 4 == 3:
                        del acknowledged[place, name]
                        client.delete(table_path(place, name), params=PURGE)

        with ThreadPoolExecutor(4) as pool:
            creating = [pool.submit(create, number) for number in range(4)]
            assert first.wait(60)
            time.sleep(chance.uniform(0, 0.5))  # the moment of death is what is varied here
            server.kill()
            for each in creating:
                each.result()


def assert_whole(client: Client, place: Place, acknowledged: dict[str, str]) -> None:
    listed = client.tables(place)
    assert len(listed) == len(set(listed))
    assert set(acknowledged) <= set(listed)
    for name in listed:
        metadata = client.metadata(place, name)
        assert metadata.get("current-snapshot-id", -1) in (-1, 1)
        assert acknowledged.get(name, metadata["table-uuid"]) == metadata["table-uuid"]
        taken = client.post(f"{namespace_path(place)}/tables", json={"name": name, "schema": SCHEMA})
        assert taken.status_code == 409
    for name in sorted(being_made(listed))[::4]:
        # a purge that was cut short may have left a deregistered table, which Lance's drop removes
        table = name if place == ("default",) else "$".join((*place, name))
        dropped = requests.post(f"{client.url}/lance/v1/table/{table}/drop", json={}, timeout=60)
        assert dropped.status_code in (200, 404), dropped.text
        client.create_table(place, name)


def being_made(listed: list[str]) -> set[str]:
    """Names that were purged just before the server died, or were on their way then."""
    last: dict[str, int] = {}
    for name in listed:
        client, _, count = name.rpartition("_")
        last[client] = max(last.get(client, 0), int(count))
    return {f"{client}_{n}" for client, count in last.items() for n in range(count - 8, count + 8)} - set(listed)


def test_a_table_dropped_while_it_is_made(bridge: Bridge, place: Place, name: str) -> None:
    """Creates and purges of one name by many: each answer is a plain one, and what is left is whole."""

    path = table_path(place, name)

    def churn(_: int) -> list[requests.Response]:
        answers = []
        with bridge.server.client() as client:
            for _ in range(6):
                body = {"name": name, "schema": SCHEMA}
                answers.append(client.post(f"{namespace_path(place)}/tables", json=body))
                answers.append(client.delete(path, params=PURGE))
                answers.append(client.get(path))
        return answers

    with ThreadPoolExecutor(6) as pool:
        answers = list(itertools.chain(*pool.map(churn, range(6))))
    assert not [each.text for each in answers if each.status_code not in (200, 204, 404, 409)]
    if name in bridge.client.tables(place):
        location = bridge.client.metadata(place, name)["location"]
        assert bridge.root.files(location)
        assert bridge.root.open(location).count_rows() == 0
    else:
        assert bridge.client.head(table_path(place, name)).status_code == 404
        bridge.client.create_table(place, name)
