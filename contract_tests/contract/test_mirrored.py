"""Tables with a Parquet copy of some versions: which version an Iceberg client takes for the current one. What is
in a copy plays no part here: a manifest list of the right name is one."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import lance_namespace as ln
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.types import LongType

from contract_tests.contract.test_commits import commit, set_properties
from contract_tests.contract.test_tags import expires, sets
from contract_tests.contract.test_version_commits import add, asserts
from contract_tests.directory.staging import stage
from contract_tests.worlds.bridge import Client, Server, assert_error, assert_ok, table_path, versions_in
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import COMPATIBLE, IRC, LISTING, S3_WORLDS, VERSIONS, Bridge, _worlds
from contract_tests.worlds.writer import rows

Place = tuple[str, ...]
Metadata = dict[str, Any]
pytestmark = _worlds(COMPATIBLE, LISTING, VERSIONS[1], S3_WORLDS[0], IRC)

LATEST, MIRRORED = "irc-bridge.latest-version", "irc-bridge.mirrored-version"


def list_of(metadata: Metadata, version: int) -> str:
    """Where the manifest list of a version lies."""
    location = metadata["location"]
    (made,) = [each["timestamp-ms"] for each in versions_in(metadata) if each["snapshot-id"] == version]
    digest = blake2b(f"{location}\n{version}\n{made}".encode(), digest_size=8).hexdigest()
    return f"{location}/_iceberg/versions/{version}-{digest}.avro"


def mirror(client: Client, root: Root, place: Place, name: str, *versions: int) -> dict[int, str]:
    metadata = client.metadata(place, name)
    lists = {version: list_of(metadata, version) for version in versions}
    for each in lists.values():
        root.put(each, b"a list")
    return lists


def four_versions(client: Client, root: Root, place: Place, name: str, managed_by: str = "storage") -> str:
    properties = {"managed_by": managed_by}
    location: str = client.create_table(place, name, properties=properties)["metadata"]["location"]
    for number in range(3):
        if managed_by == "impl":
            assert_ok(add(client, place, name, stage(location, number, options=root.options)))
        else:
            root.write(location, rows(1).cast(root.open(location).schema), mode="append")
    return location


def current(metadata: Metadata) -> int:
    """As every part of the metadata says that says it."""
    version: int = metadata["current-snapshot-id"]
    assert metadata["refs"]["main"] == {"snapshot-id": version, "type": "branch"}
    assert metadata["snapshot-log"][-1]["snapshot-id"] == version
    (shown,) = [each for each in versions_in(metadata) if each["snapshot-id"] == version]
    assert shown["schema-id"] == metadata["current-schema-id"]
    return version


def seen(client: Client, place: Place, name: str) -> int:
    """In both ways to load."""
    everything, refs = client.metadata(place, name), client.metadata(place, name, snapshots="refs")
    for key in ("properties", "last-sequence-number", "last-updated-ms", "last-column-id"):
        assert everything[key] == refs[key]
    assert current(everything) == current(refs)
    return current(everything)


def of_latest(metadata: Metadata) -> list[str]:
    """The columns of the latest version."""
    (schema,) = [
        each for each in metadata["schemas"] if each["schema-id"] == versions_in(metadata)[-1]["schema-id"]
    ]
    return [field["name"] for field in schema["fields"]]


@pytest.fixture
def location(client: Client, root: Root, namespace: Place, name: str) -> str:
    """Of a table with four versions, of which the first two have a copy."""
    made = four_versions(client, root, namespace, name)
    mirror(client, root, namespace, name, 1, 2)
    return made


@pytest.fixture(scope="module")
def other(bridge: Bridge) -> Iterator[Client]:
    """Another server on the same tables, which serves the latest."""
    file = bridge.folder / "serve-latest.toml"
    settings = (bridge.folder / "irc-bridge.toml").read_text()
    file.write_text(settings.replace("[warehouses.main]\n", '[warehouses.main]\nmirror_lag = "serve-latest"\n'))
    server: Server = bridge.world.server(file)
    with server, server.client() as client:
        yield client


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_the_version_that_is_current(
    client: Client, other: Client, root: Root, namespace: Place, name: str, managed_by: str
) -> None:
    four_versions(client, root, namespace, name, managed_by)
    for each in (client, other):
        assert seen(each, namespace, name) == 4
        assert not {LATEST, MIRRORED} & client.metadata(namespace, name)["properties"].keys()
    lists = mirror(client, root, namespace, name, 1, 3)
    shown = {each: each.metadata(namespace, name) for each in (client, other)}
    assert {each: seen(each, namespace, name) for each in shown} == {
        client: 3 if managed_by == "storage" else 4,
        other: 4,
    }
    for metadata in shown.values():
        assert (metadata["properties"][LATEST], metadata["properties"][MIRRORED]) == ("4", "3")
        assert [each["snapshot-id"] for each in versions_in(metadata)] == [1, 2, 3, 4]
        assert metadata["last-sequence-number"] == 4
        assert metadata["last-updated-ms"] >= versions_in(metadata)[-1]["timestamp-ms"]
        named = {each["snapshot-id"]: each["manifest-list"] for each in versions_in(metadata)}
        assert {version: named[version] for version in (1, 3)} == lists
        for version in (2, 4):
            assert f"Lance-version-{version}-has-no-Parquet-copy--run-irc-bridge-mirror-or-read" in named[version]
            assert not root.exists(named[version])
    mirror(client, root, namespace, name, 4)
    assert seen(client, namespace, name) == 4


def test_a_list_made_or_removed_shows_in_the_next_answer(
    client: Client, other: Client, root: Root, namespace: Place, name: str
) -> None:
    four_versions(client, root, namespace, name)
    servers = (client, other)
    changes: list[tuple[tuple[int, ...], int]]
    changes = [((1,), 1), ((3,), 3), ((-3,), 1), ((4, -1), 4), ((-4,), 4), ((2, 3), 3)]
    for change, expected in changes:
        for each in servers:
            for snapshots in ("all", "refs"):
                held = each.get(table_path(namespace, name), params={"snapshots": snapshots}).headers["ETag"]
                again = each.get(
                    table_path(namespace, name), params={"snapshots": snapshots}, headers={"If-None-Match": held}
                )
                assert again.status_code == 304
        for version in change:
            if version > 0:
                mirror(client, root, namespace, name, version)
            else:
                root.remove(list_of(client.metadata(namespace, name), -version))
        assert seen(client, namespace, name) == expected
        said = None if change == (-4,) else str(expected)
        for each in servers:
            assert each.metadata(namespace, name)["properties"].get(MIRRORED) == said


@pytest.mark.usefixtures("location")
class TestLag:
    def test_a_version_more(self, client: Client, root: Root, namespace: Place, name: str, location: str) -> None:
        before = client.metadata(namespace, name)
        root.write(location, rows(1).cast(root.open(location).schema), mode="append")
        after = client.metadata(namespace, name)
        assert (current(before), current(after)) == (2, 2)
        assert (before["properties"][LATEST], after["properties"][LATEST]) == ("4", "5")
        assert after["last-sequence-number"] == versions_in(after)[-1]["snapshot-id"] == 5

    def test_tags(self, client: Client, root: Root, namespace: Place, name: str, location: str) -> None:
        root.open(location).tags.create("old", 1)
        assert_ok(commit(client, namespace, name, sets("new", 3)))
        for query in ({}, {"snapshots": "refs"}):
            metadata = client.metadata(namespace, name, **query)
            assert current(metadata) == 2
            tags = {tag: ref["snapshot-id"] for tag, ref in metadata["refs"].items() if tag != "main"}
            assert tags == {"old": 1, "new": 3}
            assert [each["snapshot-id"] for each in versions_in(metadata)] == [1, 2, 3, 4]
        root.open(location).tags.delete("old")
        metadata = client.metadata(namespace, name, snapshots="refs")
        assert [each["snapshot-id"] for each in versions_in(metadata)] == [2, 3, 4]

    def test_the_lance_protocols_see_the_latest(self, bridge: Bridge, namespace: Place, name: str) -> None:
        levels = name if namespace == ("default",) else f"{namespace[0]}${name}"
        path = f"/lance/v1/table/{levels}"
        described = assert_ok(bridge.client.post(f"{path}/describe", json={"load_detailed_metadata": True}))
        assert described["version"] == 4
        assert not {LATEST, MIRRORED} & described["properties"].keys()
        listed = assert_ok(bridge.client.post(f"{path}/version/list", json={}))
        assert {each["version"] for each in listed["versions"]} == {1, 2, 3, 4}
        over_irc = ln.connect("irc_bridge.client.IcebergRestNamespace", {"uri": bridge.server.url})
        assert over_irc.describe_table(ln.DescribeTableRequest(id=[*namespace, name])).version == 4

    def test_properties(self, client: Client, namespace: Place, name: str) -> None:
        for key in (LATEST, MIRRORED):
            for update in (set_properties(**{key: "9"}), {"action": "remove-properties", "removals": [key]}):
                assert_error(commit(client, namespace, name, update), 400, names=key)
        body = set_properties(owner="ann"), [asserts(2)]
        for _ in range(2):
            answered = assert_ok(commit(client, namespace, name, body[0], requirements=body[1]))["metadata"]
            assert (current(answered), answered["properties"]["owner"]) == (2, "ann")
            assert answered == client.metadata(namespace, name)
        stale = commit(client, namespace, name, set_properties(owner="bob"), requirements=[asserts(4)])
        assert_error(stale, 409, "CommitFailedException", names="Requirement failed")
        assert client.metadata(namespace, name)["properties"]["owner"] == "ann"

    def test_what_stays(self, client: Client, root: Root, namespace: Place, name: str, location: str) -> None:
        for version in (2, 4):
            refused = commit(client, namespace, name, expires(1, version))
            assert_error(refused, 400, names=f"{version} is the current version and stays")
        assert_ok(commit(client, namespace, name, expires(1, 3)))
        assert [each["version"] for each in root.open(location).versions()] == [2, 4]
        assert seen(client, namespace, name) == 2
        assert_error(commit(client, namespace, name, sets("main", 4, "branch")), 400, names="it is on 2")

    def test_who_decides_about_versions(self, client: Client, namespace: Place, name: str) -> None:
        answered = assert_ok(
            commit(client, namespace, name, set_properties(managed_by="impl"), requirements=[asserts(2)])
        )["metadata"]
        assert current(answered) == versions_in(answered)[-1]["snapshot-id"] >= 4
        assert answered["properties"][MIRRORED] == "2"
        latest = asserts(current(answered))
        back = commit(client, namespace, name, set_properties(managed_by="storage"), requirements=[latest])
        assert current(assert_ok(back)["metadata"]) == seen(client, namespace, name) == 2


class TestSchema:
    """What a client changes is what it saw, and what becomes of it is the next version of the latest."""

    def test_a_change_where_it_is_the_same(
        self, bridge: Bridge, root: Root, namespace: Place, name: str, location: str
    ) -> None:
        catalog = load_catalog("bridge", type="rest", uri=bridge.server.url, warehouse="main")
        table = catalog.load_table((*namespace, name))
        with table.update_schema() as update:
            update.add_column("score", LongType())
            update.delete_column("name")
        assert root.open(location).schema.names == ["id", "score"]
        assert root.open(location).count_rows() == 3
        metadata = bridge.client.metadata(namespace, name)
        assert (current(metadata), versions_in(metadata)[-1]["snapshot-id"]) == (2, 5)
        assert table.refresh().schema().column_names == ["id", "name"]
        assert of_latest(metadata) == ["id", "score"]
        for change in ("id", "name"):
            with (
                pytest.raises(
                    CommitFailedException, match=r"behind a change of the schema.*Run irc-bridge mirror"
                ),
                table.update_schema() as update,
            ):
                update.rename_column(change, "other")
        assert root.open(location).version == 5
        mirror(bridge.client, root, namespace, name, 5)
        with table.refresh().update_schema() as update:
            update.rename_column("score", "points")
        assert root.open(location).schema.names == ["id", "points"]

    def test_a_change_that_is_sent_again(
        self, client: Client, root: Root, namespace: Place, name: str, location: str
    ) -> None:
        before = client.metadata(namespace, name)
        (schema,) = before["schemas"]
        kept = {**schema, "schema-id": 2, "fields": schema["fields"][:1]}
        updates = [
            {"action": "add-schema", "schema": kept, "last-column-id": before["last-column-id"]},
            {"action": "set-current-schema", "schema-id": -1},
        ]
        asserted = [{"type": "assert-current-schema-id", "current-schema-id": 1}, asserts(2)]
        for _ in range(3):
            assert_ok(commit(client, namespace, name, *updates, requirements=asserted))
            assert (root.open(location).version, root.open(location).schema.names) == (5, ["id"])
        mirror(client, root, namespace, name, 5)
        assert_ok(commit(client, namespace, name, *updates, requirements=asserted))
        assert root.open(location).version == 5

    @pytest.mark.parametrize("change", ["a column more", "a column less", "another name"])
    def test_a_change_where_it_is_not(
        self, client: Client, root: Root, namespace: Place, name: str, location: str, change: str
    ) -> None:
        table = root.open(location)
        if change == "a column more":
            table.add_columns({"twice": "id * 2"})
        elif change == "a column less":
            table.drop_columns(["name"])
        else:
            table.alter_columns({"path": "name", "name": "called"})
        columns = root.open(location).schema.names
        metadata = client.metadata(namespace, name)
        assert current(metadata) == 2
        (schema,) = [each for each in metadata["schemas"] if each["schema-id"] == 1]
        assert [field["name"] for field in schema["fields"]] == ["id", "name"]
        assert of_latest(metadata) == columns
        last = metadata["last-column-id"]
        added = {"id": last + 1, "name": "twice", "type": "long", "required": False}
        for fields in ([*schema["fields"], added], schema["fields"][:1]):
            wanted = {**schema, "schema-id": 9, "fields": fields}
            response = commit(
                client,
                namespace,
                name,
                {"action": "add-schema", "schema": wanted, "last-column-id": last + 1},
                {"action": "set-current-schema", "schema-id": -1},
                requirements=[
                    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": last},
                    {"type": "assert-current-schema-id", "current-schema-id": 1},
                ],
            )
            assert_error(response, 409, "CommitFailedException", names="irc-bridge mirror")
        assert root.open(location).schema.names == columns
        assert_ok(commit(client, namespace, name, set_properties(owner="ann"), requirements=[asserts(2)]))
        assert root.open(location).schema.names == columns


class TestPlaces:
    @pytest.mark.needs("rename")
    def test_a_renamed_table(self, client: Client, root: Root, place: Place, name: str) -> None:
        """Paths in a copy are absolute."""
        before = four_versions(client, root, place, name)
        root.put(f"{before}/_iceberg/data/some.parquet", b"rows")
        lists = mirror(client, root, place, name, 2)
        names = [{"namespace": place, "name": each} for each in (name, f"{name}_new")]
        renamed = client.post("tables/rename", json={"source": names[0], "destination": names[1]})
        assert renamed.status_code == 204
        after = client.metadata(place, f"{name}_new")
        assert root.open(after["location"]).count_rows() == 3
        if after["location"] == before:
            assert current(after) == 2 and versions_in(after)[1]["manifest-list"] == lists[2]
        else:
            assert current(after) == 4 and MIRRORED not in after["properties"]
            assert not root.exists(f"{after['location']}/_iceberg/data")
            assert not root.exists(before)

    def test_a_table_dropped_and_made_again(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = four_versions(client, root, place, name)
        lists = mirror(client, root, place, name, 1, 2, 3)
        root.put(f"{location}/_iceberg/data/some.parquet", b"rows")
        assert client.delete(table_path(place, name), params={"purgeRequested": "true"}).status_code == 204
        assert not root.exists(location)
        # a mirror that was under way
        root.put(f"{location}/_iceberg/data/more.parquet", b"rows")
        root.put(lists[3], b"a list")
        assert client.get(table_path(place, name)).status_code == 404
        assert name not in client.tables(place)
        again = four_versions(client, root, place, name)
        for version, old in lists.items():
            root.put(old.replace(location, again), b"a list")
            root.put(f"{again}/_iceberg/versions/{version}-nonsense.avro", b"no list")
        assert seen(client, place, name) == 4
        assert MIRRORED not in client.metadata(place, name)["properties"]
        mirror(client, root, place, name, 1)
        assert seen(client, place, name) == 1

    def test_a_version_removed_and_made_again(
        self, bridge: Bridge, root: Root, namespace: Place, name: str
    ) -> None:
        client = bridge.client
        location = four_versions(client, root, namespace, name)
        lists = mirror(client, root, namespace, name, 2, 4)
        assert seen(client, namespace, name) == 4
        levels = name if namespace == ("default",) else f"{namespace[0]}${name}"
        latest = {"ranges": [{"start_version": 4, "end_version": 5}]}
        assert_ok(client.post(f"/lance/v1/table/{levels}/version/delete", json=latest))
        root.write(location, rows(2).cast(root.open(location).schema), mode="append")
        assert root.open(location).version == 4
        assert seen(client, namespace, name) == 2
        assert lists[4] not in [each["manifest-list"] for each in versions_in(client.metadata(namespace, name))]
        mirror(client, root, namespace, name, 4)
        assert seen(client, namespace, name) == 4
