"""Where tables may lie, and tables that are already there."""

from typing import Any

import pytest

from contract_tests.conftest import Start
from contract_tests.contract.tables import PURGE, ROOT, Place, absent, create
from contract_tests.worlds.bridge import (
    SCHEMA,
    Client,
    assert_error,
    assert_ok,
    namespace_path,
    table_path,
)
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import Bridge
from contract_tests.worlds.writer import folder_of, rows


class TestLocation:
    @pytest.mark.needs("chosen location")
    @pytest.mark.parametrize("form", ["{root}/{name}_here", "{uri}/{name}_here/", "{root}/deep/{name}"])
    def test_inside_the_root_it_is_kept(self, bridge: Bridge, place: Place, name: str, form: str) -> None:
        asked = form.format(root=bridge.root, uri=bridge.root.uri, name=name)
        told = bridge.client.create_table(place, name, location=asked)["metadata"]["location"]
        assert bridge.root.plain(told) == asked.removeprefix("file://").rstrip("/")
        assert bridge.root.open(told).version == 1
        assert bridge.client.metadata(place, name)["location"] == told
        assert bridge.client.tables(place).count(name) == 1

    @pytest.mark.parametrize(
        "form",
        ["{root}/../{name}", "{root}x/{name}", "/tmp/{name}", "s3://bucket/{name}", "{name}", "file:///{name}",
         "{root}/a/../../{name}", "{root}", "{root}/", "{root}/__manifest", "{root}/__manifest/{name}",
         "http://[broken/{name}"],
    )  # fmt: skip
    def test_outside_the_root_it_is_refused(self, bridge: Bridge, place: Place, name: str, form: str) -> None:
        before = bridge.root.files()
        body = {"name": name, "schema": SCHEMA, "location": form.format(root=bridge.root, name=name)}
        message = assert_error(create(bridge.client, place, body), 400, "BadRequestException")
        assert "location" in message.lower() and len(message.split()) > 3
        assert bridge.root.files() == before
        assert absent(bridge.client, place, name)

    @pytest.mark.parametrize("form", ["{other}", "{other}/", "{other}/below", "{other}/data", "{other}/.."])
    @pytest.mark.parametrize("kind", ["created", "declared"])
    def test_overlapping_another_table_it_is_refused(
        self, bridge: Bridge, place: Place, name: str, form: str, kind: str
    ) -> None:
        client = bridge.client
        make = client.create_table if kind == "created" else client.declare_table
        other = make(place, f"{name}_other")["metadata"]["location"]
        body = {"name": name, "schema": SCHEMA, "location": form.format(other=other)}
        message = assert_error(create(client, place, body), 400, "BadRequestException")
        assert "location" in message.lower()
        assert absent(client, place, name)

    @pytest.mark.needs("chosen location")
    def test_above_another_table_it_is_refused(self, bridge: Bridge, place: Place, name: str) -> None:
        client = bridge.client
        client.create_table(place, f"{name}_deep", location=f"{bridge.root}/{name}/deep")
        body = {"name": name, "schema": SCHEMA, "location": f"{bridge.root}/{name}"}
        assert_error(create(client, place, body), 400, "BadRequestException", names=name)
        assert absent(client, place, name)

    @pytest.mark.needs("chosen location")
    def test_a_purge_takes_only_what_is_its_own(self, bridge: Bridge, place: Place, name: str) -> None:
        client = bridge.client
        for each in ("a", "ab"):
            client.create_table(place, f"{name}_{each}", location=f"{bridge.root}/{name}_deep/{each}")
        bridge.root.put(bridge.root.at(f"{name}_deep/notes.txt"), b"mine")
        assert client.delete(table_path(place, f"{name}_a"), params=PURGE).status_code == 204
        assert client.metadata(place, f"{name}_ab")["current-snapshot-id"] == 1
        left = {each.split("/")[0] for each in bridge.root.files(bridge.root.at(f"{name}_deep"))}
        assert left == {"ab", "notes.txt"}

    @pytest.mark.parametrize("way", ["file://{cwd}/tables", "{cwd}/tables/", "tables", "./tables"])
    def test_three_ways_to_name_the_root(self, start: Start, way: str) -> None:
        server = start(arguments=(way,))
        with server.client() as client:
            location = client.create_table(ROOT, "t")["metadata"]["location"]
        assert location == (server.cwd / "tables" / "t.lance").as_uri()
        assert folder_of(location).is_dir()

    def test_every_location_has_the_same_form(self, bridge: Bridge, place: Place, name: str) -> None:
        created = bridge.client.create_table(place, name)["metadata"]["location"]
        declared = bridge.client.declare_table(place, f"{name}_declared")["metadata"]["location"]
        for location in (created, declared):
            assert location.startswith(f"{bridge.root.uri}/") and not location.endswith("/")

    @pytest.mark.needs("folders as tables")
    def test_a_folder_that_somebody_else_made_has_it_too(self, bridge: Bridge, name: str) -> None:
        bridge.root.write(bridge.root.at(f"{name}.lance"))
        location = bridge.client.metadata(ROOT, name)["location"]
        assert location == bridge.root.at(f"{name}.lance")


