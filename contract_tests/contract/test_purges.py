"""A purge by an Iceberg client takes the name and keeps the files, so that the table can be brought back."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from contract_tests.contract.tables import PURGE, Place, absent, create
from contract_tests.lance.client import InDefault, Lance, ok, refused
from contract_tests.worlds.bridge import (
    SCHEMA,
    Client,
    assert_error,
    assert_ok,
    namespace_path,
    table_path,
)
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import (
    COMPATIBLE,
    IRC,
    LISTING,
    MANIFEST,
    S3_WORLDS,
    VERSIONS,
    Bridge,
    UpstreamWorld,
    World,
    _worlds,
)
from contract_tests.worlds.writer import rows

pytestmark = _worlds(COMPATIBLE, LISTING, MANIFEST, VERSIONS[0], *S3_WORLDS[:2], IRC)

DUE = 'purge_after = "1s"\n'
MARKER = ".lance-deregistered"


@pytest.fixture(scope="module")
def bridge(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """With the settings of a user who sets none."""
    with replace(world, unsafe="").start(tmp_path_factory.mktemp(f"purges-{world.name}")) as bridge:
        yield bridge


@pytest.fixture
def place(bridge: Bridge, name: str) -> Place:
    if "child namespaces" in bridge.world.cannot:
        return ("default",)
    return bridge.client.create_namespace(f"purge_{name}")


@pytest.fixture
def lance_rest(bridge: Bridge) -> Iterator[Lance]:
    kind = InDefault if isinstance(bridge.world, UpstreamWorld) else Lance
    with kind(bridge.server.url) as lance:
        yield lance


def lance_id(bridge: Bridge, place: Place, name: str) -> list[str]:
    return [name] if place == ("default",) and not isinstance(bridge.world, UpstreamWorld) else [*place, name]


def three_versions(client: Client, root: Root, place: Place, name: str) -> dict[str, Any]:
    made: dict[str, Any] = client.create_table(place, name)["metadata"]
    for number in range(2):
        root.write(made["location"], rows(number + 1).cast(root.open(made["location"]).schema), mode="append")
    root.open(made["location"]).tags.create("two", 2)
    return client.metadata(place, name)


def content(root: Root, location: str) -> dict[str, bytes]:
    """Without the marker of a purge, and what a server behind writes there for the next table of the name."""
    paths = [each for each in root.files(location) if each != MARKER and not each.startswith("metadata/")]
    return {each: root.read(f"{location}/{each}") for each in paths if "." in each.rpartition("/")[2]}


def purge(client: Client, place: Place, name: str) -> None:
    assert client.delete(table_path(place, name), params=PURGE).status_code == 204
    assert absent(client, place, name)


def register(client: Client, place: Place, name: str, location: str) -> Any:
    body = {"name": name, "metadata-location": location}
    return client.post(f"{namespace_path(place)}/register", json=body)


def test_every_file_stays(bridge: Bridge, place: Place, name: str) -> None:
    location = three_versions(bridge.client, bridge.root, place, name)["location"]
    before = content(bridge.root, location)
    purge(bridge.client, place, name)
    assert content(bridge.root, location) == before
    assert bridge.root.open(location).count_rows() == 3


def test_register_brings_it_back(bridge: Bridge, place: Place, name: str) -> None:
    client, root = bridge.client, bridge.root
    before = three_versions(client, root, place, name)
    purge(client, place, name)
    back = assert_ok(register(client, place, name, before["location"]))["metadata"]
    for key in ("table-uuid", "location", "snapshots", "refs", "schemas", "current-snapshot-id"):
        assert back[key] == before[key]
    assert client.metadata(place, name)["table-uuid"] == before["table-uuid"]
    assert not root.exists(f"{before['location']}/{MARKER}")
    # it is a table as any other: what is deregistered stays
    assert client.delete(table_path(place, name)).status_code == 204
    assert root.open(before["location"]).count_rows() == 3


def test_over_the_lance_protocol_too(bridge: Bridge, lance_rest: Lance, place: Place, name: str) -> None:
    before = three_versions(bridge.client, bridge.root, place, name)
    purge(bridge.client, place, name)
    levels = lance_id(bridge, place, name)
    ok(lance_rest.table(levels, "register", {"location": before["location"]}))
    after = bridge.client.metadata(place, name)
    assert (after["table-uuid"], after["refs"]) == (before["table-uuid"], before["refs"])


def test_a_declared_table_comes_back(bridge: Bridge, place: Place, name: str) -> None:
    if isinstance(bridge.world, UpstreamWorld):
        pytest.skip("before another server a declared table has no files, so nothing is left to register")
    before = bridge.client.declare_table(place, name, properties={"owner": "ann"})["metadata"]
    purge(bridge.client, place, name)
    back = assert_ok(register(bridge.client, place, name, before["location"]))["metadata"]
    assert (back["table-uuid"], back["properties"]["owner"]) == (before["table-uuid"], "ann")


def test_a_new_table_of_the_name(bridge: Bridge, place: Place, name: str) -> None:
    client, root = bridge.client, bridge.root
    location = three_versions(client, root, place, name)["location"]
    before = content(root, location)
    purge(client, place, name)
    again = create(client, place, {"name": name, "schema": SCHEMA})
    if bridge.world.name.startswith(LISTING.name):
        message = assert_error(again, 409, "AlreadyExistsException")
        assert f"irc-bridge expire --now main.default.{name}" in message
        assert absent(client, place, name)
    else:
        assert assert_ok(again)["metadata"]["location"] != location
        # purged as well, each of the two has its own files
        purge(client, place, name)
    assert content(root, location) == before
    assert_ok(register(client, place, name, location))
    assert client.metadata(place, name)["current-snapshot-id"] == 3


@pytest.mark.needs("child namespaces")
def test_it_outlives_its_namespace(bridge: Bridge, place: Place, name: str) -> None:
    """As Trino's DROP SCHEMA CASCADE does it."""
    client = bridge.client
    before = three_versions(client, bridge.root, place, name)
    purge(client, place, name)
    dropped = client.delete(namespace_path(place))
    assert dropped.status_code == 204, dropped.text
    assert bridge.root.open(before["location"]).count_rows() == 3
    elsewhere = client.create_namespace(f"else_{name}")
    back = assert_ok(register(client, elsewhere, name, before["location"]))["metadata"]
    assert (back["table-uuid"], back["refs"]) == (before["table-uuid"], before["refs"])


