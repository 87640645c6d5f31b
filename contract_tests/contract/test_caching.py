"""ETag and If-None-Match on LoadTable: 304 only while the answer would be the same bytes."""

from pathlib import Path
from typing import Any

import pytest

from contract_tests.conftest import Start
from contract_tests.worlds.bridge import Client, table_path, versions_in
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import COMPATIBLE, Bridge
from contract_tests.worlds.writer import rows

Place = tuple[str, ...]


def load(client: Client, place: Place, name: str, etag: str | None = None, **query: str) -> Any:
    headers = {"If-None-Match": etag} if etag else {}
    return client.get(table_path(place, name), headers=headers, params=query)


def etag_of(response: Any) -> str:
    assert response.status_code == 200
    etag: str = response.headers["ETag"]
    assert etag.removeprefix("W/").startswith('"') and etag.endswith('"')
    return etag


@pytest.fixture
def table(client: Client, root: Root, place: Place, name: str) -> Any:
    """With rows in versions 2 and 3."""
    location = client.create_table(place, name)["metadata"]["location"]
    schema = root.open(location).schema
    root.write(location, rows(2).cast(schema), mode="append")
    return root.write(location, rows(2).cast(schema), mode="append")


@pytest.mark.usefixtures("table")
class TestConditionalLoad:
    @pytest.mark.parametrize("query", [{}, {"snapshots": "all"}, {"snapshots": "refs"}])
    def test_what_the_client_holds_is_not_sent_again(
        self, client: Client, place: Place, name: str, query: dict[str, str]
    ) -> None:
        etag = etag_of(load(client, place, name, **query))
        again = load(client, place, name, etag, **query)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == etag

    def test_one_of_several_will_do(self, client: Client, place: Place, name: str) -> None:
        etag = etag_of(load(client, place, name))
        assert load(client, place, name, f'"other", {etag}, W/"more"').status_code == 304
        assert load(client, place, name, f'"other",{etag}').status_code == 304
        assert load(client, place, name, f"W/{etag.removeprefix('W/')}").status_code == 304
        assert load(client, place, name, "*").status_code == 304

    @pytest.mark.parametrize("held", ['"other"', "nonsense", '""', '"', ",", "é".encode().decode("latin-1")])
    def test_another_tag_gets_the_table(self, client: Client, place: Place, name: str, held: str) -> None:
        assert load(client, place, name, held).status_code == 200

    def test_all_and_refs_are_different_answers(self, client: Client, place: Place, name: str) -> None:
        everything, refs = etag_of(load(client, place, name)), etag_of(load(client, place, name, snapshots="refs"))
        assert everything != refs
        assert load(client, place, name, everything, snapshots="refs").status_code == 200
        assert load(client, place, name, refs, snapshots="all").status_code == 200
        assert load(client, place, name, everything, snapshots="all").status_code == 304

    def test_a_table_of_one_version_too(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, f"{name}_one")
        everything = etag_of(load(client, place, f"{name}_one"))
        assert load(client, place, f"{name}_one", everything, snapshots="refs").status_code == 200

    def test_two_tables_never_share_one(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, f"{name}_a")
        client.create_table(place, f"{name}_b")
        etag = etag_of(load(client, place, f"{name}_a"))
        assert load(client, place, f"{name}_b", etag).status_code == 200