class TestRegister:
    def register(self, client: Client, place: Place, name: str, location: str) -> Any:
        body = {"name": name, "metadata-location": location}
        return client.post(f"{namespace_path(place)}/register", json=body)

    def hidden(self, client: Client, root: Root, place: Place, name: str) -> str:
        """A table of four rows whose name is gone."""
        location: str = client.create_table(place, name)["metadata"]["location"]
        root.write(location, rows(4).cast(root.open(location).schema), mode="append")
        client.delete(table_path(place, name))
        return location

    @pytest.mark.parametrize("form", ["uri", "path", "slash", "manifest", "manifest uri", "old manifest"])
    def test_a_dropped_table_comes_back(
        self, client: Client, root: Root, place: Place, name: str, form: str
    ) -> None:
        location = self.hidden(client, root, place, name)
        folder = root.plain(location)
        latest, old = (each for each in root.files(location) if each.endswith(".manifest"))
        asked = {
            "uri": location,
            "path": folder,
            "slash": f"{folder}/",
            "manifest": f"{folder}/{latest}",
            "manifest uri": f"{location}/{latest}",
            "old manifest": f"{folder}/{old}",
        }[form]
        registered = assert_ok(self.register(client, place, name, asked))
        assert registered["metadata"]["current-snapshot-id"] == 2
        assert registered["metadata"]["location"] == location
        assert client.tables(place).count(name) == 1
        assert client.metadata(place, name)["location"] == location

    @pytest.mark.needs("chosen location")
    def test_under_another_name(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = self.hidden(client, root, place, name)
        assert_ok(self.register(client, place, f"{name}_new", location))
        assert client.tables(place).count(f"{name}_new") == 1
        assert absent(client, place, name)

    @pytest.mark.needs("chosen location")
    def test_a_folder_that_somebody_else_made(self, bridge: Bridge, place: Place, name: str) -> None:
        bridge.root.write(bridge.root.at(f"{name}_folder"))
        assert_ok(self.register(bridge.client, place, name, f"{bridge.root}/{name}_folder"))
        assert bridge.client.metadata(place, name)["current-snapshot-id"] == 1

    def test_a_name_that_is_taken(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = self.hidden(client, root, place, name)
        client.create_table(place, f"{name}_taken")
        response = self.register(client, place, f"{name}_taken", location)
        assert_error(response, 409, "AlreadyExistsException", names="Table already exists")

    def test_what_is_no_lance_table(self, bridge: Bridge, place: Place, name: str) -> None:
        root = bridge.root
        root.make_folder(root.at(f"{name}_empty"))
        root.put(root.at(f"{name}_file"), b"hello")
        for location in (
            f"{name}_empty",
            f"{name}_file",
            f"{name}_missing",
            f"{name}_missing/_versions/1.manifest",
        ):
            response = self.register(bridge.client, place, name, f"{root}/{location}")
            message = assert_error(response, 400, "BadRequestException")
            assert location in message
        assert absent(bridge.client, place, name)
        root.remove(root.at(f"{name}_file"))

    def test_what_lies_outside_the_root(self, bridge: Bridge, place: Place, name: str) -> None:
        outside = f"{bridge.root.uri.removesuffix('tables')}{name}.lance"
        bridge.root.write(outside)
        response = self.register(bridge.client, place, name, outside)
        assert_error(response, 400, "BadRequestException", names=outside)
        assert absent(bridge.client, place, name)
        bridge.root.remove(outside)

    def test_in_a_namespace_that_is_not_there(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = self.hidden(client, root, place, name)
        response = self.register(client, (f"no_{name}",), name, location)
        assert_error(response, 404, "NoSuchNamespaceException", names=f"no_{name}")


class TestForeignTables:
    @pytest.mark.needs("folders as tables")
    def test_a_folder_of_lance_tables_is_seen(self, bridge: Bridge, name: str) -> None:
        bridge.root.write(bridge.root.at(f"{name}.lance"), rows(5))
        assert bridge.client.tables(ROOT).count(name) == 1
        assert bridge.client.metadata(ROOT, name)["current-snapshot-id"] == 1

    @pytest.mark.needs("folders as tables")
    @pytest.mark.parametrize(
        "broken", ["_versions/18446744073709551614.manifest", "_versions/1.manifest", "data/x.lance"]
    )
    def test_a_broken_folder_hurts_nobody_else(self, bridge: Bridge, name: str, broken: str) -> None:
        client = bridge.client
        bridge.root.put(bridge.root.at(f"{name}.lance/{broken}"), b"this is no manifest")
        bridge.root.write(bridge.root.at(f"{name}_good.lance"))
        assert f"{name}_good" in client.tables(ROOT)
        assert client.metadata(ROOT, f"{name}_good")["current-snapshot-id"] == 1
        response = client.get(table_path(ROOT, name))
        if "_versions" in broken:
            message = assert_error(response, 500)
            assert name in message
        else:
            assert response.status_code in (200, 404, 500)
        bridge.root.remove(bridge.root.at(f"{name}.lance"))

    def test_other_things_in_the_folder_are_no_tables(self, bridge: Bridge, name: str) -> None:
        root = bridge.root
        root.put(root.at(f"{name}.lance"), b"a file")
        for each in (f"{name}_plain", f"{name}_empty.lance", ".lance"):
            root.make_folder(root.at(each))
        assert not [each for each in bridge.client.tables(ROOT) if name in each or not each]
        assert bridge.client.get(table_path(ROOT, name)).status_code == 404
        assert bridge.client.get(table_path(ROOT, f"{name}_empty")).status_code == 404
        root.remove(root.at(f"{name}.lance"))
