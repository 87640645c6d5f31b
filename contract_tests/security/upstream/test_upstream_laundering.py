"""A table that has its place before it becomes a Lance table of the bridge, and what a client says of it."""

import json
from pathlib import Path

import lance
import pytest
import requests

from contract_tests.security.upstream.canary import ROWS, Canary
from contract_tests.security.upstream.client import (
    LANCE,
    Client,
    created_by_commit,
    is_not_lance,
    outside_is_spared,
    set_location,
    set_properties,
)
from contract_tests.worlds.world import UpstreamWorld


class TestLaundering:
    """A table that has its place before it becomes a Lance table."""

    def test_the_place_of_an_iceberg_table_does_not_become_a_lance_table_s(
        self, client: Client, confined: Client, outside: Canary
    ) -> None:
        for each in (client, confined):
            assert each.create("ice", location=str(outside.table)).status_code == 200
            for refused in (
                each.commit("ice", set_properties(**LANCE)),
                each.commit("ice", set_properties(table_type="LANCE", a="b")),
                each.commit("ice", {"action": "SET-Properties", "updated": LANCE}),
                each.commit("ice", set_properties(a="b"), set_properties(**LANCE)),
                each.transaction("ice", set_properties(**LANCE)),
            ):
                assert refused.status_code == 400, refused.text
                assert "allowed_locations" in refused.text
            assert "table_type" not in each.load("ice").json()["metadata"]["properties"]
            is_not_lance(each, "ice")
            outside_is_spared(each, "ice", outside)

    def test_nor_when_it_moves_before_or_with_the_same_commit(
        self, client: Client, confined: Client, outside: Canary, below: Path
    ) -> None:
        for each in (client, confined):
            assert each.create("ice").status_code == 200
            assert each.create("moved").status_code == 200
            assert each.commit("moved", set_location(str(outside.table))).status_code == 200
            updates = [set_location(str(outside.table)), set_properties(**LANCE)]
            for refused in (
                each.commit("moved", set_properties(**LANCE)),
                each.commit("ice", *updates),
                each.commit("ice", *reversed(updates)),
                each.commit("ice", set_location(f"{below}/t"), *updates),
                each.transaction("ice", *updates),
            ):
                assert refused.status_code == 400, refused.text
                assert "allowed_locations" in refused.text
            for name in ("ice", "moved"):
                is_not_lance(each, name)
                outside_is_spared(each, name, outside)

    def test_a_lance_table_does_not_move(self, client: Client, outside: Canary) -> None:
        assert client.create("t", properties=LANCE).status_code == 200
        place = client.load("t").json()["metadata"]["location"]
        for refused in (
            client.commit("t", set_location(str(outside.table))),
            client.commit("t", {"action": "SET-LOCATION", "location": str(outside.table)}),
            client.transaction("t", set_location(str(outside.table))),
        ):
            assert refused.status_code == 400, refused.text
        assert client.load("t").json()["metadata"]["location"] == place

    def test_inside_it_becomes_one_and_stays_there(
        self, confined: Client, outside: Canary, below: Path, upstream: UpstreamWorld, name: str
    ) -> None:
        place = below / name
        lance.write_dataset(ROWS, place)
        assert confined.create("ice", location=str(place)).status_code == 200
        assert confined.commit("ice", set_properties(**LANCE)).status_code == 200
        assert confined.lance("ice", "count_rows", {}).json() == 3
        # somebody moves what was an Iceberg table when he looked
        moved = {"requirements": [], "updates": [set_location(str(outside.table))]}
        url = f"{upstream.url}/v1{confined.table('ice')}"
        assert requests.post(url, json=moved, timeout=60).status_code == 200
        assert confined.load("ice").json()["metadata"]["location"] == place.as_uri()
        assert confined.purge("ice").status_code == 204
        assert outside.is_unchanged()


