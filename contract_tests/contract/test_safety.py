"""What the defaults keep Iceberg clients from doing to a Lance table."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import BadRequestError

from contract_tests.contract.test_commits import commit, set_properties
from contract_tests.contract.test_tags import expires, sets
from contract_tests.worlds.bridge import (
    Client,
    assert_error,
    assert_ok,
    namespace_path,
    version_numbers,
    versions_in,
)
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import COMPATIBLE, IRC, S3_WORLDS, VERSIONS, Bridge, World, _worlds
from contract_tests.worlds.writer import rows

Place = tuple[str, ...]
pytestmark = _worlds(COMPATIBLE, VERSIONS[0], S3_WORLDS[0], IRC)
GUARD = 0


@pytest.fixture(scope="module")
def safe(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """A server with the settings that a user has who sets none."""
    with replace(world, unsafe="").start(tmp_path_factory.mktemp(f"safe-{world.name}")) as bridge:
        yield bridge


@pytest.fixture(scope="module")
def lenient(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    with replace(world, unsafe="allow_expire = true\n").start(
        tmp_path_factory.mktemp(f"lenient-{world.name}")
    ) as it:
        yield it


@pytest.fixture
def place(safe: Bridge, lenient: Bridge, name: str) -> Place:
    for bridge in (safe, lenient):
        # before another server both are one catalog
        bridge.client.post("namespaces", json={"namespace": [f"ns_{name}"]})
    return (f"ns_{name}",)


def five_versions(client: Client, root: Root, place: Place, name: str) -> str:
    location: str = client.create_table(place, name)["metadata"]["location"]
    for number in range(4):
        root.write(location, rows(number + 1).cast(root.open(location).schema), mode="append")
    return location


def numbers(root: Root, location: str) -> list[int]:
    return [version["version"] for version in root.open(location).versions()]


class TestExpiring:
    def test_versions_stay(self, safe: Bridge, place: Place, name: str) -> None:
        location = five_versions(safe.client, safe.root, place, name)
        refused = commit(safe.client, place, name, expires(1, 2))
        message = assert_error(refused, 400, "BadRequestException")
        assert "allow_expire" in message and "Lance" in message
        assert numbers(safe.root, location) == [1, 2, 3, 4, 5]

    def test_pyiceberg_is_told_so(self, safe: Bridge, place: Place, name: str) -> None:
        location = five_versions(safe.client, safe.root, place, name)
        catalog = load_catalog("safe", type="rest", uri=safe.server.url, warehouse="main")
        table = catalog.load_table((*place, name))
        with pytest.raises(BadRequestError, match="delete versions of a Lance table for good"):
            table.maintenance.expire_snapshots().by_ids(version_numbers(table.snapshots())[:2]).commit()
        assert numbers(safe.root, location) == [1, 2, 3, 4, 5]

    def test_with_allow_expire_the_guard_stays(self, lenient: Bridge, place: Place, name: str) -> None:
        location = five_versions(lenient.client, lenient.root, place, name)
        before = lenient.client.metadata(place, name)
        for gone in ((GUARD, 2, 3), (GUARD,)):
            assert_ok(commit(lenient.client, place, name, expires(*gone)))
            after = lenient.client.metadata(place, name)
            assert after["snapshots"][0] == before["snapshots"][0]
            assert [each["snapshot-id"] for each in versions_in(after)] == [1, 4, 5]
        assert numbers(lenient.root, location) == [1, 4, 5]
        assert after["properties"]["gc.enabled"] == "false"
        old = {each["snapshot-id"]: each for each in before["snapshots"]}
        for snapshot in after["snapshots"]:
            for key in ("parent-snapshot-id", "sequence-number", "timestamp-ms"):
                assert snapshot.get(key) == old[snapshot["snapshot-id"]].get(key)


class TestGuard:
    def test_it_is_in_the_full_list_only(self, safe: Bridge, place: Place, name: str) -> None:
        location = five_versions(safe.client, safe.root, place, name)
        full, refs = (safe.client.metadata(place, name, snapshots=each) for each in ("all", "refs"))
        guard, *versions = full["snapshots"]
        assert guard["snapshot-id"] == GUARD
        assert guard["summary"]["irc-bridge.guard"] == "true"
        assert guard["schema-id"] == full["current-schema-id"]
        assert guard["manifest-list"].startswith(f"{location}/_iceberg/")
        assert guard["manifest-list"].endswith("/This-is-a-Lance-table--clean-it-up-with-Lance.avro")
        assert not safe.root.exists(guard["manifest-list"])
        for key in ("sequence-number", "timestamp-ms"):
            assert all(guard[key] < version[key] for version in versions)
        assert GUARD not in [each["snapshot-id"] for each in refs["snapshots"]]
        assert GUARD not in [each["snapshot-id"] for each in full["snapshot-log"]]
        assert GUARD not in [ref["snapshot-id"] for ref in full["refs"].values()]

    def test_nothing_can_refer_to_it(self, safe: Bridge, place: Place, name: str) -> None:
        five_versions(safe.client, safe.root, place, name)
        assert_error(commit(safe.client, place, name, sets("oldest", GUARD)), 400, names="there is no version 0")
        assert_error(commit(safe.client, place, name, sets("main", GUARD, "branch")), 400)

    def test_a_declared_table_has_none(self, safe: Bridge, place: Place, name: str) -> None:
        safe.client.declare_table(place, name)
        assert safe.client.metadata(place, name)["snapshots"] == []

    def test_it_can_be_turned_off(self, world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
        folder = tmp_path_factory.mktemp("without")
        with replace(world, unsafe="guard_snapshot = false\n").start(folder) as bridge:
            bridge.client.create_namespace(folder.name)
            bridge.client.create_table((folder.name,), "t")
            metadata = bridge.client.metadata((folder.name,), "t")
            assert [each["snapshot-id"] for each in metadata["snapshots"]] == [1]
            assert metadata["properties"]["gc.enabled"] == "false"


def staged_properties(client: Client, place: Place, name: str) -> dict[str, str]:
    body = {"name": name, "schema": {"type": "struct", "fields": []}, "stage-create": True}
    properties: dict[str, str] = assert_ok(client.post(f"{namespace_path(place)}/tables", json=body))["metadata"][
        "properties"
    ]
    return properties


class TestProperties:
    @pytest.fixture
    def made(self, safe: Bridge, place: Place, name: str) -> dict[str, Any]:
        made = safe.client.create_table(place, name, properties={"gc.enabled": "false"})
        return dict(made["metadata"])

    def test_files_are_not_the_clients_to_delete(self, made: dict[str, Any]) -> None:
        assert made["properties"]["gc.enabled"] == "false"
        for key in ("write.data.path", "write.metadata.path"):
            assert made["properties"][key].startswith(f"{made['location']}/_iceberg/")

    @pytest.mark.usefixtures("made")
    @pytest.mark.parametrize("key", ["gc.enabled", "write.data.path", "write.metadata.path"])
    def test_they_cannot_be_changed(self, safe: Bridge, place: Place, name: str, key: str) -> None:
        before = safe.client.metadata(place, name)
        for update in (
            set_properties(**{key: "true"}),
            set_properties(**{key: "/elsewhere/_iceberg"}),
            {"action": "remove-properties", "removals": [key]},
        ):
            assert_error(commit(safe.client, place, name, update), 400, "BadRequestException", names=key)
        assert safe.client.metadata(place, name) == before

    def test_the_same_values_are_taken(self, safe: Bridge, made: dict[str, Any], place: Place, name: str) -> None:
        answered = assert_ok(commit(safe.client, place, name, set_properties(**made["properties"], owner="ann")))
        assert answered["metadata"]["properties"] == {**made["properties"], "owner": "ann"}

    def test_a_table_cannot_be_made_with_others(self, safe: Bridge, place: Place, name: str) -> None:
        body = {"name": name, "schema": {"type": "struct", "fields": []}, "properties": {"gc.enabled": "true"}}
        for stage in (True, False):
            refused = safe.client.post(f"{namespace_path(place)}/tables", json={**body, "stage-create": stage})
            assert_error(refused, 400, "BadRequestException", names="gc.enabled")

    def test_a_staged_table_has_them_and_gets_them_back(self, safe: Bridge, place: Place, name: str) -> None:
        properties = staged_properties(safe.client, place, name)
        assert properties["gc.enabled"] == "false"
        made = safe.client.create_table(place, name, properties=properties)["metadata"]["properties"]
        assert made["gc.enabled"] == "false"


class TestTablesWithoutRows:
    def test_pyiceberg_scans_one(self, safe: Bridge, place: Place, name: str) -> None:
        safe.client.create_table(place, name)
        options = {
            "s3.endpoint": safe.root.options.get("aws_endpoint", ""),
            "s3.access-key-id": safe.root.options.get("aws_access_key_id", ""),
            "s3.secret-access-key": safe.root.options.get("aws_secret_access_key", ""),
        }
        catalog = load_catalog("safe", type="rest", uri=safe.server.url, warehouse="main", **options)
        scanned = catalog.load_table((*place, name)).scan().to_arrow()
        assert (scanned.num_rows, scanned.column_names) == (0, ["id", "name"])

    def test_a_version_with_rows_is_not_taken_for_one(self, safe: Bridge, place: Place, name: str) -> None:
        five_versions(safe.client, safe.root, place, name)
        metadata = safe.client.metadata(place, name)
        lists = [each["manifest-list"] for each in versions_in(metadata)]
        assert safe.root.exists(lists[0])
        assert not any(safe.root.exists(each) for each in lists[1:])
        assert metadata["current-snapshot-id"] == 5

    def test_reading_writes_nothing_where_the_warehouse_is_read_only(
        self, world: World, safe: Bridge, place: Place, name: str, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        location = safe.client.create_table(place, name)["metadata"]["location"]
        (empty,) = [each["manifest-list"] for each in versions_in(safe.client.metadata(place, name))]
        safe.root.remove(empty)
        read_only = replace(world, unsafe="read_only = true\n")
        file = tmp_path_factory.mktemp("read-only") / "irc-bridge.toml"
        file.write_text(read_only.configuration(safe.root))
        before = safe.root.files(location)
        with read_only.server(file) as server, server.client() as client:
            (version,) = versions_in(client.metadata(place, name))
        assert "has-no-Parquet-copy" in version["manifest-list"]
        assert safe.root.files(location) == before


class TestFoldersOfEngines:
    """DuckDB makes none."""

    def test_they_are_there_on_a_disk(self, safe: Bridge, place: Place, name: str) -> None:
        location = five_versions(safe.client, safe.root, place, name)
        properties = safe.client.metadata(place, name)["properties"]
        for key in ("write.data.path", "write.metadata.path"):
            assert safe.root.exists(properties[key]) == location.startswith("file:")

    def test_and_go_with_the_table(self, safe: Bridge, place: Place, name: str) -> None:
        location = five_versions(safe.client, safe.root, place, name)
        safe.client.metadata(place, name)
        levels = safe.world.lance_id(name) if place == ("default",) else f"{place[0]}${name}"
        assert_ok(safe.client.post(f"/lance/v1/table/{levels}/drop", json={}))
        assert not safe.root.exists(location)
