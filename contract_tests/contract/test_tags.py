"""Tags and snapshots of Lance tables, changed by Iceberg clients."""

from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from contract_tests.contract.test_commits import commit
from contract_tests.contract.test_version_commits import add
from contract_tests.directory.staging import stage
from contract_tests.worlds.bridge import Client, assert_error, assert_ok, version_numbers, versions_in
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import COMPATIBLE, IRC, NESSIE, S3_WORLDS, VERSIONS, Bridge, _worlds
from contract_tests.worlds.writer import rows

Place = tuple[str, ...]
SOME_WORLDS = _worlds(COMPATIBLE, VERSIONS[0], S3_WORLDS[0], IRC, NESSIE)
pytestmark = SOME_WORLDS


@pytest.fixture(params=["storage", "impl"])
def location(request: pytest.FixtureRequest, client: Client, root: Root, place: Place, name: str) -> str:
    """Four versions."""
    made = client.create_table(place, name, properties={"managed_by": request.param})["metadata"]
    location: str = made["location"]
    for number in range(3):
        if request.param == "impl":
            assert_ok(add(client, place, name, stage(location, number, options=root.options)))
        else:
            root.write(location, rows(1).cast(root.open(location).schema), mode="append")
    return location


def sets(tag: str, version: int, kind: str = "tag") -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": tag, "type": kind, "snapshot-id": version}


def asserts(ref: str, version: int | None) -> dict[str, Any]:
    return {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": version}


def removes(tag: str) -> dict[str, Any]:
    return {"action": "remove-snapshot-ref", "ref-name": tag}


def expires(*versions: int) -> dict[str, Any]:
    return {"action": "remove-snapshots", "snapshot-ids": list(versions)}


def tags(root: Root, location: str) -> dict[str, int]:
    return {name: tag["version"] for name, tag in root.open(location).tags.list().items()}


def test_set_moved_and_removed(client: Client, root: Root, place: Place, name: str, location: str) -> None:
    locations = set()
    for updates, expected in [
        ([sets("v1", 1), sets("best", 2)], {"v1": 1, "best": 2}),
        ([sets("best", 3)], {"v1": 1, "best": 3}),
        ([removes("v1"), removes("never")], {"best": 3}),
    ]:
        answered = assert_ok(commit(client, place, name, *updates))
        assert tags(root, location) == expected
        refs = {key: ref["snapshot-id"] for key, ref in answered["metadata"]["refs"].items() if key != "main"}
        assert refs == expected
        assert answered["metadata"]["current-snapshot-id"] == 4
        locations.add(answered["metadata-location"])
    assert len(locations) == 3


def test_asserted(client: Client, root: Root, place: Place, name: str, location: str) -> None:
    assert_ok(commit(client, place, name, sets("v1", 1), requirements=[asserts("v1", None)]))
    for expected in (None, 2):
        response = commit(client, place, name, sets("v1", 3), requirements=[asserts("v1", expected)])
        assert_error(response, 409, "CommitFailedException", names="Requirement failed: ")
    assert_ok(commit(client, place, name, sets("v1", 3), requirements=[asserts("v1", 1)]))
    assert tags(root, location) == {"v1": 3}


def test_snapshots_go(client: Client, root: Root, place: Place, name: str, location: str) -> None:
    answered = assert_ok(commit(client, place, name, expires(1, 3, 99)))
    assert [each["snapshot-id"] for each in versions_in(answered["metadata"])] == [2, 4]
    assert [each["version"] for each in root.open(location).versions()] == [2, 4]
    assert_ok(commit(client, place, name, expires(1, 3)))


def test_refused(client: Client, root: Root, place: Place, name: str, location: str) -> None:
    assert_ok(commit(client, place, name, sets("v2", 2)))
    before = client.metadata(place, name)
    for updates, why in [
        ([expires(4)], "4"),
        ([expires(1, 2)], "v2"),
        ([sets("v1", 1), expires(1)], "v1"),
        ([sets("v9", 9)], "9"),
        ([sets("main", 2, "branch")], "main"),
        ([sets("main", 2)], "main"),
        ([sets("side", 2, "branch")], "side"),
        ([removes("main")], "main"),
        ([sets("v1", 1), sets("no spaces", 2)], "no spaces"),
        ([sets("ümlaut", 2)], "ümlaut"),
        ([sets("", 2)], "tag"),
        ([sets("v1", 1), {"action": "set-properties", "updates": {"a": "1"}}], "set-properties"),
    ]:
        response = commit(client, place, name, *updates)
        assert_error(response, 400, "BadRequestException", names=why)
        assert client.metadata(place, name) == before
    assert tags(root, location) == {"v2": 2}
    assert_ok(commit(client, place, name, removes("v2"), expires(2)))
    assert tags(root, location) == {}


def test_pyiceberg(bridge: Bridge, root: Root, place: Place, name: str, location: str) -> None:
    table = load_catalog("b", type="rest", uri=bridge.server.url, warehouse="main").load_table((*place, name))
    table.manage_snapshots().create_tag(2, "two").create_tag(1, "one").commit()
    assert tags(root, location) == {"one": 1, "two": 2}
    table.manage_snapshots().remove_tag("one").commit()
    table.maintenance.expire_snapshots().by_id(1).commit()
    assert version_numbers(table.refresh().snapshots()) == [2, 3, 4]
    assert set(table.refs()) == {"main", "two"}
