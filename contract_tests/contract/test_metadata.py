"""How a Lance table looks as Iceberg TableMetadata (seed 004 and what the issue adds)."""

import uuid
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from contract_tests.conftest import Start
from contract_tests.strangers.openapi import SPECIFICATION, specification
from contract_tests.worlds.bridge import Client, table_path, versions_in
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import COMPATIBLE, Bridge
from contract_tests.worlds.writer import folder_of, rows, write

Place = tuple[str, ...]


def with_history(client: Client, root: Root, place: Place, name: str) -> Any:
    """Version 1 has no rows, 2 appends, 3 adds a column, 4 deletes, 5 appends; tags on 2 and 4."""
    location = client.create_table(place, name)["metadata"]["location"]
    table = root.open(location)
    table = root.write(location, rows(3).cast(table.schema), mode="append")
    table.tags.create("two", 2)
    table.add_columns({"twice": "id * 2"})
    table.delete("id = 1")
    table.tags.create("four", 4)
    table.insert(pa.table({"id": [7], "name": ["seven"], "twice": [14]}, schema=table.schema))
    assert table.version == 5
    return table


def names_of(schema: dict[str, Any]) -> list[str]:
    return [field["name"] for field in schema["fields"]]


class TestSeed:
    """The requirements of seed 004, one by one."""

    @pytest.fixture
    def loaded(self, client: Client, root: Root, place: Place, name: str) -> dict[str, Any]:
        self.table = with_history(client, root, place, name)
        return client.load(place, name)

    @pytest.fixture
    def metadata(self, loaded: dict[str, Any]) -> dict[str, Any]:
        metadata: dict[str, Any] = loaded["metadata"]
        return metadata

    def test_location_is_the_lance_root(self, root: Root, metadata: dict[str, Any]) -> None:
        assert root.plain(metadata["location"]) == self.table.uri.rstrip("/").removeprefix("file://")
        assert root.open(metadata["location"]).version == 5

    def test_table_type_and_managed_by(self, metadata: dict[str, Any]) -> None:
        assert metadata["properties"]["table_type"] == "lance"
        assert metadata["properties"]["managed_by"] == "storage"

    def test_current_snapshot_is_the_latest_version(self, metadata: dict[str, Any]) -> None:
        assert metadata["current-snapshot-id"] == 5

    def test_no_metadata_location(self, loaded: dict[str, Any]) -> None:
        assert "metadata-location" not in loaded

    def test_the_current_schema_is_the_latest_under_its_first_version(self, metadata: dict[str, Any]) -> None:
        assert metadata["current-schema-id"] == 3
        (current,) = [schema for schema in metadata["schemas"] if schema["schema-id"] == 3]
        assert names_of(current) == ["id", "name", "twice"]
        assert [field["type"] for field in current["fields"]] == ["long", "string", "long"]

    def test_the_latest_version_has_snapshot_log_and_main(self, metadata: dict[str, Any]) -> None:
        assert 5 in [snapshot["snapshot-id"] for snapshot in versions_in(metadata)]
        assert metadata["snapshot-log"][-1]["snapshot-id"] == 5
        assert metadata["refs"]["main"] == {"snapshot-id": 5, "type": "branch"}

    def test_format_version_two(self, metadata: dict[str, Any]) -> None:
        assert metadata["format-version"] == 2
        assert metadata["default-spec-id"] in [spec["spec-id"] for spec in metadata["partition-specs"]]
        assert metadata["default-sort-order-id"] in [order["order-id"] for order in metadata["sort-orders"]]
        uuid.UUID(metadata["table-uuid"])

    @pytest.mark.skipif(not SPECIFICATION.exists(), reason=f"there is no {SPECIFICATION.name}")
    def test_no_field_that_the_specification_does_not_know(self, loaded: dict[str, Any]) -> None:
        known = specification()
        assert known
        schemas = known._document["components"]["schemas"]
        assert set(loaded["metadata"]) <= set(schemas["TableMetadata"]["properties"])
        assert set(loaded) <= set(schemas["LoadTableResult"]["properties"])
        for snapshot in versions_in(loaded["metadata"]):
            assert set(snapshot) <= set(schemas["Snapshot"]["properties"])