def test_drop_twice(bridge: Bridge, place: Place, name: str) -> None:
    three_versions(bridge.client, bridge.root, place, name)
    purge(bridge.client, place, name)
    again = bridge.client.delete(table_path(place, name), params=PURGE)
    assert_error(again, 404, "NoSuchTableException")


def test_the_drop_of_the_lance_protocol_takes_the_files(
    bridge: Bridge, lance_rest: Lance, place: Place, name: str
) -> None:
    location = three_versions(bridge.client, bridge.root, place, name)["location"]
    ok(lance_rest.table(lance_id(bridge, place, name), "drop", {}))
    assert absent(bridge.client, place, name)
    assert not bridge.root.exists(location)


def test_it_takes_a_purged_table_that_it_knows_by_its_folder(
    bridge: Bridge, lance_rest: Lance, place: Place, name: str
) -> None:
    """Seed 001: a table in the folder of its name can be dropped when it was deregistered. Another has no name."""
    location = three_versions(bridge.client, bridge.root, place, name)["location"]
    purge(bridge.client, place, name)
    dropped = lance_rest.table(lance_id(bridge, place, name), "drop", {})
    if location.endswith(f"/{name}.lance") and "manifest" not in bridge.world.name:
        ok(dropped)
        assert not bridge.root.exists(location)
        assert bridge.client.create_table(place, name)["metadata"]["location"] == location
    else:
        refused(dropped, 404, 4)
        assert bridge.root.open(location).count_rows() == 3


def test_the_server_removes_what_is_due(world: World, tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    """At its time: the purge wakes it."""
    with replace(world, unsafe=DUE).start(tmp_path_factory.mktemp(f"due-{world.name}")) as bridge:
        place = (
            ("default",) if "child namespaces" in world.cannot else bridge.client.create_namespace(f"due_{name}")
        )
        location = three_versions(bridge.client, bridge.root, place, name)["location"]
        spared = three_versions(bridge.client, bridge.root, place, f"{name}_spared")["location"]
        for each in (name, f"{name}_spared"):
            purge(bridge.client, place, each)
        assert_ok(register(bridge.client, place, f"{name}_spared", spared))
        bridge.server.wait_for(lambda line: "is due" in line and location in line and "removed" in line)
        assert not bridge.root.exists(location)
        assert bridge.client.metadata(place, f"{name}_spared")["current-snapshot-id"] == 3
        again = bridge.client.create_table(place, name)["metadata"]
        assert again["current-snapshot-id"] == 1
        assert spared not in "".join(line for line in bridge.server.log if "removed" in line)
