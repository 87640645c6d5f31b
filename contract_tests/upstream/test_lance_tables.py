"""Lance tables in a server that never heard of Lance: what is left when somebody dies or answers are lost."""

from collections.abc import Callable, Iterator
from typing import Any

import lance
import pytest
import requests

from contract_tests.directory.staging import stage
from contract_tests.upstream.lance_catalog import (
    COLUMN,
    MANAGED,
    Killed,
    UpstreamCatalog,
    append,
    files,
    killed,
    load,
    made,
    opened,
    versions,
)
from contract_tests.worlds.world import UpstreamWorld
from contract_tests.worlds.writer import folder_of, rows
from irc_bridge.backends.upstream import version_commit
from irc_bridge.backends.upstream.server_versions import ServerVersions
from irc_bridge.catalog.models import (
    Commit,
    History,
    Levels,
    NewVersion,
    TableInfo,
    Unchanged,
)
from irc_bridge.catalog.ports import Decide
from irc_bridge.errors import (
    CommitFailed,
    CommitStateUnknown,
    InvalidInput,
    TableNotFound,
    TableVersionAlreadyExists,
)
from irc_bridge.irc_client.server import IrcServer
from irc_bridge.lance_catalog.versions import FileVersions
from irc_bridge.lance_store.tables import LanceTables


