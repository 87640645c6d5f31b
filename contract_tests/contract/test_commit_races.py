"""Commits on one version at once, over both protocols: one winner each time, and what it was told is there."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from contract_tests.contract.test_version_commits import add
from contract_tests.directory.staging import Request, stage
from contract_tests.worlds.bridge import Client, assert_error, versions_in
from contract_tests.worlds.world import COMPATIBLE, IRC, NESSIE, VERSIONS, Bridge, _worlds

PLACE = ("default",)
pytestmark = _worlds(COMPATIBLE, VERSIONS[1], IRC, NESSIE)


def over_iceberg(bridge: Bridge, client: Client, name: str, asked: Request) -> int:
    """200, or 409 in the protocol's own words."""
    answer = add(client, PLACE, name, asked)
    if answer.status_code != 200:
        assert_error(answer, 409, "CommitFailedException", names="Requirement failed: ")
    status: int = answer.status_code
    return status


def over_lance(bridge: Bridge, client: Client, name: str, asked: Request) -> int:
    body = {"version": asked.version, "manifest_path": asked.manifest_path, "naming_scheme": asked.naming_scheme}
    path = f"table/{bridge.world.lance_id(name)}/version/create"
    answer = requests.post(f"{client.url}/lance/v1/{path}", json=body, timeout=60)
    if answer.status_code != 200:
        assert (answer.status_code, answer.json()["code"]) == (409, 14), answer.text
    return answer.status_code


@pytest.fixture
def location(client: Client, name: str) -> str:
    made: str = client.create_table(PLACE, name, properties={"managed_by": "impl"})["metadata"]["location"]
    return made


@pytest.mark.parametrize(("iceberg", "lance"), [(0, 50), (25, 25)])
def test_fifty_commits_on_one_version(bridge: Bridge, name: str, location: str, iceberg: int, lance: int) -> None:
    """Those over Iceberg alone are in test_version_commits."""
    send = [over_iceberg] * iceberg + [over_lance] * lance
    staged = [stage(location, number, options=bridge.root.options) for number in range(50)]

    def race(number: int) -> int:
        with bridge.server.client() as client:
            return send[number](bridge, client, name, staged[number])

    with ThreadPoolExecutor(50) as pool:
        statuses = list(pool.map(race, range(50)))
    assert sorted(statuses) == [200, *[409] * 49]
    assert_holds(bridge, name, location, [statuses.index(200)])


def test_writers_of_both_protocols(bridge: Bridge, name: str, location: str) -> None:
    """Each stages again until it won so many times."""
    send = [over_iceberg, over_lance] * 4

    def write(who: int) -> list[int]:
        won: list[int] = []
        with bridge.server.client() as client:
            for number in itertools.count(who * 1000):
                if send[who](bridge, client, name, stage(location, number, options=bridge.root.options)) == 200:
                    won.append(number)
                if len(won) == 8:
                    break
        return won

    with ThreadPoolExecutor(len(send)) as pool:
        won = list(itertools.chain(*pool.map(write, range(len(send)))))
    assert len(won) == 64
    assert_holds(bridge, name, location, won)


def assert_holds(bridge: Bridge, name: str, location: str, ids: list[int]) -> None:
    table: Any = bridge.root.open(location)
    assert sorted(table.to_table()["id"].to_pylist()) == sorted(ids)
    assert table.version == len(ids) + 1
    snapshots = versions_in(bridge.client.metadata(PLACE, name))
    assert [each["snapshot-id"] for each in snapshots] == [*range(1, len(ids) + 2)]
