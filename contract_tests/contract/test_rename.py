from typing import Any

import pytest

from contract_tests.contract.tables import ROOT, Place, absent
from contract_tests.worlds.bridge import Client, assert_error, table_path
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import Bridge
from contract_tests.worlds.writer import rows


@pytest.mark.needs("rename")
class TestRename:
    def rename(self, client: Client, source: Place, destination: Place) -> Any:
        names = [{"namespace": levels[:-1], "name": levels[-1]} for levels in (source, destination)]
        return client.post("tables/rename", json={"source": names[0], "destination": names[1]})

    def test_the_table_moves_whole(self, client: Client, root: Root, place: Place, name: str) -> None:
        before = client.create_table(place, name, properties={"owner": "me"})["metadata"]
        root.write(before["location"], rows(3).cast(root.open(before["location"]).schema), "append")
        assert self.rename(client, (*place, name), (*place, f"{name}_new")).status_code == 204
        assert absent(client, place, name)
        after = client.metadata(place, f"{name}_new")
        assert client.tables(place).count(f"{name}_new") == 1
        assert (after["table-uuid"], after["current-snapshot-id"]) == (before["table-uuid"], 2)
        assert after["properties"]["owner"] == "me"
        assert root.open(after["location"]).count_rows() == 3
        client.create_table(place, name)
        assert root.open(client.metadata(place, f"{name}_new")["location"]).count_rows() == 3

    def test_into_another_namespace_and_back(self, client: Client, place: Place, name: str) -> None:
        elsewhere = client.create_namespace(f"else_{name}")
        client.create_table(place, name)
        assert self.rename(client, (*place, name), (*elsewhere, name)).status_code == 204
        assert absent(client, place, name)
        assert client.tables(elsewhere) == [name]
        assert self.rename(client, (*elsewhere, name), (*place, name)).status_code == 204
        assert client.tables(elsewhere) == []
        assert client.metadata(place, name)["current-snapshot-id"] == 1

    def test_a_declared_table(self, client: Client, root: Root, place: Place, name: str) -> None:
        client.declare_table(place, name, properties={"owner": "me"})
        assert self.rename(client, (*place, name), (*place, f"{name}_new")).status_code == 204
        assert absent(client, place, name)
        metadata = client.metadata(place, f"{name}_new")
        assert metadata["properties"]["owner"] == "me"
        root.write(metadata["location"])
        assert client.metadata(place, f"{name}_new")["current-snapshot-id"] == 1

    def test_nothing_to_rename(self, client: Client, place: Place, name: str) -> None:
        response = self.rename(client, (*place, name), (*place, f"{name}_new"))
        assert_error(response, 404, "NoSuchTableException", names="Table does not exist")

    def test_onto_another_table(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, name)
        client.create_table(place, f"{name}_taken", properties={"owner": "other"})
        response = self.rename(client, (*place, name), (*place, f"{name}_taken"))
        assert_error(response, 409, "AlreadyExistsException", names="Table already exists")
        assert client.head(table_path(place, name)).status_code == 204
        assert client.metadata(place, f"{name}_taken")["properties"]["owner"] == "other"

    def test_into_a_namespace_that_is_not_there(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, name)
        response = self.rename(client, (*place, name), (f"no_{name}", name))
        assert_error(response, 404, "NoSuchNamespaceException", names=f"no_{name}")
        assert client.head(table_path(place, name)).status_code == 204

    @pytest.mark.needs("folders as tables")
    def test_a_folder_that_somebody_else_made(self, bridge: Bridge, name: str) -> None:
        client = bridge.client
        bridge.root.write(bridge.root.at(f"{name}.lance"))
        assert self.rename(client, (*ROOT, name), (*ROOT, f"{name}_new")).status_code == 204
        assert absent(client, ROOT, name)
        assert client.tables(ROOT).count(f"{name}_new") == 1
        assert bridge.root.open(client.metadata(ROOT, f"{name}_new")["location"]).count_rows() == 3
