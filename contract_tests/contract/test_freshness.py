"""What another process does shows in the next answer, also where this server has the table warm."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import lance.namespace
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DropNamespaceRequest,
)

from contract_tests.worlds.bridge import Client, as_loaded, table_path, versions_in
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import COMPATIBLE, Bridge
from contract_tests.worlds.writer import rows

Place = tuple[str, ...]
ROOT = ("default",)


def seen(bridge: Bridge, place: Place, name: str) -> tuple[Any, ...]:
    """What a client is told in both ways, which must agree on what is there now."""
    everything = bridge.client.metadata(place, name)
    refs = bridge.client.metadata(place, name, snapshots="refs")
    for key in ("current-snapshot-id", "refs", "table-uuid", "properties", "last-updated-ms", "schemas"):
        if key != "schemas":
            assert everything.get(key) == refs.get(key)
    return everything["current-snapshot-id"], everything["refs"], everything["properties"]


def test_two_servers_see_each_others_tables(bridge: Bridge, place: Place, name: str) -> None:
    with bridge.world.start_another(bridge) as other:
        for count in range(4):
            maker, looker = (bridge, other) if count % 2 else (other, bridge)
            assert f"{name}_{count}" not in looker.client.tables(place)
            created = maker.client.create_table(place, f"{name}_{count}")["metadata"]
            assert looker.client.metadata(place, f"{name}_{count}") == as_loaded(created)
            assert f"{name}_{count}" in looker.client.tables(place)
            maker.client.delete(table_path(place, f"{name}_{count}"), params={"purgeRequested": "true"})
            assert looker.client.get(table_path(place, f"{name}_{count}")).status_code == 404
            assert f"{name}_{count}" not in looker.client.tables(place)


def test_versions_by_another_process(bridge: Bridge, place: Place, name: str) -> None:
    location = bridge.client.create_table(place, name)["metadata"]["location"]
    table = bridge.root.open(location)
    for version in range(2, 22):
        table = bridge.root.write(location, rows(1).cast(table.schema), mode="append")
        assert seen(bridge, place, name)[0] == version


def test_an_overwrite_and_a_restore(bridge: Bridge, place: Place, name: str) -> None:
    location = bridge.client.create_table(place, name)["metadata"]["location"]
    bridge.root.write(location, rows(1), mode="overwrite")
    assert seen(bridge, place, name)[0] == 2
    old = bridge.root.open(location).checkout_version(1)
    old.restore()
    assert seen(bridge, place, name)[0] == 3


@pytest.mark.needs("folders as tables")
def test_folders_come_and_go(bridge: Bridge, name: str) -> None:
    folder = bridge.root.at(f"{name}.lance")
    for count in range(1, 6):
        assert name not in bridge.client.tables(ROOT)
        bridge.root.write(folder, rows(count))
        assert name in bridge.client.tables(ROOT)
        loaded = bridge.client.metadata(ROOT, name)
        assert versions_in(loaded)[0]["summary"]["total-records"] == str(count)
        bridge.root.remove(folder)
        assert bridge.client.get(table_path(ROOT, name)).status_code == 404


@pytest.mark.needs("folders as tables")
def test_a_shorter_history_of_the_same_name(client: Client, root: Root, name: str) -> None:
    folder = root.at(f"{name}.lance")
    root.write(folder)
    root.write(folder, mode="append")
    root.write(folder, mode="append")
    assert client.metadata(ROOT, name)["current-snapshot-id"] == 3
    root.remove(folder)
    root.write(folder, rows(9))
    root.write(folder, rows(1), mode="append")
    metadata = client.metadata(ROOT, name)
    assert metadata["current-snapshot-id"] == 2
    assert [each["summary"]["total-records"] for each in versions_in(metadata)] == ["9", "10"]


def test_a_cleanup_shows_within_a_minute_and_breaks_nothing(bridge: Bridge, place: Place, name: str) -> None:
    location = bridge.client.create_table(place, name)["metadata"]["location"]
    table = bridge.root.open(location)
    for _ in range(4):
        table = bridge.root.write(location, rows(1).cast(table.schema), mode="append")
    assert len(versions_in(bridge.client.metadata(place, name))) == 5
    table.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert bridge.client.metadata(place, name)["current-snapshot-id"] == 5
    table.insert(rows(1).cast(table.schema))
    metadata = bridge.client.metadata(place, name)
    assert metadata["current-snapshot-id"] == 6
    assert versions_in(metadata)[-1]["snapshot-id"] == 6


def test_what_pylance_does_to_the_folder(tmp_path: Path) -> None:
    """The released directory namespace of pylance and the bridge work on one folder."""
    with COMPATIBLE.start(tmp_path) as bridge:
        client = bridge.client
        client.create_namespace("mine", owner="me")
        created = client.create_table(("mine",), "t")["metadata"]
        other = lance.namespace.DirectoryNamespace(root=str(bridge.root))
        other.create_namespace(CreateNamespaceRequest(id=["theirs"], properties={"owner": "you"}))
        assert client.namespaces() == [ROOT, ("mine",), ("theirs",)]
        location = other.declare_table(DeclareTableRequest(id=["theirs", "t"])).location
        assert client.tables(("theirs",)) == ["t"]
        assert client.metadata(("theirs",), "t").get("current-snapshot-id", -1) == -1
        lance.write_dataset(rows(2), location)
        assert client.metadata(("theirs",), "t")["current-snapshot-id"] == 1
        lance.write_dataset(rows(2), namespace_client=other, table_id=["mine", "direct"])
        assert client.metadata(("mine",), "direct")["current-snapshot-id"] == 1
        read = lance.dataset(namespace_client=other, table_id=["mine", "t"])
        assert bridge.root.plain(created["location"]) in read.uri
        other.deregister_table(DeregisterTableRequest(id=["mine", "t"]))
        assert client.tables(("mine",)) == ["direct"]
        assert client.get(table_path(("mine",), "t")).status_code == 404
        client.delete(table_path(("theirs",), "t"), params={"purgeRequested": "true"})
        other.drop_namespace(DropNamespaceRequest(id=["theirs"]))
        assert client.namespaces() == [ROOT, ("mine",)]