class TestDying:
    def test_after_the_commit_the_next_look_finishes_it(
        self, upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        location = made(catalog, table)
        asked = stage(location, 7).entry(table)
        with monkeypatch.context() as dying, pytest.raises(Killed):
            dying.setattr(version_commit, "finish", killed)
            catalog.create_table_versions([asked])
        assert lance.dataset(location).version == 1
        other = opened(upstream)
        assert versions(other, table) == [1, 2]
        assert lance.dataset(location).to_table()["id"].to_pylist() == [7]
        assert other.was_made(asked)
        assert not [each for each in files(location) if "manifest-" in each]

    def test_a_schema_commit_too_and_the_same_again_is_known(
        self, catalog: UpstreamCatalog, table: Levels, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        location = made(catalog, table)
        change = Commit(schema=COLUMN, set_properties={"a": "1"}, identity="this-one")
        with monkeypatch.context() as dying, pytest.raises(Killed):
            dying.setattr(version_commit, "finish", killed)
            catalog.commit(table, lambda _: change)
        info = load(catalog, table)
        assert (info.properties["a"], info.properties["irc-bridge.commits"]) == ("1", "this-one")
        assert lance.dataset(location).schema.names == ["id", "name", "more"]

    @MANAGED
    def test_between_the_name_and_the_first_version(
        self, catalog: UpstreamCatalog, table: Levels, managed_by: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keeper = ServerVersions if managed_by == "impl" else FileVersions
        with monkeypatch.context() as dying, pytest.raises(Killed):
            dying.setattr(keeper, "make", killed)
            made(catalog, table, managed_by)
        info = load(catalog, table)
        assert (info.versions, info.managed_by) == ((), managed_by)
        catalog.write_rows(table, rows(3), {}, overwrite=False)
        assert lance.dataset(info.location).count_rows() == 3
        assert versions(catalog, table) == [1]

    def test_after_a_purge_took_the_name(
        self, catalog: UpstreamCatalog, table: Levels, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        location = made(catalog, table)
        with monkeypatch.context() as dying, pytest.raises(Killed):
            dying.setattr("irc_bridge.lance_store.table_files.TableFiles.remove", killed)
            catalog.drop_table(table)
        assert not catalog.table_exists(table)
        assert files(location)
        again = made(catalog, table)
        assert again != location
        assert versions(catalog, table) == [1]


class TestLostAnswers:
    @MANAGED
    @pytest.mark.parametrize("arrives", [True, False])
    def test_one_look_tells(
        self,
        catalog: UpstreamCatalog,
        table: Levels,
        managed_by: str,
        arrives: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        made(catalog, table, managed_by)
        commit = IrcServer.commit

        def lost(self: IrcServer, table: Levels, change: Any) -> Any:
            if arrives:
                commit(self, table, change)
            raise CommitStateUnknown("lost")

        monkeypatch.setattr(IrcServer, "commit", lost)
        change = Commit(set_properties={"a": "1"})
        if arrives:
            catalog.commit(table, lambda _: change)
        else:
            with pytest.raises(CommitStateUnknown):
                catalog.commit(table, lambda _: change)
        assert load(catalog, table).properties.get("a") == ("1" if arrives else None)

    def test_of_a_version(self, catalog: UpstreamCatalog, table: Levels, monkeypatch: pytest.MonkeyPatch) -> None:
        location = made(catalog, table)
        commit = IrcServer.commit

        def lost(self: IrcServer, table: Levels, change: Any) -> Any:
            commit(self, table, change)
            raise CommitStateUnknown("lost")

        asked, late = stage(location, 7).entry(table), stage(location, 8).entry(table)
        with monkeypatch.context() as losing:
            losing.setattr(IrcServer, "commit", lost)
            (record,) = catalog.create_table_versions([asked])
        assert record.version == 2
        assert catalog.create_table_versions([asked]) == (record,)
        with pytest.raises(TableVersionAlreadyExists):
            catalog.create_table_versions([late])


@pytest.fixture
def unopened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    with monkeypatch.context() as closing:
        yield lambda: closing.setattr(LanceTables, "open", killed)


@MANAGED
def test_what_did_not_change_is_not_opened(
    catalog: UpstreamCatalog, table: Levels, managed_by: str, unopened: Callable[[], None]
) -> None:
    location = made(catalog, table, managed_by)
    append(catalog, table)
    info = load(catalog, table)
    while info.token.storage is None:  # type: ignore[attr-defined]  # a change at this moment could go unseen
        info = load(catalog, table)
    unopened()
    assert catalog.load_table(table, known=info.token) == Unchanged(info.token)
    assert catalog.same_files(info.token)
    (folder_of(location) / "_refs" / "tags").mkdir(parents=True)
    (folder_of(location) / "_refs" / "tags" / "x.json").write_text("{}")
    assert not catalog.same_files(info.token)
    with pytest.raises(Killed):
        catalog.load_table(table, known=info.token)


def making_of(new: NewVersion) -> Decide:
    return lambda _: Commit(new_version=new)


class TestTogether:
    def test_all_or_none(self, catalog: UpstreamCatalog, table: Levels) -> None:
        names = [(table[0], name) for name in "ab"]
        asked = {each: stage(made(catalog, each), 1).entry(each) for each in names}
        late = stage(load(catalog, names[1]).location, 2).entry(names[1])
        catalog.commit_together({each: making_of(asked[each]) for each in names})
        assert [versions(catalog, each) for each in names] == [[1, 2], [1, 2]]
        next_one = stage(load(catalog, names[0]).location, 3).entry(names[0])

        def decide(info: TableInfo) -> Commit:
            if info.latest and info.latest.version >= late.version:
                raise CommitFailed("Requirement failed: too late")
            return Commit(new_version=late)

        with pytest.raises(CommitFailed, match="too late"):
            catalog.commit_together({names[0]: lambda _: Commit(new_version=next_one), names[1]: decide})
        assert [versions(catalog, each) for each in names] == [[1, 2], [1, 2]]

    @pytest.mark.parametrize("stale", [False, True])
    def test_beside_an_iceberg_table(
        self, upstream: UpstreamWorld, catalog: UpstreamCatalog, table: Levels, stale: bool
    ) -> None:
        made(catalog, table)
        body = {"name": "ice", "schema": {"type": "struct", "fields": []}}
        tables = f"{upstream.url}/v1/namespaces/{table[0]}/tables"
        uuid = requests.post(tables, json=body, timeout=60).json()["metadata"]["table-uuid"]
        other = {
            "identifier": {"namespace": [table[0]], "name": "ice"},
            "requirements": [{"type": "assert-table-uuid", "uuid": "0" * 8 + uuid[8:] if stale else uuid}],
            "updates": [{"action": "set-properties", "updates": {"a": "1"}}],
        }
        change = {table: lambda _: Commit(schema=COLUMN)}
        if stale:
            with pytest.raises(CommitFailed):
                catalog.commit_mixed(change, [other], History.HEADS)
        else:
            catalog.commit_mixed(change, [other], History.HEADS)
        assert versions(catalog, table) == ([1] if stale else [1, 2])
        ice = requests.get(f"{tables}/ice", timeout=60).json()["metadata"]["properties"]
        assert ("a" in ice) is not stale
        assert not [each for each in files(load(catalog, table).location) if "manifest-" in each]
        with pytest.raises(TableNotFound, match="Iceberg table"):
            catalog.load_table((table[0], "ice"))

    def test_a_table_whose_storage_decides_takes_no_part(self, catalog: UpstreamCatalog, table: Levels) -> None:
        made(catalog, table, "storage")
        made(catalog, (table[0], "u"))
        change = {each: lambda _: Commit(schema=COLUMN) for each in ((table[0], "u"), table)}
        with pytest.raises(InvalidInput, match="managed_by=impl"):
            catalog.commit_together(change)
        assert versions(catalog, (table[0], "u")) == [1]


def test_clients_that_are_passed_through(upstream: UpstreamWorld, table: Levels) -> None:
    heard: list[str | None] = []
    catalog = opened(upstream, pass_through=True)
    made(opened(upstream), table)
    send = requests.Session.request

    def listening(self: requests.Session, method: str, url: str, **more: Any) -> Any:
        heard.append(more["headers"].get("authorization"))
        return send(self, method, url, **more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(requests.Session, "request", listening)
        for who in ("Bearer a", "Bearer b", "Bearer a", None):
            assert catalog.acting_for(who).table_exists(table)
    # each asks for the configuration once, and for the table
    assert heard == ["Bearer a", "Bearer a", "Bearer b", "Bearer b", "Bearer a", None, None]
