"""Lance tables in a server that has its own ideas of places and versions, and tables that change hands."""

from pathlib import Path
from typing import Any

import lance
import pytest
import requests

from contract_tests.directory.staging import stage
from contract_tests.upstream.lance_catalog import (
    IMPL,
    MANAGED,
    SCHEMA,
    UpstreamCatalog,
    append,
    load,
    made,
    opened,
    versions,
)
from contract_tests.worlds.world import UpstreamWorld
from contract_tests.worlds.writer import rows
from irc_bridge.catalog.models import (
    Commit,
    Levels,
    NewTable,
)
from irc_bridge.errors import InvalidInput, TableAlreadyExists, TableVersionAlreadyExists
from irc_bridge.irc_client.server import IrcServer


class TestPlacesUsedBefore:
    @MANAGED
    def test_a_new_table_of_the_name_lies_elsewhere(
        self, catalog: UpstreamCatalog, table: Levels, managed_by: str
    ) -> None:
        location = made(catalog, table, managed_by)
        append(catalog, table)
        catalog.deregister_table(table)
        declared = catalog.create_table(table, NewTable({"managed_by": managed_by}))
        assert declared.location.startswith(f"{location}-")
        assert declared.versions == ()
        assert catalog.place_table((table[0], "other"), None) == location.removesuffix("t") + "other"

    def test_what_lies_there_is_not_a_managed_tables_own(
        self, upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels
    ) -> None:
        location = made(catalog, table)
        append(catalog, table)
        catalog.deregister_table(table)
        body = {"name": "t", "location": location, "schema": {"type": "struct", "fields": []}}
        body["properties"] = {"table_type": "LANCE", "managed_by": "IMPL"}
        tables = f"{upstream.url}/v1/namespaces/{table[0]}/tables"
        assert requests.post(tables, json=body, timeout=60).status_code == 200
        assert (load(catalog, table).versions, load(catalog, table).latest) == ((), None)
        assert catalog.list_table_versions(table).items == ()
        with pytest.raises(TableAlreadyExists):
            catalog.write_rows(table, rows(1), {}, overwrite=False)

    def test_a_chosen_place_with_a_table_in_it(self, catalog: UpstreamCatalog, table: Levels) -> None:
        location = made(catalog, table)
        with pytest.raises(InvalidInput, match="already"):
            catalog.create_table((table[0], "u"), NewTable({}, location=location))
        assert not catalog.table_exists((table[0], "u"))

    def test_a_purge_spares_the_table_that_came_after(
        self, upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = Path(upstream.warehouse or "", table[0], "chosen")
        catalog.create_table(table, NewTable(IMPL, location=str(place), schema=SCHEMA))
        drop = IrcServer.drop_table

        def dropped(self: IrcServer, table: Levels, purge: bool) -> None:
            drop(self, table, purge)
            (place / "_versions" / f"{2**64 - 2:020}.manifest").unlink()
            opened(upstream).create_table(table, NewTable(IMPL, location=str(place), schema=SCHEMA))

        with monkeypatch.context() as racing:
            racing.setattr(IrcServer, "drop_table", dropped)
            catalog.drop_table(table)
        assert versions(catalog, table) == [1]
        assert lance.dataset(str(place)).count_rows() == 0
        catalog.drop_table(table)
        assert not place.exists()


class TestSwitching:
    def test_the_catalog_takes_over_at_the_version_that_storage_has(
        self, catalog: UpstreamCatalog, table: Levels
    ) -> None:
        location = made(catalog, table, "storage")
        for number in range(2):
            lance.write_dataset(rows(1, number), location, mode="append")
        catalog.commit(table, lambda _: Commit(set_properties=IMPL))
        assert versions(catalog, table) == [1, 2, 3]
        append(catalog, table, 5)
        catalog.commit(table, lambda _: Commit(remove_properties=frozenset({"managed_by"})))
        lance.write_dataset(rows(1, 6), location, mode="append")
        assert versions(catalog, table) == [1, 2, 3, 4, 5]
        catalog.commit(table, lambda _: Commit(set_properties=IMPL))
        append(catalog, table, 7)
        assert sorted(lance.dataset(location).to_table()["id"].to_pylist()) == [0, 1, 5, 6, 7]

    @pytest.mark.parametrize("taken", [False, True])
    def test_a_version_by_its_file_that_comes_late(
        self, upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels, taken: bool
    ) -> None:
        """The writer saw the table before the catalog took over."""
        location = made(catalog, table, "storage")
        late = stage(location, 1).entry(table)
        other = opened(upstream)
        other.commit(table, lambda _: Commit(set_properties=IMPL))
        if taken:
            append(other, table, 2)
            with pytest.raises(TableVersionAlreadyExists):
                catalog.create_table_versions([late])
        else:
            catalog.create_table_versions([late])
        assert versions(other, table) == [1, 2]
        assert lance.dataset(location).to_table()["id"].to_pylist() == [2 if taken else 1]


@pytest.fixture
def headstrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server keeps tables where it likes and forgets all but the current snapshot."""
    create, load, commit = IrcServer.create_table, IrcServer.load_table, IrcServer.commit

    def forgetful(result: Any) -> Any:
        metadata = result["metadata"]
        current = metadata.get("current-snapshot-id")
        metadata["snapshots"] = [
            each for each in metadata.get("snapshots") or [] if each["snapshot-id"] == current
        ]
        return result

    def created(self: IrcServer, table: Levels, body: Any) -> Any:
        return forgetful(create(self, table, {key: each for key, each in body.items() if key != "location"}))

    def committed(self: IrcServer, table: Levels, change: Any) -> Any:
        if any(each["action"] in ("set-location", "remove-snapshots") for each in change["updates"]):
            raise InvalidInput("not here")
        return forgetful(commit(self, table, change))

    monkeypatch.setattr(IrcServer, "create_table", created)
    monkeypatch.setattr(IrcServer, "load_table", lambda *given: forgetful(load(*given)))
    monkeypatch.setattr(IrcServer, "commit", committed)


@pytest.mark.usefixtures("headstrong")
def test_a_server_that_chooses_the_place_and_forgets_versions(
    upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels, tmp_path: Path
) -> None:
    info = catalog.create_table(table, NewTable(IMPL, location=f"{tmp_path}/here", schema=SCHEMA))
    assert info.location == (tmp_path / "here").as_uri()
    for number in range(3):
        append(catalog, table, number)
    assert versions(opened(upstream), table) == [1, 2, 3, 4]
    catalog.commit(table, lambda _: Commit(set_tags={"two": 2}))
    catalog.commit(table, lambda _: Commit(remove_versions=frozenset({1, 3})))
    after = load(catalog, table)
    assert ([each.version for each in after.versions], after.tags) == ([2, 4], {"two": 2})
    assert not [key for key in after.properties if "location" in key]
