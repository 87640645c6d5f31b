"""`managed_by` switched to and fro beside stock Lance writers: no commit of theirs is lost or there twice."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace

from contract_tests.contract.test_commits import commit, set_properties
from contract_tests.worlds.bridge import assert_error, assert_ok, versions_in
from contract_tests.worlds.world import COMPATIBLE, IRC, VERSIONS, Bridge, _worlds

PLACE = ("default",)
WRITERS, EACH, SWITCHES = 4, 12, 5
pytestmark = _worlds(COMPATIBLE, *VERSIONS, IRC)


def data(number: int, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([{"id": number}], schema=schema)


@pytest.mark.needs("property versions")
def test_a_writer_that_opened_it_before(bridge: Bridge, name: str) -> None:
    client = bridge.client
    location = client.create_table(PLACE, name)["metadata"]["location"]
    held = lance.dataset(location)
    assert_ok(commit(client, PLACE, name, set_properties(managed_by="impl")))
    held.insert(data(1, held.schema))
    assert held.version == 3
    assert_ok(commit(client, PLACE, name, set_properties(a="1")))
    held.insert(data(2, held.schema))
    assert_ok(commit(client, PLACE, name, set_properties(managed_by="storage")))
    assert client.metadata(PLACE, name)["current-snapshot-id"] == lance.dataset(location).version == 6
    assert sorted(lance.dataset(location).to_table()["id"].to_pylist()) == [1, 2]


def test_beside_writers(bridge: Bridge, name: str) -> None:
    location = bridge.client.create_table(PLACE, name)["metadata"]["location"]
    schema = lance.dataset(location).schema
    table = bridge.world.lance_id(name).split("$")
    switched, over = threading.Event(), threading.Event()

    def write(who: int) -> list[int]:
        """The rows that it was told are in. Lance gives up now and then where many write."""
        told = []
        for number in range(who * 1000, who * 1000 + 1000):
            namespace = RestNamespace(uri=f"{bridge.server.url}/lance")
            try:
                lance.write_dataset(
                    data(number, schema), namespace_client=namespace, table_id=table, mode="append"
                )
            except (OSError, ln.errors.LanceNamespaceError, RuntimeError) as error:
                assert "onflict" in str(error) or "oncurrent" in str(error), error
                continue
            told.append(number)
            if len(told) >= EACH and switched.is_set():
                return told
        raise AssertionError

    def switch() -> int:
        with bridge.server.client() as client:
            for switches in itertools.count():
                if over.is_set():
                    return switches
                if switches == SWITCHES:
                    switched.set()
                kind = ("impl", "storage")[switches % 2]
                answer = commit(client, PLACE, name, set_properties(managed_by=kind))
                if answer.status_code != 200:
                    assert_error(answer, 409, "CommitFailedException", names="try again")
        raise AssertionError

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        switching = pool.submit(switch)
        writing = [pool.submit(write, who) for who in range(WRITERS)]
        told = list(itertools.chain(*(each.result() for each in writing)))
        over.set()
        assert switching.result() >= SWITCHES
    assert_ok(commit(bridge.client, PLACE, name, set_properties(managed_by="impl", last="x")))
    ids = lance.dataset(location).to_table()["id"].to_pylist()
    assert len(ids) == len(set(ids))
    assert set(told) <= set(ids)
    snapshots = [each["snapshot-id"] for each in versions_in(bridge.client.metadata(PLACE, name))]
    assert snapshots == [*range(1, lance.dataset(location).version + 1)]