class TestReservedProperties:
    @pytest.mark.parametrize("key", ["irc-bridge.location", "irc-bridge.anything"])
    def test_no_client_sets_or_removes_them(self, client: Client, outside: Canary, key: str) -> None:
        value = {key: str(outside.table)}
        assert client.create("ice").status_code == 200
        assert client.create("t", properties=LANCE).status_code == 200
        for refused in (
            client.create("new", properties=value),
            client.create("new", properties={**value, **LANCE}),
            client.create("new", **{"stage-create": True, "properties": value}),
            client.post(client.table("new"), created_by_commit(None, value)),
            client.lance("new", "declare", {"properties": value}),
            *(
                answered
                for table in ("ice", "t")
                for update in (
                    set_properties(**value),
                    {"action": "Set-Properties", "updated": value},
                    {"action": "remove-properties", "removals": [key]},
                    {"action": "remove-properties", "removed": [key]},
                )
                for answered in (client.commit(table, update), client.transaction(table, update))
            ),
        ):
            assert refused.status_code == 400, refused.text
            assert "irc-bridge." in refused.text
        for table in ("ice", "t"):
            outside_is_spared(client, table, outside)


def test_reserved_properties_of_a_namespace(client: Client) -> None:
    """The bridge may keep notes there."""
    value = {"irc-bridge.anything": "1"}
    url = f"{client.url}/lance/v1/namespace/{client.namespace}_more/create"
    for refused in (
        client.post("/namespaces", {"namespace": [f"{client.namespace}_more"], "properties": value}),
        client.post(f"/namespaces/{client.namespace}/properties", {"updates": value}),
        client.post(f"/namespaces/{client.namespace}/properties", {"removals": list(value)}),
        requests.post(url, json={"properties": value}, timeout=60),
    ):
        assert refused.status_code == 400, refused.text
        assert "irc-bridge." in refused.text
    assert client.post(f"/namespaces/{client.namespace}/properties", {"updates": {"a": "b"}}).status_code == 200


class TestRegisteredMetadata:
    """A client that can write one file somewhere describes a Lance table that lies elsewhere."""

    @pytest.fixture
    def metadata(self, client: Client, outside: Canary, tmp_path: Path) -> Path:
        made = client.create("source", **{"stage-create": True}).json()["metadata"]
        properties = {**made["properties"], "irc-bridge.location": str(outside.table), **LANCE}
        file = tmp_path / "00000-x.metadata.json"
        file.write_text(json.dumps({**made, "location": str(outside.table), "properties": properties}))
        return file

    @pytest.mark.parametrize("with_property", [True, False])
    def test_its_files_are_neither_read_nor_removed(
        self, client: Client, confined: Client, outside: Canary, metadata: Path, with_property: bool
    ) -> None:
        content = json.loads(metadata.read_text())
        if not with_property:
            del content["properties"]["irc-bridge.location"]
        metadata.write_text(json.dumps(content))
        for each in (client, confined):
            assert each.register("t", str(metadata)).status_code == 200
            for refused in (
                each.load("t"),
                each.lance("t", "describe", {}),
                each.lance("t", "count_rows", {}),
                each.lance("t", "version/list", {}),
                each.lance("t", "stats", {}),
                each.commit("t", set_properties(a="b")),
                each.commit("t", set_location(str(metadata.parent))),
                each.purge("t"),
                each.lance("t", "drop", {}),
            ):
                assert refused.status_code == 400, refused.text
                assert "allowed_locations" in refused.text
                assert "secret" not in refused.text
            assert each.drop("t").ok
            assert outside.is_unchanged()

    def test_a_place_that_the_property_names(self, client: Client, outside: Canary, metadata: Path) -> None:
        """The rest of the table is the client's own."""
        content = json.loads(metadata.read_text())
        content["location"] = str(metadata.parent)
        metadata.write_text(json.dumps(content))
        assert client.register("t", str(metadata)).status_code == 200
        assert client.load("t").status_code == 400
        assert client.purge("t").status_code == 400
        assert outside.is_unchanged()