class TestNeverBehind:
    """Whatever somebody else does to a table shows in the next answer."""

    def assert_seen(self, client: Client, place: Place, name: str, change: Any, **query: str) -> Any:
        etag = etag_of(load(client, place, name, **query))
        assert load(client, place, name, etag, **query).status_code == 304
        change()
        response = load(client, place, name, etag, **query)
        assert response.status_code == 200
        assert etag_of(response) != etag
        assert etag_of(load(client, place, name, **query)) == etag_of(response)
        return response.json()["metadata"]

    @pytest.mark.parametrize("snapshots", ["all", "refs"])
    def test_a_version(self, client: Client, place: Place, name: str, table: Any, snapshots: str) -> None:
        for version in range(4, 12):
            seen = self.assert_seen(
                client, place, name, lambda: table.insert(rows(1).cast(table.schema)), snapshots=snapshots
            )
            assert seen["current-snapshot-id"] == version

    @pytest.mark.parametrize("snapshots", ["all", "refs"])
    def test_tags(self, client: Client, place: Place, name: str, table: Any, snapshots: str) -> None:
        for _ in range(5):
            for change, expected in (
                (lambda: table.tags.create("t", 2), 2),
                (lambda: table.tags.update("t", 3), 3),
                (lambda: table.tags.update("t", 2), 2),
                (lambda: table.tags.delete("t"), None),
            ):
                seen = self.assert_seen(client, place, name, change, snapshots=snapshots)
                assert seen["refs"].get("t", {}).get("snapshot-id") == expected

    def test_a_tag_made_again_on_another_version(
        self, client: Client, place: Place, name: str, table: Any
    ) -> None:
        table.tags.create("t", 2)
        for version in (3, 2, 3, 2):

            def move(version: int = version) -> None:
                table.tags.delete("t")
                table.tags.create("t", version)

            seen = self.assert_seen(client, place, name, move)
            assert seen["refs"]["t"]["snapshot-id"] == version

    @pytest.mark.needs("Lance properties")
    def test_properties(self, client: Client, place: Place, name: str, table: Any) -> None:
        seen = self.assert_seen(client, place, name, lambda: table.update_metadata({"owner": "you"}))
        assert seen["properties"]["owner"] == "you"

    @pytest.mark.needs("folders as tables")
    def test_a_new_table_of_the_same_name_and_version(self, client: Client, root: Root, name: str) -> None:
        folder = root.at(f"{name}.lance")
        root.write(folder, rows(1))
        for count in range(2, 12):

            def replace(count: int = count) -> None:
                root.remove(folder)
                root.write(folder, rows(count))

            seen = self.assert_seen(client, ("default",), name, replace)
            assert seen["current-snapshot-id"] == 1
            assert versions_in(seen)[0]["summary"]["total-records"] == str(count)

    def test_a_table_dropped_and_made_again(self, client: Client, place: Place, name: str) -> None:
        first = client.create_table(place, name)["metadata"]["table-uuid"]
        purged = table_path(place, name)

        def replace() -> None:
            client.delete(purged, params={"purgeRequested": "true"})
            client.create_table(place, name)

        assert self.assert_seen(client, place, name, replace)["table-uuid"] != first

    def test_the_first_version_of_a_declared_table(
        self, client: Client, root: Root, place: Place, name: str
    ) -> None:
        location = client.declare_table(place, name)["metadata"]["location"]
        seen = self.assert_seen(client, place, name, lambda: root.write(location))
        assert seen["current-snapshot-id"] == 1

    def test_a_table_that_went(self, client: Client, root: Root, place: Place, name: str, table: Any) -> None:
        etag = etag_of(load(client, place, name))
        root.remove(client.metadata(place, name)["location"])
        assert load(client, place, name, etag).status_code in (200, 404, 500)
        client.delete(table_path(place, name))
        assert load(client, place, name, etag).status_code == 404


def test_other_servers_give_the_same_tags(bridge: Bridge, place: Place, name: str, table: Any) -> None:
    """So a client behind a balancer, or after a restart, is not sent the table again."""
    table.tags.create("t", 2)
    with bridge.world.start_another(bridge) as other:
        for query in ({}, {"snapshots": "refs"}):
            mine, theirs = (load(each, place, name, **query) for each in (bridge.client, other.client))
            assert etag_of(mine) == etag_of(theirs)
            assert mine.content == theirs.content
            assert load(other.client, place, name, etag_of(mine), **query).status_code == 304


def test_answers_with_secrets_are_nobody_elses(start: Start, tmp_path: Path) -> None:
    secret = 'vend_credentials = true\nstorage.aws_secret_access_key = "hush-hush"\n'
    with start(COMPATIBLE.configuration(tmp_path / "tables", secret)).client() as client:
        client.create_table(("default",), "t")
        plain = client.get(table_path(("default",), "t"))
        asked = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        vended = client.get(table_path(("default",), "t"), headers=asked)
        assert "hush-hush" in vended.text
        assert "hush-hush" not in plain.text
        assert {"no-store"} <= set(vended.headers["Cache-Control"].replace(" ", "").split(","))
        held = {**asked, "If-None-Match": plain.headers["ETag"]}
        assert client.get(table_path(("default",), "t"), headers=held).status_code == 200