class TestHistory:
    def test_all_lists_every_version(self, client: Client, root: Root, place: Place, name: str) -> None:
        with_history(client, root, place, name)
        for query in ({}, {"snapshots": "all"}):
            metadata = client.metadata(place, name, **query)
            assert [snapshot["snapshot-id"] for snapshot in versions_in(metadata)] == [1, 2, 3, 4, 5]
            assert [entry["snapshot-id"] for entry in metadata["snapshot-log"]] == [1, 2, 3, 4, 5]

    def test_refs_lists_the_current_and_the_tagged(
        self, client: Client, root: Root, place: Place, name: str
    ) -> None:
        with_history(client, root, place, name)
        metadata = client.metadata(place, name, snapshots="refs")
        assert [snapshot["snapshot-id"] for snapshot in versions_in(metadata)] == [2, 4, 5]
        assert [entry["snapshot-id"] for entry in metadata["snapshot-log"]] == [2, 4, 5]

    @pytest.mark.parametrize("query", ["all", "refs"])
    def test_tags_become_tags(self, client: Client, root: Root, place: Place, name: str, query: str) -> None:
        with_history(client, root, place, name)
        assert client.metadata(place, name, snapshots=query)["refs"] == {
            "main": {"snapshot-id": 5, "type": "branch"},
            "two": {"snapshot-id": 2, "type": "tag"},
            "four": {"snapshot-id": 4, "type": "tag"},
        }

    def test_a_tag_named_main_does_not_hide_the_table(
        self, client: Client, root: Root, place: Place, name: str
    ) -> None:
        with_history(client, root, place, name).tags.create("main", 1)
        for query in ("all", "refs"):
            metadata = client.metadata(place, name, snapshots=query)
            assert metadata["refs"]["main"] == {"snapshot-id": 5, "type": "branch"}
            assert metadata["current-snapshot-id"] == 5

    @pytest.mark.parametrize("tag", ["v1.0", "a-b_c", "ärger", "版本"])
    def test_any_tag_that_lance_allows(
        self, client: Client, root: Root, place: Place, name: str, tag: str
    ) -> None:
        with_history(client, root, place, name).tags.create(tag, 2)
        for query in ("all", "refs"):
            refs = client.metadata(place, name, snapshots=query)["refs"]
            assert refs[tag] == {"snapshot-id": 2, "type": "tag"}

    def test_branches_of_lance_stay_out(self, client: Client, root: Root, place: Place, name: str) -> None:
        table = with_history(client, root, place, name)
        branch = table.create_branch("side")
        branch.insert(rows(2).append_column("twice", pa.array([1, 1])).cast(branch.schema))
        table.tags.create("aside", ("side", branch.latest_version))
        for query, listed in (("all", [1, 2, 3, 4, 5]), ("refs", [2, 4, 5])):
            metadata = client.metadata(place, name, snapshots=query)
            assert set(metadata["refs"]) == {"main", "two", "four"}
            assert [each["snapshot-id"] for each in versions_in(metadata)] == listed
            assert metadata["refs"]["main"]["snapshot-id"] == 5

    @pytest.mark.parametrize("value", ["", "ALL", "none", "all,refs"])
    def test_any_other_choice_is_refused(self, client: Client, place: Place, name: str, value: str) -> None:
        client.create_table(place, name)
        response = client.get(table_path(place, name), params={"snapshots": value})
        assert response.status_code == 400
        assert response.json()["error"]["type"] == "BadRequestException"
        assert "snapshots" in response.json()["error"]["message"]

    @pytest.mark.parametrize("query", ["all", "refs"])
    def test_snapshots_agree_with_the_rest(
        self, client: Client, root: Root, place: Place, name: str, query: str
    ) -> None:
        table = with_history(client, root, place, name)
        metadata = client.metadata(place, name, snapshots=query)
        written = {each["version"]: each["timestamp"] for each in table.versions()}
        listed = {snapshot["snapshot-id"] for snapshot in versions_in(metadata)}
        for snapshot in versions_in(metadata):
            version = snapshot["snapshot-id"]
            assert snapshot["schema-id"] in [schema["schema-id"] for schema in metadata["schemas"]]
            assert abs(snapshot["timestamp-ms"] - written[version].timestamp() * 1000) < 2
            assert snapshot.get("parent-snapshot-id") in {None, *listed, version - 1}
            assert snapshot.get("parent-snapshot-id", 0) < version
            assert snapshot["sequence-number"] <= metadata["last-sequence-number"]
        times = [entry["timestamp-ms"] for entry in metadata["snapshot-log"]]
        assert times == sorted(times)
        assert metadata["last-updated-ms"] >= times[-1]

    def test_each_snapshot_names_its_own_schema(self, client: Client, root: Root, place: Place, name: str) -> None:
        table = with_history(client, root, place, name)
        metadata = client.metadata(place, name)
        schemas = {schema["schema-id"]: names_of(schema) for schema in metadata["schemas"]}
        assert sorted(schemas) == [1, 3]
        for snapshot in versions_in(metadata):
            version = snapshot["snapshot-id"]
            assert schemas[snapshot["schema-id"]] == table.checkout_version(version).schema.names
        assert {each["schema-id"] for each in versions_in(metadata)[2:]} == {3}

    def test_a_snapshot_says_what_was_done(self, client: Client, root: Root, place: Place, name: str) -> None:
        with_history(client, root, place, name)
        done = [each["summary"] for each in versions_in(client.metadata(place, name))]
        assert done[1]["operation"] == "append"
        assert done[3]["operation"] in ("delete", "overwrite")
        assert done[4]["operation"] == "append"

    def test_versions_that_are_gone_are_not_listed(self, bridge: Bridge, place: Place, name: str) -> None:
        table = with_history(bridge.client, bridge.root, place, name)
        table.tags.delete("two")
        table.cleanup_old_versions(timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False)
        with bridge.world.start_another(bridge) as other:
            metadata = other.client.metadata(place, name)
        assert [snapshot["snapshot-id"] for snapshot in versions_in(metadata)] == [4, 5]
        assert [entry["snapshot-id"] for entry in metadata["snapshot-log"]] == [4, 5]
        assert set(metadata["refs"]) == {"main", "four"}

    def test_a_version_with_rows_names_a_list_that_is_not_there(
        self, client: Client, root: Root, place: Place, name: str
    ) -> None:
        with_history(client, root, place, name)
        metadata = client.metadata(place, name)
        for snapshot in versions_in(metadata):
            path = snapshot["manifest-list"]
            if snapshot["summary"]["total-records"] == "0":
                assert root.exists(path)
                continue
            assert path.startswith(f"{root.uri}/") and len(path.replace("-", " ").split()) > 5, path
            assert not root.exists(path)


