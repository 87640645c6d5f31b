"""No schema change is lost: who changes a schema that is not the current one any more is told so."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, StringType

from contract_tests.contract.test_commits import commit, set_properties
from contract_tests.worlds.bridge import Client, assert_error, assert_ok, table_path, versions_in
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import COMPATIBLE, IRC, S3_WORLDS, VERSIONS, Bridge, World, _worlds
from contract_tests.worlds.writer import rows

Place = tuple[str, ...]
pytestmark = _worlds(COMPATIBLE, VERSIONS[1], S3_WORLDS[0], IRC)

CHANGES: dict[str, Callable[[Table], None]] = {
    "add": lambda table: table.update_schema().add_column("note", StringType()).commit(),
    "rename": lambda table: table.update_schema().rename_column("name", "called").commit(),
    "drop": lambda table: table.update_schema().delete_column("name").commit(),
    "document": lambda table: table.update_schema().update_column("name", doc="what it is called").commit(),
}


@pytest.fixture
def catalog(bridge: Bridge) -> Catalog:
    return load_catalog("bridge", type="rest", uri=bridge.server.url, warehouse="main")


@pytest.fixture(params=["storage", "impl"])
def location(request: pytest.FixtureRequest, client: Client, place: Place, name: str) -> str:
    made = client.create_table(place, name, properties={"managed_by": request.param})["metadata"]
    return str(made["location"])


def columns(client: Client, place: Place, name: str) -> list[str]:
    return [field["name"] for field in client.metadata(place, name)["schemas"][0]["fields"]]


@pytest.mark.usefixtures("location")
class TestRaces:
    @pytest.mark.parametrize(
        ("first", "second"), [("add", "rename"), ("rename", "drop"), ("drop", "document"), ("document", "add")]
    )
    def test_of_two_who_saw_the_same_schema_one_wins(
        self, catalog: Catalog, client: Client, place: Place, name: str, first: str, second: str
    ) -> None:
        one, other = (catalog.load_table((*place, name)) for _ in range(2))
        CHANGES[first](one)
        after = client.metadata(place, name)
        with pytest.raises(CommitFailedException, match="Requirement failed: current schema changed"):
            CHANGES[second](other)
        assert client.metadata(place, name) == after

    def test_the_same_change_of_the_same_schema_is_a_repeat(
        self, catalog: Catalog, client: Client, place: Place, name: str
    ) -> None:
        """Nobody can tell it from a commit that is sent again because its answer was lost."""
        one, other, late = (catalog.load_table((*place, name)) for _ in range(3))
        CHANGES["drop"](one)
        after = client.metadata(place, name)
        CHANGES["drop"](other)
        assert client.metadata(place, name) == after
        one.refresh()
        CHANGES["add"](one)
        with pytest.raises(CommitFailedException):
            CHANGES["document"](late)

    def test_prices_do_not_become_notes(
        self, catalog: Catalog, client: Client, root: Root, place: Place, name: str
    ) -> None:
        one, stale = (catalog.load_table((*place, name)) for _ in range(2))
        one.update_schema().add_column("price", DoubleType()).commit()
        location = client.metadata(place, name)["location"]
        prices = pa.table({"id": [1], "name": ["a"], "price": [9.5]}, schema=root.open(location).schema)
        if client.metadata(place, name)["properties"]["managed_by"] == "storage":
            root.write(location, prices, mode="append")
        with pytest.raises(CommitFailedException):
            stale.update_schema().add_column("note", StringType()).commit()
        assert columns(client, place, name) == ["id", "name", "price"]
        stale.refresh()
        stale.update_schema().add_column("note", StringType()).commit()
        assert columns(client, place, name) == ["id", "name", "price", "note"]

    def test_a_client_that_just_created_the_table_goes_on(
        self, catalog: Catalog, client: Client, place: Place, name: str
    ) -> None:
        schema = catalog.load_table((*place, name)).schema()
        made = catalog.create_table((*place, f"{name}_2"), schema)
        held = catalog.load_table((*place, f"{name}_2"))
        made.update_schema().add_column("price", DoubleType()).commit()
        assert columns(client, place, f"{name}_2") == ["id", "name", "price"]
        with pytest.raises(CommitFailedException):
            held.update_schema().add_column("note", StringType()).commit()

    def test_a_client_that_saw_a_declared_table_does_not(
        self, client: Client, root: Root, place: Place, name: str
    ) -> None:
        declared = client.declare_table(place, f"{name}_2")["metadata"]
        root.write(declared["location"], rows(3))
        field = {"id": 1, "name": "note", "type": "string", "required": False}
        answer = commit(
            client,
            place,
            f"{name}_2",
            {"action": "add-schema", "schema": {"type": "struct", "schema-id": 1, "fields": [field]}},
            {"action": "set-current-schema", "schema-id": -1},
            requirements=[
                {"type": "assert-current-schema-id", "current-schema-id": declared["current-schema-id"]}
            ],
        )
        assert_error(answer, 409, "CommitFailedException", names="Requirement failed: current schema changed")
        assert columns(client, place, f"{name}_2") == ["id", "name"]


class TestNumbers:
    def test_a_schema_has_the_number_of_its_first_version(
        self, client: Client, root: Root, place: Place, name: str
    ) -> None:
        location = client.create_table(place, name)["metadata"]["location"]
        root.write(location, rows(1).cast(root.open(location).schema), mode="append")
        assert client.metadata(place, name)["current-schema-id"] == 1
        root.open(location).add_columns({"twice": "id * 2"})
        root.open(location).alter_columns({"path": "name", "name": "called"})
        root.open(location).alter_columns({"path": "called", "name": "name"})
        metadata = client.metadata(place, name)
        assert metadata["current-schema-id"] == 3
        assert [each["schema-id"] for each in versions_in(metadata)] == [1, 1, 3, 4, 3]
        assert len({schema["schema-id"] for schema in metadata["schemas"]}) == len(metadata["schemas"]) == 3

    @pytest.mark.parametrize("tagged", [[], [1], [4], [1, 4]])
    def test_both_lists_say_the_same(
        self, bridge: Bridge, world: World, place: Place, name: str, tagged: list[int]
    ) -> None:
        """Also those of a server that never saw the table before."""
        location = bridge.client.create_table(place, name)["metadata"]["location"]
        table = bridge.root.open(location)
        for change in ({"b": "id"}, {"c": "id"}, {"d": "id"}):
            table.add_columns(change)
        table.drop_columns(["d"])
        for version in tagged:
            table.tags.create(f"t{version}", version)
        with world.start_another(bridge) as other:
            refs = other.client.metadata(place, name, snapshots="refs")
        full = bridge.client.metadata(place, name)
        assert refs["current-schema-id"] == full["current-schema-id"] == 3
        of_versions = {each["snapshot-id"]: each["schema-id"] for each in versions_in(full)}
        assert of_versions == {1: 1, 2: 2, 3: 3, 4: 4, 5: 3}
        assert {each["snapshot-id"]: each["schema-id"] for each in versions_in(refs)} == {
            version: of_versions[version] for version in {*tagged, 5}
        }

    def test_numbers_follow_what_is_left_after_a_native_cleanup(
        self, client: Client, root: Root, place: Place, name: str
    ) -> None:
        location = client.create_table(place, name)["metadata"]["location"]
        root.open(location).add_columns({"b": "id"})
        for _ in range(2):
            root.write(location, root.open(location).to_table(), mode="append")
        for mode in ("all", "refs"):
            assert client.metadata(place, name, snapshots=mode)["current-schema-id"] == 2
        root.open(location).cleanup_old_versions(retain_versions=1)
        for mode in ("refs", "all"):
            assert client.metadata(place, name, snapshots=mode)["current-schema-id"] == 4

    def test_by_the_letter_of_the_seed(
        self, bridge: Bridge, world: World, place: Place, name: str, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        location = bridge.client.create_table(place, name)["metadata"]["location"]
        bridge.root.open(location).add_columns({"b": "id"})
        file = tmp_path_factory.mktemp("letter") / "irc-bridge.toml"
        file.write_text(world.configuration(bridge.root, 'schema_ids = "always-1"\n'))
        with world.server(file) as server, server.client() as client:
            metadata = client.metadata(place, name)
            assert metadata["current-schema-id"] == 1
            assert {schema["schema-id"]: len(schema["fields"]) for schema in metadata["schemas"]} == {1: 3, 2: 2}
            assert [each["schema-id"] for each in versions_in(metadata)] == [2, 1]
            assert client.create_table(place, f"{name}_2")["metadata"]["current-schema-id"] == 1


class TestOrder:
    """Requirements are judged before anything else."""

    def test_of_a_table_that_is_there(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, name)
        for update in ({"action": "add-snapshot", "snapshot": SNAPSHOT}, {"action": "assign-uuid", "uuid": UUID}):
            answer = commit(client, place, name, update, requirements=[{"type": "assert-create"}])
            assert_error(answer, 409, names="table already exists")

    def test_of_a_change_that_could_not_be_made(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, name)
        for update in (
            {"action": "remove-snapshots", "snapshot-ids": [1]},
            {"action": "set-location", "location": "file:///elsewhere"},
            {"action": "add-snapshot", "snapshot": SNAPSHOT},
            set_properties(**{"gc.enabled": "true"}),
        ):
            stale = {"type": "assert-current-schema-id", "current-schema-id": 7}
            answer = commit(client, place, name, update, requirements=[stale])
            assert_error(answer, 409, "CommitFailedException", names="Requirement failed: current schema changed")

    @pytest.mark.parametrize("requirements", [None, []])
    def test_none_are_none(self, client: Client, place: Place, name: str, requirements: Any) -> None:
        client.create_table(place, name)
        body = {"requirements": requirements, "updates": [set_properties(a="1")]}
        answered = assert_ok(client.post(table_path(place, name), json=body))
        assert answered["metadata"]["properties"]["a"] == "1"


class TestFormatVersion:
    @pytest.mark.parametrize("version", ["1", "3"])
    def test_another_one_is_refused(self, client: Client, place: Place, name: str, version: str) -> None:
        body = {"name": name, "schema": SCHEMA, "properties": {"table_type": "lance", "format-version": version}}
        refused = client.post(f"namespaces/{place[0]}/tables", json=body) if len(place) == 1 else None
        assert refused is not None
        assert_error(refused, 400, "BadRequestException", names="format-version")
        assert name not in client.tables(place)


UUID = "0c0d0e0f-0000-0000-0000-000000000000"
SNAPSHOT = {
    "snapshot-id": 5,
    "timestamp-ms": 1,
    "sequence-number": 5,
    "manifest-list": "x",
    "summary": {"operation": "append"},
}
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
