import json

import lance
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, FloatType, ListType, LongType, NestedField, StringType

from contract_tests.engines.conftest import Connect
from contract_tests.engines.lake import ODD_NAMES, TABLES, Lake
from contract_tests.worlds.bridge import version_numbers

NEW = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "price", DoubleType(), required=False),
    NestedField(3, "tags", ListType(4, StringType(), element_required=False), required=False),
)


@pytest.fixture(scope="module")
def catalog(connect: Connect) -> Catalog:
    return load_catalog("bridge", **json.loads(connect("pyiceberg", "json")))


@pytest.fixture
def shop(catalog: Catalog, request: pytest.FixtureRequest) -> str:
    """A namespace of this test alone."""
    namespace = request.node.name
    catalog.create_namespace(namespace)
    return str(namespace)


def test_namespaces_are_listed_level_by_level(catalog: Catalog) -> None:
    assert {("default",), ("ns1",)} <= set(catalog.list_namespaces())
    assert catalog.list_namespaces("ns1") == [("ns1", "ns2")]
    assert catalog.list_namespaces(("ns1", "ns2")) == []
    assert catalog.load_namespace_properties("ns1")["owner"] == "tests"


def test_tables_are_listed(catalog: Catalog) -> None:
    assert sorted(catalog.list_tables("default")) == sorted(("default", name) for name in TABLES)
    assert catalog.list_tables(("ns1", "ns2")) == [("ns1", "ns2", "deep")]
    assert catalog.list_tables("ns1") == []


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_table_with_an_odd_name_loads(catalog: Catalog, name: str) -> None:
    table = catalog.load_table(("default", name))
    assert [field.name for field in table.schema().fields] == ["id", "name"]
    assert catalog.table_exists(("default", name))


def test_the_location_is_the_lance_root(catalog: Catalog, lake: Lake) -> None:
    location = catalog.load_table("default.people").location()
    assert lance.dataset(location).count_rows() == 3
    assert location.removeprefix("file://") == str(lake.location("people"))


def test_a_vector_is_a_list(catalog: Catalog) -> None:
    field = catalog.load_table("default.vectors").schema().find_field("emb")
    assert isinstance(field.field_type, ListType)
    assert field.field_type.element_type == FloatType()


def test_every_version_is_a_snapshot(catalog: Catalog) -> None:
    table = catalog.load_table("default.history")
    current = table.current_snapshot()
    assert current is not None and current.snapshot_id == 4
    assert version_numbers(table.snapshots()) == [1, 2, 3, 4]
    assert [entry.snapshot_id for entry in table.history()] == [1, 2, 3, 4]
    assert {name: ref.snapshot_id for name, ref in table.refs().items()} == {"main": 4, "first": 1}


def test_a_snapshot_names_the_schema_of_its_version(catalog: Catalog) -> None:
    table = catalog.load_table("default.history")
    # the number of the first version that has it
    assert table.schema().schema_id == 4
    assert [field.name for field in table.schema().fields] == ["id", "name", "double"]
    first = table.snapshot_by_id(1)
    assert first is not None and first.schema_id is not None
    assert [field.name for field in table.schemas()[first.schema_id].fields] == ["id", "name"]


def test_refs_only_leave_out_the_other_snapshots(connect: Connect) -> None:
    catalog = load_catalog("refs", **json.loads(connect("pyiceberg", "json")), **{"snapshot-loading-mode": "refs"})
    table = catalog.load_table("default.history")
    assert version_numbers(table.snapshots()) == [1, 4]


def test_properties_say_that_it_is_a_lance_table(catalog: Catalog) -> None:
    properties = catalog.load_table("default.people").properties
    assert (properties["table_type"], properties["managed_by"]) == ("lance", "storage")


def test_a_declared_table_has_no_snapshot(catalog: Catalog) -> None:
    table = catalog.load_table("default.declared")
    assert table.current_snapshot() is None
    assert table.schema().fields == ()


def test_a_broken_table_says_so_for_itself_alone(catalog: Catalog) -> None:
    with pytest.raises(Exception, match="broken"):
        catalog.load_table("default.broken")
    assert catalog.load_table("default.people").schema().fields


@pytest.mark.parametrize("name", ["people", "history"])
def test_a_scan_fails_with_the_reason(catalog: Catalog, name: str) -> None:
    table = catalog.load_table(f"default.{name}")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    with pytest.raises(FileNotFoundError, match=f"Lance-version-{snapshot.snapshot_id}-has-no-Parquet-copy"):
        table.scan().to_arrow()


def test_create_makes_an_empty_lance_table(catalog: Catalog, shop: str) -> None:
    table = catalog.create_table((shop, "t"), NEW, properties={"color": "blue"})
    made = lance.dataset(table.location())
    expected = {"id": pa.int64(), "price": pa.float64(), "tags": pa.list_(pa.string())}
    assert {field.name: field.type for field in made.schema} == expected
    assert made.count_rows() == 0
    assert made.metadata["color"] == "blue"
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table((shop, "t"), NEW)


def test_create_in_a_transaction(catalog: Catalog, shop: str) -> None:
    with catalog.create_table_transaction((shop, "t"), NEW) as transaction:
        transaction.set_properties(color="blue")
    assert catalog.load_table((shop, "t")).properties["color"] == "blue"


def test_a_property_commit_is_a_lance_version(catalog: Catalog, shop: str) -> None:
    table = catalog.create_table((shop, "t"), NEW, properties={"old": "1"})
    before = lance.dataset(table.location()).version
    with table.transaction() as transaction:
        transaction.set_properties(color="blue")
        transaction.remove_properties("old")
    made = lance.dataset(table.location())
    assert made.version > before
    assert made.metadata["color"] == "blue" and "old" not in made.metadata
    assert table.refresh().properties["color"] == "blue"


def test_another_process_commits_and_refresh_shows_it(catalog: Catalog, shop: str) -> None:
    table = catalog.create_table((shop, "t"), Schema(NestedField(1, "id", LongType(), required=False)))
    made = lance.write_dataset(pa.table({"id": [1, 2]}), table.location(), mode="append")
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None and snapshot.snapshot_id == made.version
    made.tags.create("release", made.version)
    assert table.refresh().refs()["release"].snapshot_id == made.version


def test_rename(catalog: Catalog, shop: str) -> None:
    location = catalog.create_table((shop, "t"), NEW).location()
    assert catalog.rename_table((shop, "t"), (shop, "u")).location() == location
    assert catalog.list_tables(shop) == [(shop, "u")]
    with pytest.raises(NoSuchTableError):
        catalog.load_table((shop, "t"))


def test_drop_keeps_the_data_and_register_brings_it_back(catalog: Catalog, shop: str) -> None:
    location = catalog.create_table((shop, "t"), NEW).location()
    catalog.drop_table((shop, "t"))
    assert catalog.list_tables(shop) == []
    assert lance.dataset(location).count_rows() == 0
    assert catalog.register_table((shop, "back"), location).location() == location
    assert catalog.list_tables(shop) == [(shop, "back")]


def test_purge_hides_the_name_and_keeps_the_data(catalog: Catalog, shop: str) -> None:
    location = catalog.create_table((shop, "t"), NEW).location()
    catalog.purge_table((shop, "t"))
    assert not catalog.table_exists((shop, "t"))
    assert lance.dataset(location).count_rows() == 0
    assert catalog.register_table((shop, "back"), location).location() == location


def test_a_namespace_is_dropped_when_it_is_empty(catalog: Catalog, shop: str) -> None:
    assert catalog.namespace_exists(shop)
    catalog.drop_namespace(shop)
    assert not catalog.namespace_exists(shop)