class TestFieldIds:
    def ids(self, client: Client, place: Place, name: str) -> dict[str, int]:
        metadata = client.metadata(place, name)
        (schema,) = [s for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"]]
        return {field["name"]: field["id"] for field in schema["fields"]}

    def test_they_are_those_of_lance_from_one_on(
        self, client: Client, root: Root, place: Place, name: str
    ) -> None:
        location = client.create_table(place, name)["metadata"]["location"]
        lance_ids = {field.name(): field.id() for field in root.open(location).lance_schema.fields()}
        assert self.ids(client, place, name) == {key: value + 1 for key, value in lance_ids.items()}

    def test_they_live_through_rename_add_and_drop(
        self, client: Client, root: Root, place: Place, name: str
    ) -> None:
        location = client.create_table(place, name)["metadata"]["location"]
        table = root.write(location, rows(3).cast(root.open(location).schema), mode="append")
        first = self.ids(client, place, name)
        table.alter_columns({"path": "name", "name": "renamed"})
        table.add_columns({"more": "id + 1"})
        second = self.ids(client, place, name)
        assert (second["id"], second["renamed"]) == (first["id"], first["name"])
        assert second["more"] not in first.values()
        table.drop_columns(["renamed"])
        assert self.ids(client, place, name) == {"id": first["id"], "more": second["more"]}

    def test_no_id_is_given_twice(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = client.declare_table(place, name)["metadata"]["location"]
        vector = pa.list_(pa.float32(), 2)
        point = pa.struct([("x", pa.int32()), ("v", vector)])
        data = pa.table(
            {
                "v": pa.array([[1.0, 2.0]], vector),
                "p": pa.array([{"x": 1, "v": [1.0, 2.0]}], point),
                "l": pa.array([[{"x": 1, "v": [1.0, 2.0]}]], pa.list_(point)),
                "z": pa.array([1]),
            }
        )
        root.write(location, data)
        metadata = client.metadata(place, name)
        seen = all_ids(metadata["schemas"][0])
        assert len(seen) == len(set(seen)) == 4 + 2 + 1 + 1 + 3 + 1
        assert all(1 <= each < 2**31 for each in seen)
        table = root.open(location)
        table.add_columns({"y": "z + 1"})
        assert set(seen) < set(all_ids(client.metadata(place, name)["schemas"][0]))


def all_ids(node: Any) -> list[int]:
    if isinstance(node, list):
        return [each for child in node for each in all_ids(child)]
    if not isinstance(node, dict):
        return []
    own = [node[key] for key in ("id", "element-id", "key-id", "value-id") if key in node]
    return own + [each for child in node.values() for each in all_ids(child)]


class TestTypes:
    def load(self, client: Client, root: Root, place: Place, name: str, data: pa.Table) -> dict[str, Any]:
        location = client.declare_table(place, name)["metadata"]["location"]
        root.write(location, data)
        return client.metadata(place, name)

    @pytest.mark.parametrize(
        ("arrow", "iceberg"),
        [
            (pa.int8(), "int"), (pa.int16(), "int"), (pa.uint8(), "int"), (pa.uint16(), "int"),
            (pa.int32(), "int"), (pa.int64(), "long"), (pa.uint32(), "long"), (pa.uint64(), "decimal(20,0)"),
            (pa.float16(), "float"), (pa.float32(), "float"), (pa.float64(), "double"),
            (pa.bool_(), "boolean"), (pa.string(), "string"), (pa.large_string(), "string"),
            (pa.binary(), "binary"), (pa.large_binary(), "binary"), (pa.binary(7), "fixed[7]"),
            (pa.date32(), "date"), (pa.date64(), "date"),
            (pa.time32("s"), "time"), (pa.time64("us"), "time"), (pa.time64("ns"), "time"),
            (pa.timestamp("s"), "timestamp"), (pa.timestamp("ns"), "timestamp"),
            (pa.timestamp("us", "UTC"), "timestamptz"), (pa.timestamp("us", "Europe/Paris"), "timestamptz"),
            (pa.duration("s"), "long"), (pa.decimal128(9, 2), "decimal(9,2)"),
            (pa.decimal256(38, 3), "decimal(38,3)"), (pa.dictionary(pa.int8(), pa.string()), "string"),
        ],
        ids=str,
    )  # fmt: skip
    def test_a_type(
        self, client: Client, root: Root, namespace: Place, name: str, arrow: Any, iceberg: str
    ) -> None:
        data = pa.table({"id": pa.array([1]), "c": pa.array([None], arrow)})
        metadata = self.load(client, root, namespace, name, data)
        types = {field["name"]: field["type"] for field in metadata["schemas"][0]["fields"]}
        assert types["c"].replace(" ", "") == iceberg

    def test_a_vector_is_a_list(self, client: Client, root: Root, namespace: Place, name: str) -> None:
        data = pa.table({"v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))})
        metadata = self.load(client, root, namespace, name, data)
        (field,) = metadata["schemas"][0]["fields"]
        assert (field["type"]["type"], field["type"]["element"]) == ("list", "float")

    def test_what_iceberg_has_no_type_for_is_left_out_and_named(
        self, client: Client, root: Root, namespace: Place, name: str
    ) -> None:
        data = pa.table(
            {
                "id": pa.array([1]),
                "nothing": pa.nulls(1),
                "wide": pa.array([None], pa.decimal256(60, 2)),
            }
        )
        metadata = self.load(client, root, namespace, name, data)
        assert names_of(metadata["schemas"][0]) == ["id"]
        omitted = metadata["properties"]["irc-bridge.omitted-columns"]
        assert "nothing" in omitted and "wide" in omitted

    def test_what_loses_something_is_named(self, client: Client, root: Root, namespace: Place, name: str) -> None:
        data = pa.table({"id": pa.array([1]), "nano": pa.array([1], pa.timestamp("ns"))})
        metadata = self.load(client, root, namespace, name, data)
        assert "nano" in metadata["properties"]["irc-bridge.converted-columns"]

    def test_what_is_exact_is_not_named(self, client: Client, place: Place, name: str) -> None:
        properties = client.create_table(place, name)["metadata"]["properties"]
        assert "irc-bridge.omitted-columns" not in properties
        assert "irc-bridge.converted-columns" not in properties


class TestIdentity:
    def test_the_uuid_stays(self, bridge: Bridge, place: Place, name: str) -> None:
        first = bridge.client.create_table(place, name)["metadata"]
        table = bridge.root.open(first["location"])
        bridge.root.write(first["location"], rows(2).cast(table.schema), mode="append")
        assert bridge.client.metadata(place, name)["table-uuid"] == first["table-uuid"]
        assert first["table-uuid"] in table.metadata.values()

    @pytest.mark.needs("folders as tables")
    def test_a_foreign_table_derives_it_from_its_location(self, bridge: Bridge, name: str) -> None:
        folder = bridge.root.at(f"{name}.lance")
        bridge.root.write(folder)
        first = bridge.client.metadata(("default",), name)["table-uuid"]
        bridge.root.remove(folder)
        bridge.root.write(folder, rows(7))
        assert bridge.client.metadata(("default",), name)["table-uuid"] == first
        bridge.root.write(bridge.root.at(f"{name}_other.lance"))
        assert bridge.client.metadata(("default",), f"{name}_other")["table-uuid"] != first
        with bridge.world.start_another(bridge) as other:
            assert other.client.metadata(("default",), name)["table-uuid"] == first

    def test_a_declared_table_keeps_it_too(self, client: Client, place: Place, name: str) -> None:
        declared = client.declare_table(place, name)["metadata"]
        assert client.metadata(place, name)["table-uuid"] == declared["table-uuid"]
        client.delete(table_path(place, name), params={"purgeRequested": "true"})
        assert client.declare_table(place, name)["metadata"]["table-uuid"] != declared["table-uuid"]


@pytest.mark.needs("Lance properties")
def test_properties_that_somebody_else_set(client: Client, root: Root, place: Place, name: str) -> None:
    location = client.create_table(place, name)["metadata"]["location"]
    root.open(location).update_metadata({"owner": "you", "managed_by": "IMPL"})
    metadata = client.metadata(place, name)
    assert metadata["current-snapshot-id"] == 2
    assert metadata["properties"]["owner"] == "you"
    assert metadata["properties"]["managed_by"].lower() == "impl"
    assert metadata["properties"]["table_type"] == "lance"


def test_a_root_with_odd_letters(start: Start, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Spaces, percent signs and others in the folder's own path come out as a URI that leads back to it."""
    root = tmp_path_factory.mktemp("odd") / "a b%20c#d+é"
    write(root / "fish & chips.lance")
    with start(COMPATIBLE.configuration(root)).client() as client:
        metadata = client.metadata(("default",), "fish & chips")
        assert metadata["current-snapshot-id"] == 1
        assert str(folder_of(metadata["location"])) == str(root / "fish & chips.lance")
        created = client.create_table(("default",), "new one")["metadata"]
        assert folder_of(created["location"]).is_dir()
