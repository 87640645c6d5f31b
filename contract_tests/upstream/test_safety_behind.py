"""What keeps Iceberg clients that go straight to the server behind away from the files of Lance tables."""

from pathlib import Path
from typing import Any

import lance
import pytest
import requests
from pyiceberg.catalog import load_catalog

from contract_tests.directory.staging import stage
from contract_tests.upstream.lance_catalog import (
    IMPL,
    SCHEMA,
    UpstreamCatalog,
    append,
    load,
    made,
    opened,
    versions,
)
from contract_tests.worlds.upstream import bridge_over
from contract_tests.worlds.world import UpstreamWorld
from contract_tests.worlds.writer import rows
from irc_bridge.catalog.models import Commit, Levels, NewTable
from irc_bridge.errors import InvalidInput
from irc_bridge.irc_client.server import IrcServer

GUARD = "This-is-a-Lance-table--clean-it-up-with-Lance.avro"


def behind(upstream: UpstreamWorld, table: Levels) -> dict[str, Any]:
    """The metadata that the server itself serves."""
    url = f"{upstream.url}/v1/namespaces/{table[0]}/tables/{table[1]}?snapshots=all"
    metadata: dict[str, Any] = requests.get(url, timeout=60).json()["metadata"]
    return metadata


def guards(metadata: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (each["snapshot-id"], each.get("sequence-number", 0), each["manifest-list"].rpartition("/")[2])
        for each in metadata.get("snapshots", [])
        if each["summary"].get("irc-bridge.guard") == "true"
    ]


THE_GUARD = [(0, 0, GUARD)]


@pytest.mark.parametrize("schema", [SCHEMA, None], ids=["made", "declared"])
@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_a_new_table(
    upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels, managed_by: str, schema: Any
) -> None:
    catalog.create_table(table, NewTable({"managed_by": managed_by}, schema=schema))
    metadata = behind(upstream, table)
    assert metadata["properties"]["gc.enabled"] == "false"
    assert guards(metadata) == (THE_GUARD if managed_by == "storage" else [])
    assert (metadata["refs"] == {}) == (managed_by == "storage" or schema is None)
    assert metadata["snapshot-log"] == [] or managed_by == "impl"
    location = metadata["location"].removeprefix("file://")
    assert not Path(location, "_iceberg", GUARD).exists()


def test_a_registered_table(
    upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels, tmp_path: Path
) -> None:
    lance.write_dataset(rows(2), tmp_path / "t.lance")
    catalog.register_table(table, str(tmp_path / "t.lance"))
    metadata = behind(upstream, table)
    assert (metadata["properties"]["gc.enabled"], guards(metadata)) == ("false", THE_GUARD)


def test_a_staged_table(upstream: UpstreamWorld, tmp_path: Path, table: Levels, catalog: UpstreamCatalog) -> None:
    with bridge_over(upstream.url, tmp_path) as server:
        tables = f"{server.url}/v1/main/namespaces/{table[0]}/tables"
        schema = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int", "required": False}]}
        body = {"name": "t", "schema": schema, "stage-create": True, "properties": {"table_type": "lance"}}
        staged = requests.post(tables, json=body, timeout=60).json()["metadata"]
        updates = [
            {"action": "add-schema", "schema": schema, "last-column-id": 1},
            {"action": "set-location", "location": staged["location"]},
            {"action": "set-properties", "updates": staged["properties"]},
        ]
        change = {"requirements": [{"type": "assert-create"}], "updates": updates}
        answered = requests.post(f"{tables}/t", json=change, timeout=60)
        assert answered.status_code == 200, answered.text
        served = requests.get(f"{tables}/t", timeout=60).json()["metadata"]
    metadata = behind(upstream, table)
    assert (metadata["properties"]["gc.enabled"], guards(metadata)) == ("false", THE_GUARD)
    assert guards(served) == THE_GUARD, "once, and not once more for that of the server"
    assert [each["snapshot-id"] for each in served["snapshots"]] in ([0, 1], [1, 0])
    assert not [key for key in served["properties"] if key.startswith("irc-bridge.guard")]


@pytest.fixture
def older(upstream: UpstreamWorld, table: Levels, catalog: UpstreamCatalog, tmp_path: Path) -> Path:
    """A table as other clients, and earlier versions of the bridge, make it."""
    folder = tmp_path / "t.lance"
    lance.write_dataset(rows(2), folder)
    body = {"name": "t", "location": str(folder), "schema": {"type": "struct", "fields": []}}
    tables = f"{upstream.url}/v1/namespaces/{table[0]}/tables"
    made = requests.post(tables, json={**body, "properties": {"table_type": "lance"}}, timeout=60)
    assert made.status_code == 200, made.text
    return folder


