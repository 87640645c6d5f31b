"""No client of an `irc` warehouse makes the bridge read or remove files outside of what the operator allowed or
the server behind chose: every way to name a place, before the reference server."""

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import lance
import pytest
import requests

from contract_tests.security.upstream.canary import ROWS, Canary
from contract_tests.security.upstream.client import LANCE, Client, created_by_commit
from contract_tests.worlds.bridge import SCHEMA
from contract_tests.worlds.upstream import bridge_over
from contract_tests.worlds.world import UpstreamWorld

Entry = Callable[[Client, str, str], requests.Response]

ENTRIES: dict[str, Entry] = {
    "create": lambda client, name, place: client.create(name, location=place, properties=LANCE),
    "staged create": lambda client, name, place: client.create(
        name, **{"location": place, "properties": LANCE, "stage-create": True}
    ),
    "commit that creates": lambda client, name, place: client.post(client.table(name), created_by_commit(place)),
    "transaction that creates": lambda client, name, place: client.post(
        "/transactions/commit",
        {
            "table-changes": [
                {"identifier": {"namespace": [client.namespace], "name": name}, **created_by_commit(place)}
            ]
        },
    ),
    "Lance declare": lambda client, name, place: client.lance(name, "declare", {"location": place}),
    "Lance register": lambda client, name, place: client.lance(name, "register", {"location": place}),
    "register of a manifest": lambda client, name, place: client.register(
        name, f"{place}/_versions/18446744073709551614.manifest"
    ),
}
PLACES = [
    "{canary}", "{canary}/", "file://{canary}", "file:{canary}", "file://localhost{canary}", "FILE://{canary}",
    "file://{encoded}", "{below}/{relative}", "file://{below}/%2e%2e/x", "{below}/..",
    "{below}x/t", "{below}/out/t", "{below}/t\n", "{below}/t\0", "{below}", "{below}/", "~/t", "../t", "t",
    "file://host{canary}", "s3://other-bucket/t", "s3a://other-bucket/%2e%2e/t", "http://127.0.0.1:1/t",
    "memory:///t", "",
]  # fmt: skip


def form(place: str, outside: Canary, below: Path) -> str:
    encoded = "".join(f"%{ord(each):02x}" if each != "/" else each for each in str(outside.table))
    relative = os.path.relpath(outside.table, below)
    return place.format(canary=outside.table, encoded=encoded, below=below, relative=relative)


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_place_outside_is_refused(
    client: Client, confined: Client, outside: Canary, below: Path, entry: str
) -> None:
    for each in (client, confined):
        for place in PLACES:
            refused = ENTRIES[entry](each, "t", form(place, outside, below))
            assert refused.status_code == 400, (place, refused.text)
            assert "allowed_locations" in refused.text
        for purge in (each.purge("t"), each.lance("t", "drop", {})):
            assert purge.status_code == 404, purge.text
    assert outside.is_unchanged()


@pytest.mark.parametrize(
    "folder", ["_iceberg", "_versions", "_irc_bridge", ".irc-bridge-dropped", ".lance-x", "x" * 300]
)
def test_folders_in_which_other_files_are_kept(confined: Client, below: Path, folder: str) -> None:
    for place in (f"{below}/{folder}", f"{below}/other.lance/{folder}/t", f"file://{below}/{folder}/t"):
        for refused in (
            confined.create("t", location=place, properties=LANCE),
            confined.lance("t", "declare", {"location": place}),
        ):
            assert refused.status_code == 400, refused.text
    assert folder not in {each.name for each in below.iterdir()} and not (below / "other.lance").exists()


class TestPlacesThatTheServerChose:
    def test_a_staged_create_needs_no_setting(self, client: Client) -> None:
        for name in ("a", "b"):
            if name == "b":  # a place used before: the bridge plans another one
                assert client.create("b", properties=LANCE).status_code == 200
                assert client.drop("b").ok
            staged = client.create(name, **{"properties": LANCE, "stage-create": True}).json()["metadata"]
            made = client.post(client.table(name), created_by_commit(staged["location"]))
            assert made.status_code == 200, made.text
            assert made.json()["metadata"]["location"] == staged["location"]
            assert client.lance(name, "count_rows", {}).json() == 0
            assert client.purge(name).status_code == 204

    def test_one_beside_it_is_no_choice_of_the_server(self, client: Client) -> None:
        chosen = client.create("a", **{"properties": LANCE, "stage-create": True}).json()["metadata"]["location"]
        assert client.create("b-0123abcd", properties=LANCE).status_code == 200
        for place in (f"{chosen}x", f"{chosen}/deep", chosen[:-2], f"{chosen}-x", f"{chosen[:-1]}b-0123abcd"):
            refused = client.post(client.table("a"), created_by_commit(place))
            assert refused.status_code == 400, refused.text
        taken = client.post(client.table("b"), created_by_commit(f"{chosen[:-1]}b-0123abcd"))
        assert taken.status_code == 400, taken.text
        assert client.lance("b-0123abcd", "count_rows", {}).json() == 0

    def test_a_name_does_not_choose_a_place(
        self, client: Client, outside: Canary, upstream: UpstreamWorld
    ) -> None:
        """The server behind makes the location of the names."""
        assert upstream.warehouse is not None
        namespace = f"x/../{os.path.relpath(outside.folder, upstream.warehouse)}"
        url = f"{upstream.url}/v1/namespaces"
        assert requests.post(url, json={"namespace": [namespace]}, timeout=60).status_code == 200
        other = Client(client.url, quote(namespace, safe=""))
        for refused in (
            other.create("somebody.lance", properties=LANCE),
            other.lance("somebody.lance", "declare", {}),
            other.load("somebody.lance"),
            other.purge("somebody.lance"),
        ):
            assert refused.status_code == 400, refused.text
        made = requests.get(f"{url}/{quote(namespace, safe='')}/tables", timeout=60).json()
        assert made["identifiers"] == []
        assert outside.is_unchanged()

    def test_what_the_operator_made_at_the_server_is_read(
        self, client: Client, upstream: UpstreamWorld, tmp_path: Path
    ) -> None:
        lance.write_dataset(ROWS, tmp_path / "t.lance")
        body = {"name": "t", "schema": SCHEMA, "location": str(tmp_path / "t.lance"), "properties": LANCE}
        url = f"{upstream.url}/v1/namespaces/{client.namespace}/tables"
        assert requests.post(url, json=body, timeout=60).status_code == 200
        assert client.lance("t", "count_rows", {}).json() == 3

    def test_under_a_root_names_are_no_paths(
        self, upstream: UpstreamWorld, below: Path, tmp_path: Path, name: str
    ) -> None:
        with bridge_over(upstream.url, tmp_path, f'purge_after = "0s"\nroot = "{below}"\n') as server:
            namespaces = [f"{name}/a/b", f"{name}\\a", f".{name}", f"{name}_iceberg"]
            for namespace in namespaces:
                body = {"namespace": [namespace]}
                assert requests.post(f"{server.url}/v1/main/namespaces", json=body, timeout=60).status_code == 200
                other = Client(server.url, quote(namespace, safe=""))
                for table in ("t", "t/u", "...", "x" * 200):
                    made = other.create(table, properties=LANCE)
                    assert made.status_code == 200, made.text
                    place = Path(made.json()["metadata"]["location"].removeprefix("file://"))
                    assert place.parent.parent == below
                    assert other.purge(quote(table, safe="")).status_code == 204
                    assert not place.exists()
