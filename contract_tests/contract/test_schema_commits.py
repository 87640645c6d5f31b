"""ALTER TABLE: Iceberg schema changes become Lance's, and rows survive them."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import BadRequestError, CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, StructType

from contract_tests.contract.test_commits import commit, set_properties
from contract_tests.worlds.bridge import Client, assert_error, assert_ok
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import COMPATIBLE, IRC, S3_WORLDS, VERSIONS, Bridge, _worlds

Place = tuple[str, ...]
MANAGED = _worlds(COMPATIBLE, VERSIONS[1], S3_WORLDS[0], S3_WORLDS[4], IRC)

DATA = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": ["a", None, "c"],
        "where": [{"x": 1.5, "y": None}, None, {"x": 2.5, "y": "north"}],
        "numbers": [[1], [], None],
        "vector": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2)),
        "items": [[{"a": 1}]] * 3,
        "seen": pa.array([1, 2, 3], pa.time32("s")),
        "blob": pa.array([b"a", b"b", None], pa.large_binary()),
    }
)
"""The last column is one that Iceberg cannot see."""
BLOB = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
DATA = DATA.cast(DATA.schema.set(DATA.schema.get_field_index("blob"), BLOB))


@pytest.fixture(params=["storage", "impl"])
def location(request: pytest.FixtureRequest, client: Client, root: Root, place: Place, name: str) -> str:
    made: str = client.declare_table(place, name)["metadata"]["location"]
    root.write(made, DATA, mode="create")
    assert_ok(commit(client, place, name, set_properties(managed_by=request.param)))
    return made


@pytest.fixture
def catalog(bridge: Bridge) -> Catalog:
    return load_catalog("bridge", type="rest", uri=bridge.server.url, warehouse="main")


@pytest.fixture
def table(catalog: Catalog, location: str, place: Place, name: str) -> Table:
    return catalog.load_table((*place, name))


def names(root: Root, location: str) -> list[str]:
    found: list[str] = root.open(location).schema.names
    return found


@MANAGED
class TestChanges:
    def test_everything_in_one_commit(self, table: Table, root: Root, location: str) -> None:
        before = root.open(location).version
        with table.update_schema() as update:
            update.add_column("score", DoubleType(), doc="of the last game")
            update.add_column("home", StructType(NestedField(100, "city", StringType())))
            update.add_column(("where", "z"), LongType())
            update.rename_column("name", "called")
            update.rename_column("where.x", "lon")
            update.delete_column("numbers")
            update.delete_column("where.y")
            update.update_column("id", doc="the key")
        lance = root.open(location)
        assert lance.version == before + 1
        assert lance.schema.names == ["id", "called", "where", "vector", "items", "seen", "blob", "score", "home"]
        rows = lance.to_table(columns=["id", "called", "where", "seen", "score", "home"])
        assert rows["called"].to_pylist() == DATA["name"].to_pylist()
        assert rows["seen"].to_pylist() == DATA["seen"].to_pylist()
        assert [file.readall() for file in lance.take_blobs("blob", indices=[0, 1])] == [b"a", b"b"]
        assert rows["where"].to_pylist() == [{"lon": 1.5, "z": None}, None, {"lon": 2.5, "z": None}]
        assert rows["score"].null_count == rows["home"].null_count == 3
        shown = table.refresh().schema()
        names = ["id", "called", "where", "vector", "items", "seen", "score", "home"]
        assert [field.name for field in shown.fields] == names
        assert (shown.find_field("id").doc, shown.find_field("score").doc) == ("the key", "of the last game")
        assert shown.find_field("where.lon").field_type == DoubleType()
        assert table.current_snapshot() and table.metadata.current_snapshot_id == before + 1

    def test_ids_stay(self, table: Table, root: Root, location: str) -> None:
        ids = {field.name: field.field_id for field in table.schema().fields}
        with table.update_schema() as update:
            update.rename_column("name", "called")
        again = {field.name: field.field_id for field in table.refresh().schema().fields}
        assert again == {("called" if name == "name" else name): each for name, each in ids.items()}
        with table.update_schema() as update:
            update.rename_column("called", "name")
        assert {field.name: field.field_id for field in table.refresh().schema().fields} == ids
        assert root.open(location).to_table(columns=["name"])["name"].to_pylist() == ["a", None, "c"]

    def test_a_column_of_a_name_that_was_dropped(self, table: Table, root: Root, location: str) -> None:
        with table.update_schema() as update:
            update.delete_column("name")
            update.add_column("name", LongType())
        assert root.open(location).to_table(columns=["name"])["name"].to_pylist() == [None] * 3

    def test_writers_go_on(self, table: Table, root: Root, location: str) -> None:
        with table.update_schema() as update:
            update.add_column("score", DoubleType())
        if table.properties["managed_by"] == "storage":
            root.write(location, DATA.append_column("score", [[0.5, 0.5, None]]), mode="append")
            assert root.open(location).count_rows("score = 0.5") == 2
            assert table.refresh().metadata.current_snapshot_id == root.open(location).version

    def test_optional(self, catalog: Catalog, client: Client, root: Root, place: Place, name: str) -> None:
        location = client.create_table(place, name)["metadata"]["location"]
        table = catalog.load_table((*place, name))
        with table.update_schema() as update:
            update.make_column_optional("id")
        assert not table.refresh().schema().find_field("id").required
        root.write(location, pa.table({"id": pa.array([None], pa.int64()), "name": ["x"]}), mode="append")
        assert root.open(location).count_rows() == 1


def widen(update: UpdateSchema) -> None:
    update.update_column("vector.element", DoubleType())


def reorder(update: UpdateSchema) -> None:
    update.move_first("name")


def in_the_middle(update: UpdateSchema) -> None:
    update.add_column("new", LongType())
    update.move_after("new", "id")


def in_a_list(update: UpdateSchema) -> None:
    update.add_column(("items", "b"), LongType())


def reserved(update: UpdateSchema) -> None:
    update.add_column("_rowid", LongType())


@MANAGED
class TestRefused:
    @pytest.mark.parametrize(
        ("change", "why"),
        [
            (widen, "vector"),
            (reorder, "order"),
            (in_the_middle, "order"),
            (in_a_list, "items"),
            (reserved, "_rowid"),
        ],
    )
    def test_what_lance_cannot_do(
        self,
        table: Table,
        root: Root,
        location: str,
        change: Callable[[UpdateSchema], None],
        why: str,
    ) -> None:
        before = root.open(location)
        with pytest.raises(BadRequestError, match=why), table.update_schema() as update:
            update.add_column("more", LongType())
            change(update)
        after = root.open(location)
        assert (after.version, after.schema) == (before.version, before.schema)

    def test_a_stale_one(self, catalog: Catalog, table: Table, place: Place, name: str) -> None:
        other = catalog.load_table((*place, name))
        with other.update_schema() as update:
            update.add_column("first", LongType())
            update.delete_column("name")
        with pytest.raises(CommitFailedException), table.update_schema() as update:
            update.add_column("second", LongType())
        assert "second" not in table.refresh().schema().column_names

    def test_of_a_declared_table(self, catalog: Catalog, client: Client, place: Place, name: str) -> None:
        client.declare_table(place, f"{name}_d")
        declared = catalog.load_table((*place, f"{name}_d"))
        with pytest.raises(BadRequestError, match="declared"), declared.update_schema() as update:
            update.add_column("a", LongType())


@MANAGED
def test_sent_again(client: Client, place: Place, name: str, location: str) -> None:
    """The id of the new column is taken by then."""
    metadata = client.metadata(place, name)
    field = {"id": metadata["last-column-id"] + 1, "name": "more", "type": "long", "required": False}
    schema = {**metadata["schemas"][0], "fields": [*metadata["schemas"][0]["fields"], field]}
    updates: list[dict[str, Any]] = [
        {"action": "add-schema", "schema": schema, "last-column-id": field["id"]},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    last = {"type": "assert-last-assigned-field-id", "last-assigned-field-id": metadata["last-column-id"]}
    for _ in range(2):
        answered = assert_ok(commit(client, place, name, *updates, requirements=[last]))
        assert answered["metadata"]["current-snapshot-id"] == metadata["current-snapshot-id"] + 1
    schema["fields"] = [*schema["fields"][:-1], {**field, "name": "other"}]
    response = commit(client, place, name, *updates, requirements=[last])
    assert_error(response, 409, "CommitFailedException", names="field id")