class TestOlderTables:
    def test_get_it_with_the_next_commit_and_not_by_a_read(
        self, upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels, older: Path
    ) -> None:
        before = behind(upstream, table)
        assert versions(catalog, table) == [1]
        catalog.list_table_versions(table)
        assert behind(upstream, table) == before
        catalog.commit(table, lambda _: Commit(set_properties={"a": "b"}))
        metadata = behind(upstream, table)
        assert metadata["properties"].items() >= {"a": "b", "gc.enabled": "false"}.items()
        assert guards(metadata) == THE_GUARD
        catalog.commit(table, lambda _: Commit(set_properties={"a": "c"}))
        assert guards(behind(upstream, table)) == THE_GUARD
        assert load(catalog, table).properties["a"] == "c"

    def test_without_the_setting_there_is_no_guard(
        self, upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels, older: Path
    ) -> None:
        unguarded = opened(upstream, guard_snapshot=False)
        unguarded.commit(table, lambda _: Commit(set_properties={"a": "b"}))
        metadata = behind(upstream, table)
        assert (metadata["properties"]["gc.enabled"], guards(metadata)) == ("false", [])

    def test_a_version_of_an_impl_table(
        self, upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels
    ) -> None:
        location = made(catalog, table)
        url = f"{upstream.url}/v1/namespaces/{table[0]}/tables/{table[1]}"
        removal = {"requirements": [], "updates": [{"action": "remove-properties", "removals": ["gc.enabled"]}]}
        assert requests.post(url, json=removal, timeout=60).status_code == 200
        opened(upstream).create_table_versions([stage(location, 1).entry(table)])
        assert behind(upstream, table)["properties"]["gc.enabled"] == "false"
        assert versions(catalog, table) == [1, 2]


class TestSwitching:
    def test_versions_are_made_after_the_guard(
        self, upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels
    ) -> None:
        """The first of them too."""
        catalog.create_table(table, NewTable({}))
        assert guards(behind(upstream, table)) == THE_GUARD
        catalog.commit(table, lambda _: Commit(set_properties=IMPL))
        catalog.write_rows(table, rows(2), {}, overwrite=False)
        append(catalog, table)
        metadata = behind(upstream, table)
        assert [each["snapshot-id"] for each in metadata["snapshots"]] == [0, 1, 2]
        assert metadata["refs"]["main"]["snapshot-id"] == 2
        assert versions(catalog, table) == [1, 2]

    def test_there_and_back(self, upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels) -> None:
        """Versions that the server has as snapshots are as good as a guard: their manifest lists are gone."""
        location = made(catalog, table)
        catalog.commit(table, lambda _: Commit(remove_properties=frozenset({"managed_by"})))
        stops_who_wants_all_files(upstream, table)
        lance.write_dataset(rows(1, 6), location, mode="append")
        catalog.commit(table, lambda _: Commit(set_properties=IMPL))
        append(catalog, table, 7)
        assert versions(catalog, table) == [1, 2, 3]
        catalog.commit(table, lambda _: Commit(remove_properties=frozenset({"managed_by"})))
        stops_who_wants_all_files(upstream, table)


def test_a_server_that_takes_no_guard(
    upstream: UpstreamWorld, table: Levels, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = IrcServer.commit

    def picky(self: IrcServer, table: Levels, change: Any) -> Any:
        if any(each["action"] == "add-snapshot" for each in change["updates"]):
            raise InvalidInput("no such snapshots here")
        return commit(self, table, change)

    monkeypatch.setattr(IrcServer, "commit", picky)
    catalog = opened(upstream)
    made(catalog, table, "storage")
    catalog.commit(table, lambda _: Commit(set_properties={"a": "b"}))
    assert (versions(catalog, table), load(catalog, table).properties["a"]) == ([1], "b")


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_who_wants_all_files_of_a_table_stops(
    upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels, managed_by: str
) -> None:
    made(catalog, table, managed_by)
    said = stops_who_wants_all_files(upstream, table)
    assert managed_by == "impl" or GUARD in said


def stops_who_wants_all_files(upstream: UpstreamWorld, table: Levels) -> str:
    """As orphan cleaning does before it removes the others."""
    straight = load_catalog("straight", type="rest", uri=upstream.url).load_table(table)
    with pytest.raises(FileNotFoundError) as stopped:
        straight.inspect.all_files()
    return str(stopped.value)
