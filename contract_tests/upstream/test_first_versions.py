"""Who makes a version of a Lance table is decided by the server behind, whichever it is and however many bridges
stand before it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import lance
import pytest
import requests

from contract_tests.contract.test_version_commits import adds, asserts
from contract_tests.directory.staging import Request, stage, stage_first
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.s3 import S3
from contract_tests.worlds.servers import nessie, reference_server
from contract_tests.worlds.upstream import bridge_over

REFERENCE, NESSIE = "reference", "nessie"
WRITERS, ROUNDS = 4, 6
DUMMY = {"type": "struct", "fields": [{"id": 1, "name": "dummy", "type": "string", "required": False}]}


@pytest.fixture(scope="module", params=[REFERENCE, NESSIE])
def bridges(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Two before the same server."""
    folder = tmp_path_factory.mktemp(f"first-versions-{request.param}")
    (folder / "behind").mkdir()
    with ExitStack() as stack:
        try:
            if request.param == REFERENCE:
                url = stack.enter_context(reference_server(folder / "behind"))
            else:
                s3: S3 = request.getfixturevalue("s3")
                url = stack.enter_context(nessie(s3))
        except CannotRun as reason:
            pytest.skip(f"{request.param}: {reason}")
        allowed = f'allowed_locations = ["{tmp_path_factory.getbasetemp()}"]\n'
        yield [stack.enter_context(bridge_over(url, folder / f"bridge{n}", allowed)).url for n in range(2)]


def declared(bridge: str, namespace: str, name: str, location: Path) -> str:
    namespaces = f"{bridge}/v1/main/namespaces"
    requests.post(namespaces, json={"namespace": [namespace]}, timeout=60)
    properties = {"table_type": "lance", "managed_by": "impl"}
    table = {"name": name, "location": location.as_uri(), "schema": DUMMY, "properties": properties}
    made = requests.post(f"{namespaces}/{namespace}/tables", json=table, timeout=60)
    made.raise_for_status()
    told: str = made.json()["metadata"]["location"]
    return told


def committed(bridge: str, namespace: str, name: str, asked: Request) -> int:
    path = f"_versions/{asked.manifest_path.rpartition('/')[2]}"
    expected = asked.version - 1 or None
    change = {"requirements": [asserts(expected)], "updates": adds(asked.version, path)}
    url = f"{bridge}/v1/main/namespaces/{namespace}/tables/{name}"
    return requests.post(url, json=change, timeout=60).status_code


def all_at_once(bridges: list[str], namespace: str, name: str, staged: list[Request]) -> list[int]:
    begin = Barrier(len(staged))

    def commit(number: int) -> int:
        begin.wait()
        return committed(bridges[number % len(bridges)], namespace, name, staged[number])

    with ThreadPoolExecutor(len(staged)) as writers:
        return list(writers.map(commit, range(len(staged))))


def test_one_of_many_makes_the_first_version_and_the_next(bridges: list[str], tmp_path: Path, name: str) -> None:
    for number in range(ROUNDS):
        table = f"t{number}"
        location = declared(bridges[0], name, table, tmp_path / f"{table}.lance")
        winners = []
        for version, stage_one in ((1, stage_first), (2, stage)):
            *staged, late = (stage_one(location, 10 * version + writer) for writer in range(WRITERS + 1))
            assert {each.version for each in (*staged, late)} == {version}
            statuses = all_at_once(bridges, name, table, staged)
            assert sorted(statuses) == [200, *[409] * (WRITERS - 1)], f"version {version} of {table}: {statuses}"
            assert committed(bridges[1], name, table, late) == 409
            winners.append(10 * version + statuses.index(200))
        assert sorted(lance.dataset(location).to_table()["id"].to_pylist()) == winners
