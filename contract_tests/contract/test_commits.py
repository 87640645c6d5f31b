"""Commits of properties, and stage-create with the assert-create commit that finishes it."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from contract_tests.worlds.bridge import (
    SCHEMA,
    Client,
    as_loaded,
    assert_error,
    assert_ok,
    namespace_path,
    table_path,
)
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import ONE_WORLD, Bridge
from contract_tests.worlds.writer import rows

Place = tuple[str, ...]
ASSERT_CREATE = {"type": "assert-create"}


def commit(client: Client, place: Place, name: str, *updates: Any, requirements: Any = ()) -> Any:
    body = {"requirements": list(requirements), "updates": list(updates)}
    return client.post(table_path(place, name), json=body)


def set_properties(**properties: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": properties}


def remove_properties(*keys: str) -> dict[str, Any]:
    return {"action": "remove-properties", "removals": list(keys)}


class TestProperties:
    @pytest.mark.needs("property versions")
    def test_they_are_a_new_lance_version(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = client.create_table(place, name, properties={"a": "1", "b": "2"})["metadata"]["location"]
        answered = assert_ok(
            commit(client, place, name, set_properties(b="3", c="4"), remove_properties("a", "never"))
        )
        assert answered["metadata"]["current-snapshot-id"] == 2
        properties = answered["metadata"]["properties"]
        assert (properties["b"], properties["c"], "a" in properties) == ("3", "4", False)
        assert client.metadata(place, name) == answered["metadata"]
        table = root.open(location)
        assert table.version == 2
        assert (table.metadata["b"], table.metadata["c"], "a" in table.metadata) == ("3", "4", False)

    def test_the_answer_names_a_metadata_file(self, client: Client, root: Root, place: Place, name: str) -> None:
        client.create_table(place, name)
        first = assert_ok(commit(client, place, name, set_properties(a="1")))["metadata-location"]
        second = assert_ok(commit(client, place, name, set_properties(a="2")))["metadata-location"]
        assert first != second
        assert root.exists(first.partition("#")[0]) and root.exists(second.partition("#")[0])

    def test_the_last_word_counts(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, name, properties={"a": "0"})
        assert_ok(commit(client, place, name, remove_properties("a"), set_properties(a="1")))
        assert client.metadata(place, name)["properties"]["a"] == "1"
        assert_ok(commit(client, place, name, set_properties(a="2", b="2"), remove_properties("a")))
        assert "a" not in client.metadata(place, name)["properties"]

    def test_managed_by_can_be_set_later(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, name)
        assert_ok(commit(client, place, name, set_properties(managed_by="impl")))
        assert client.metadata(place, name)["properties"]["managed_by"] == "impl"
        assert_ok(commit(client, place, name, remove_properties("managed_by")))
        assert client.metadata(place, name)["properties"]["managed_by"] == "storage"

    def test_a_lance_table_stays_one(self, client: Client, place: Place, name: str) -> None:
        uuid = client.create_table(place, name)["metadata"]["table-uuid"]
        for update in (set_properties(table_type="iceberg"), remove_properties("table_type")):
            assert commit(client, place, name, update).status_code in (200, 400)
            assert client.metadata(place, name)["properties"]["table_type"] == "lance"
        for key in client.metadata(place, name)["properties"]:
            assert commit(client, place, name, remove_properties(key)).status_code in (200, 400)
        commit(client, place, name, remove_properties("irc-bridge.table-uuid"))
        commit(client, place, name, set_properties(**{"irc-bridge.table-uuid": "mine"}))
        assert client.metadata(place, name)["table-uuid"] == uuid

    def test_of_a_declared_table_they_wait(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = client.declare_table(place, name, properties={"a": "1"})["metadata"]["location"]
        answered = assert_ok(commit(client, place, name, set_properties(b="2"), remove_properties("a")))
        assert "a" not in answered["metadata"]["properties"]
        metadata = client.metadata(place, name)
        assert metadata["properties"]["b"] == "2"
        assert metadata.get("current-snapshot-id", -1) == -1
        assert not root.exists(f"{location}/_versions")

    def test_no_updates_make_no_version(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = client.create_table(place, name)["metadata"]["location"]
        assert_ok(commit(client, place, name))
        assert root.open(location).version == 1

    def test_of_a_table_that_is_not_there(self, client: Client, place: Place, name: str) -> None:
        response = commit(client, place, name, set_properties(a="1"))
        assert_error(response, 404, "NoSuchTableException", names="Table does not exist")

    @pytest.mark.needs("property versions")
    def test_of_writers_at_the_same_time_none_is_lost(self, bridge: Bridge, place: Place, name: str) -> None:
        location = bridge.client.create_table(place, name)["metadata"]["location"]

        def set_one(number: int) -> int:
            with bridge.server.client() as client:
                response = commit(client, place, name, set_properties(**{f"key{number}": "set"}))
                if response.status_code != 200:
                    assert_error(response, 409, "CommitFailedException")
                status: int = response.status_code
                return status

        with ThreadPoolExecutor(12) as pool:
            statuses = list(pool.map(set_one, range(24)))
        kept = {key for key in bridge.client.metadata(place, name)["properties"] if key.startswith("key")}
        assert kept == {f"key{number}" for number, status in enumerate(statuses) if status == 200}
        assert statuses.count(200) > 0
        assert bridge.root.open(location).version == 1 + statuses.count(200)

    @pytest.mark.needs("property versions")
    def test_other_writers_go_on_meanwhile(self, bridge: Bridge, place: Place, name: str) -> None:
        location = bridge.client.create_table(place, name)["metadata"]["location"]
        schema = bridge.root.open(location).schema

        def append(_: int) -> None:
            bridge.root.write(location, rows(1).cast(schema), mode="append")

        def set_one(number: int) -> None:
            with bridge.server.client() as client:
                assert_ok(commit(client, place, name, set_properties(**{f"key{number}": "set"})))

        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(each, number) for number in range(8) for each in (append, set_one)]
            assert [future.exception() for future in futures] == [None] * 16
        metadata = bridge.client.metadata(place, name)
        assert metadata["current-snapshot-id"] == 17
        assert {f"key{number}" for number in range(8)} <= set(metadata["properties"])
        assert bridge.root.open(location).count_rows() == 8


class TestRequirements:
    @pytest.fixture
    def metadata(self, client: Client, root: Root, place: Place, name: str) -> Any:
        location = client.create_table(place, name)["metadata"]["location"]
        root.write(location, rows(2).cast(root.open(location).schema), mode="append")
        return client.metadata(place, name)

    def true_ones(self, metadata: Any) -> list[dict[str, Any]]:
        partition, order = metadata["last-partition-id"], metadata["default-sort-order-id"]
        return [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2},
            {"type": "assert-ref-snapshot-id", "ref": "no-such-tag", "snapshot-id": None},
            {"type": "assert-current-schema-id", "current-schema-id": 1},
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": metadata["last-column-id"]},
            {"type": "assert-default-spec-id", "default-spec-id": metadata["default-spec-id"]},
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": partition},
            {"type": "assert-default-sort-order-id", "default-sort-order-id": order},
        ]  # fmt: skip

    def test_those_that_hold(self, client: Client, place: Place, name: str, metadata: Any) -> None:
        for requirement in self.true_ones(metadata):
            if "main" in requirement.values():
                requirement["snapshot-id"] = client.metadata(place, name)["current-snapshot-id"]
            assert_ok(commit(client, place, name, set_properties(a="1"), requirements=[requirement]))

    @pytest.mark.parametrize("index", range(8))
    def test_one_that_does_not(self, client: Client, place: Place, name: str, metadata: Any, index: int) -> None:
        requirement = self.true_ones(metadata)[index]
        last = list(requirement)[-1]
        requirement[last] = "0c0d0e0f-0000-0000-0000-000000000000" if last == "uuid" else 77
        response = commit(client, place, name, set_properties(a="1"), requirements=[requirement])
        assert_error(response, 409, "CommitFailedException", names="Requirement failed: ")
        assert client.metadata(place, name) == metadata

    def test_main_must_not_exist(self, client: Client, place: Place, name: str, metadata: Any) -> None:
        requirement = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
        response = commit(client, place, name, set_properties(a="1"), requirements=[requirement])
        assert_error(response, 409, "CommitFailedException", names="Requirement failed: ")

    def test_the_uuid_in_capitals_is_the_same(
        self, client: Client, place: Place, name: str, metadata: Any
    ) -> None:
        requirement = {"type": "assert-table-uuid", "uuid": metadata["table-uuid"].upper()}
        assert_ok(commit(client, place, name, set_properties(a="1"), requirements=[requirement]))

    def test_create_over_a_table(self, client: Client, place: Place, name: str, metadata: Any) -> None:
        schema = {"action": "add-schema", "schema": SCHEMA}
        response = commit(client, place, name, schema, requirements=[ASSERT_CREATE])
        assert_error(response, 409, "CommitFailedException", "AlreadyExistsException")
        assert client.metadata(place, name) == metadata


@ONE_WORLD
class TestRefused:
    @pytest.mark.parametrize(
        "update",
        [
            {"action": "no-such-update"},
            {"action": "set-location", "location": "/elsewhere"},
            {"action": "add-schema", "schema": SCHEMA},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"fields": []}},
            {"action": "add-snapshot", "snapshot": {"snapshot-id": 5, "timestamp-ms": 1, "manifest-list": "x",
             "summary": {"operation": "append"}}},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
            {"action": "remove-snapshots", "snapshot-ids": [1]},
            {"action": "assign-uuid", "uuid": "0c0d0e0f-0000-0000-0000-000000000000"},
        ],
        ids=lambda update: update["action"],
    )  # fmt: skip
    def test_what_is_not_supported_applies_nothing(
        self, client: Client, place: Place, name: str, update: dict[str, Any]
    ) -> None:
        before = as_loaded(client.create_table(place, name)["metadata"])
        response = commit(client, place, name, set_properties(a="1"), update)
        message = assert_error(response, 400, "BadRequestException", "UnsupportedOperationException")
        assert update["action"] in message
        assert client.metadata(place, name) == before

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "requirements"),
            ({"requirements": []}, "updates"),
            ({"requirements": {}, "updates": []}, "requirements"),
            ({"requirements": [], "updates": {}}, "updates"),
            ({"requirements": [{}], "updates": []}, "requirements"),
            ({"requirements": [{"type": "no-such"}], "updates": []}, "no-such"),
            ({"requirements": [{"type": "assert-table-uuid"}], "updates": []}, "uuid"),
            ({"requirements": [], "updates": [{}]}, "updates"),
            ({"requirements": [], "updates": ["set-properties"]}, "updates"),
            ({"requirements": [], "updates": [{"action": "set-properties"}]}, "updates"),
            ({"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": 1}}]}, "updates"),
            ({"requirements": [], "updates": [{"action": "remove-properties", "removals": "a"}]}, "removals"),
        ],
        ids=lambda each: json.dumps(each)[:60],
    )
    def test_a_wrong_field_is_named(self, client: Client, place: Place, name: str, body: Any, field: str) -> None:
        before = as_loaded(client.create_table(place, name)["metadata"])
        response = client.post(table_path(place, name), json=body)
        assert_error(response, 400, "BadRequestException", names=field)
        assert client.metadata(place, name) == before


class TestStagedCreate:
    def stage(self, client: Client, place: Place, name: str, **more: Any) -> Any:
        body = {"name": name, "schema": SCHEMA, "stage-create": True, **more}
        return client.post(f"{namespace_path(place)}/tables", json=body)

    def finish(self, client: Client, place: Place, name: str, staged: Any, *more: Any) -> Any:
        """What the Java client and pyiceberg send to finish a create transaction."""
        return commit(
            client,
            place,
            name,
            {"action": "assign-uuid", "uuid": staged["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": staged["schemas"][0], "last-column-id": staged["last-column-id"]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": staged["location"]},
            set_properties(**staged["properties"]),
            *more,
            requirements=[ASSERT_CREATE],
        )  # fmt: skip

    def test_staging_makes_nothing(self, bridge: Bridge, place: Place, name: str) -> None:
        before = bridge.root.files()
        staged = assert_ok(self.stage(bridge.client, place, name, properties={"a": "1"}))
        assert "metadata-location" not in staged or staged["metadata-location"] is None
        metadata = staged["metadata"]
        assert [field["name"] for field in metadata["schemas"][0]["fields"]] == ["id", "name"]
        assert metadata["properties"]["a"] == "1"
        assert metadata.get("current-snapshot-id", -1) == -1
        assert bridge.root.files() == before
        assert bridge.client.head(table_path(place, name)).status_code == 404
        assert name not in bridge.client.tables(place)

    def test_the_commit_makes_the_table(self, client: Client, root: Root, place: Place, name: str) -> None:
        staged = assert_ok(self.stage(client, place, name, properties={"a": "1"}))["metadata"]
        answered = assert_ok(self.finish(client, place, name, staged, set_properties(b="2")))
        assert root.exists(answered["metadata-location"].partition("#")[0])
        made = client.metadata(place, name)
        assert made == answered["metadata"]
        assert made["table-uuid"] == staged["table-uuid"]
        assert made["location"] == staged["location"]
        assert made["schemas"][0]["fields"] == staged["schemas"][0]["fields"]
        assert made["properties"].items() >= {"a": "1", "b": "2"}.items()
        assert root.open(made["location"]).schema.names == ["id", "name"]
        assert client.tables(place).count(name) == 1

    def test_staging_what_is_there(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, name)
        assert_error(self.stage(client, place, name), 409, "AlreadyExistsException")

    def test_staging_nowhere(self, client: Client, name: str) -> None:
        assert_error(self.stage(client, (name,), "t"), 404, "NoSuchNamespaceException", names=name)

    def test_only_one_of_two_transactions_wins(self, client: Client, place: Place, name: str) -> None:
        first, second = (assert_ok(self.stage(client, place, name))["metadata"] for _ in range(2))
        assert_ok(self.finish(client, place, name, first))
        lost = self.finish(client, place, name, second)
        assert_error(lost, 409, "CommitFailedException", "AlreadyExistsException")
        assert client.metadata(place, name)["table-uuid"] == first["table-uuid"]

    @pytest.mark.needs("own locations")
    def test_the_same_rules_as_create(self, bridge: Bridge, place: Place, name: str) -> None:
        client = bridge.client
        staged = assert_ok(self.stage(client, place, name))["metadata"]
        elsewhere = {**staged, "location": f"{bridge.root}/../elsewhere"}
        assert_error(self.finish(client, place, name, elsewhere), 400, "BadRequestException", names="ocation")
        partitioned = {
            "action": "add-spec",
            "spec": {"fields": [{"source-id": 1, "transform": "identity", "name": "id", "field-id": 1000}]},
        }
        response = self.finish(client, place, name, staged, partitioned)
        assert_error(response, 400, "BadRequestException", names="partition")
        response = commit(client, place, name, set_properties(a="1"), requirements=[ASSERT_CREATE])
        assert_error(response, 400, "BadRequestException", names="schema")
        assert client.head(table_path(place, name)).status_code == 404


@pytest.mark.needs("one table at a time")
def test_a_transaction_is_over_one_table(client: Client, place: Place, name: str) -> None:
    def change(table: str) -> dict[str, Any]:
        identifier = {"namespace": place, "name": table}
        return {"identifier": identifier, "requirements": [], "updates": [set_properties(a="1")]}

    before = [as_loaded(client.create_table(place, each)["metadata"]) for each in (name, f"{name}_2")]
    both = {"table-changes": [change(name), change(f"{name}_2")]}
    message = assert_error(client.post("transactions/commit", json=both), 400)
    assert "one table" in message or "managed_by=impl" in message
    assert [client.metadata(place, each) for each in (name, f"{name}_2")] == before

    response = client.post("transactions/commit", json={"table-changes": [change(name)]})
    assert (response.status_code, response.content) == (204, b"")
    assert client.metadata(place, name)["properties"]["a"] == "1"
