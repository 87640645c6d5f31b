"""The Lance protocol over every kind of catalog. Its details are tested on one of them, in `lance/`."""

from collections.abc import Iterator

import lance
import pytest
from lance.namespace import RestNamespace

from contract_tests.lance.client import ROWS, Lance, ok, refused
from contract_tests.worlds.bridge import Client
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import Bridge


@pytest.fixture
def lance_rest(bridge: Bridge) -> Iterator[Lance]:
    with Lance(bridge.server.url) as client:
        yield client


def id_of(place: tuple[str, ...], name: str) -> list[str]:
    """Tables of the root have one level here."""
    return [name] if place == ("default",) else [*place, name]


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_a_writer_commits_and_iceberg_sees_it(
    bridge: Bridge, client: Client, root: Root, place: tuple[str, ...], name: str, managed_by: str
) -> None:
    table, namespace = id_of(place, name), RestNamespace(uri=f"{bridge.server.url}/lance")
    with Lance(bridge.server.url) as lance_rest:
        declared = ok(lance_rest.table(table, "declare", {"properties": {"managed_by": managed_by}}))
        assert client.metadata(place, name).get("current-snapshot-id") in (None, -1)
        for version, mode in enumerate(("overwrite", "append", "append"), 1):
            dataset = lance.write_dataset(
                ROWS, namespace_client=namespace, table_id=table, mode=mode, storage_options=dict(root.options)
            )
            assert dataset.version == version
            assert client.metadata(place, name)["current-snapshot-id"] == version
        assert ok(lance_rest.table(table, "count_rows", {})) == 9
        assert ok(lance_rest.table(table, "count_rows", {"version": 1})) == 3
        described = ok(lance_rest.table(table, "describe", {}))
        assert described == declared
        assert described["managed_versioning"] is (managed_by == "impl")
        assert root.open(described["location"]).count_rows() == 9


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_created_and_overwritten_with_rows(
    lance_rest: Lance, client: Client, root: Root, place: tuple[str, ...], name: str, managed_by: str
) -> None:
    table, properties = id_of(place, name), f'{{"managed_by": "{managed_by}", "a": "b"}}'
    made = ok(lance_rest.create(table, properties=properties))
    assert made["version"] == 1
    assert root.open(made["location"]).to_table().equals(ROWS)
    refused(lance_rest.create(table), 409, 5, name)
    assert ok(lance_rest.create(table, ROWS.slice(1), mode="exist_ok"))["location"] == made["location"]
    assert ok(lance_rest.create(table, ROWS.slice(2), mode="overwrite"))["version"] == 2
    assert root.open(made["location"]).to_table().equals(ROWS.slice(2))
    metadata = client.metadata(place, name)
    assert metadata["current-snapshot-id"] == 2
    assert metadata["properties"]["a"] == "b"
    stats = ok(lance_rest.table(table, "stats", {}))
    assert (stats["num_rows"], stats["fragment_stats"]["num_fragments"]) == (1, 1)
    assert ok(lance_rest.table(table, "drop"))["location"] == made["location"]
    assert not root.exists(made["location"])


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_versions_tags_and_schema_metadata(
    lance_rest: Lance, client: Client, root: Root, place: tuple[str, ...], name: str, managed_by: str
) -> None:
    table = id_of(place, name)
    location = ok(lance_rest.create(table, properties=f'{{"managed_by": "{managed_by}"}}'))["location"]
    ok(lance_rest.table(table, "schema_metadata/update", {"k": "v"}))
    assert root.open(location).schema.metadata == {b"k": b"v"}
    listed = ok(lance_rest.table(table, "version/list"))["versions"]
    assert [each["version"] for each in listed] == [2, 1]
    assert location.endswith(listed[0]["manifest_path"].rpartition("/_versions/")[0])
    told = ok(lance_rest.table(table, "version/describe", {"version": 1}))["version"]
    assert told["manifest_path"] == listed[1]["manifest_path"]
    ok(lance_rest.table(table, "tags/create", {"tag": "first", "version": 1}))
    refused(lance_rest.table(table, "tags/create", {"tag": "first", "version": 2}), 409, 9)
    assert client.metadata(place, name)["refs"]["first"]["snapshot-id"] == 1
    assert ok(lance_rest.table(table, "tags/version", {"tag": "first"})) == {"version": 1}
    ok(lance_rest.table(table, "tags/delete", {"tag": "first"}))
    assert ok(lance_rest.table(table, "tags/list")) == {"tags": {}}
    ranges = [{"start_version": 1, "end_version": 2}]
    assert ok(lance_rest.table(table, "version/delete", {"ranges": ranges})) == {"deleted_count": 1}
    refused(lance_rest.table(table, "version/describe", {"version": 1}), 404, 11)


def test_names_of_the_root_and_of_namespaces(
    lance_rest: Lance, client: Client, place: tuple[str, ...], name: str
) -> None:
    table = id_of(place, name)
    client.create_table(place, name)
    assert name in ok(lance_rest.list(table[:-1], "table/list"))["tables"]
    assert "$".join(table) in ok(lance_rest.get("table"))["tables"]
    ok(lance_rest.table(table, "exists", {}))
    gone = ok(lance_rest.table(table, "deregister", {}))
    assert gone["id"] == table
    refused(lance_rest.table(table, "exists", {}), 404, 4)
    assert name not in client.tables(place)
    assert ok(lance_rest.table(table, "register", {"location": gone["location"]}))["location"] == gone["location"]
    assert name in client.tables(place)
