"""pyiceberg as a client walks through everything that the bridge offers."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
    UnauthorizedError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, ListType, LongType, NestedField, StringType, StructType, UUIDType

from contract_tests.conftest import Start
from contract_tests.strangers.openapi import watch
from contract_tests.worlds.bridge import Server, as_loaded, version_numbers
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import COMPATIBLE, ONE_WORLD, Bridge
from contract_tests.worlds.writer import rows

Place = tuple[str, ...]
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType(), required=False, doc="what it is called"),
    NestedField(3, "tags", ListType(4, StringType(), element_required=False), required=False),
    NestedField(5, "at", StructType(NestedField(6, "x", DoubleType(), required=False)), required=False),
)


class WatchedCatalog(RestCatalog):
    """pyiceberg's own client, with every answer held against the specification."""

    def _create_session(self) -> requests.Session:
        session = watch(super()._create_session())
        session.trust_env = False
        return session


def connect(server: Server, **properties: str) -> WatchedCatalog:
    return WatchedCatalog("bridge", uri=server.url, **properties)


@pytest.fixture
def catalog(bridge: Bridge) -> Iterator[WatchedCatalog]:
    options = bridge.root.options
    reads = {"s3.endpoint": options["aws_endpoint"], "s3.region": options["aws_region"]} if options else {}
    catalog = connect(bridge.server, warehouse="main", **reads)
    yield catalog
    catalog.close()


def with_rows(root: Root, catalog: RestCatalog, place: Place, name: str) -> Table:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    location = catalog.create_table((*place, name), schema).location()
    root.write(location, rows(3).cast(root.open(location).schema), mode="append")
    table: Table = catalog.load_table((*place, name))
    return table


class TestWalks:
    @pytest.mark.needs("child namespaces")
    def test_namespaces(self, catalog: RestCatalog, name: str) -> None:
        top, child = (f"{name} ü.%+",), (f"{name} ü.%+", "a b")
        catalog.create_namespace(top, {"owner": "me"})
        catalog.create_namespace(child)
        with pytest.raises(NamespaceAlreadyExistsError):
            catalog.create_namespace(top)
        assert top in catalog.list_namespaces()
        assert catalog.list_namespaces(top) == [child]
        assert catalog.namespace_exists(child)
        assert catalog.load_namespace_properties(top) == {"owner": "me"}
        summary = catalog.update_namespace_properties(top, removals={"owner"}, updates={"new": "1"})
        assert (summary.removed, summary.updated, summary.missing) == (["owner"], ["new"], [])
        with pytest.raises(NamespaceNotEmptyError):
            catalog.drop_namespace(top)
        catalog.drop_namespace(child)
        catalog.drop_namespace(top)
        assert not catalog.namespace_exists(top)
        with pytest.raises(NoSuchNamespaceError):
            catalog.list_tables(top)

    def test_a_table_from_birth_to_death(
        self, root: Root, catalog: RestCatalog, namespace: Place, name: str
    ) -> None:
        identifier = (*namespace, name)
        created = catalog.create_table(identifier, SCHEMA, properties={"owner": "me"})
        with pytest.raises(TableAlreadyExistsError):
            catalog.create_table(identifier, SCHEMA)
        assert content(catalog.create_table_if_not_exists(identifier, SCHEMA)) == as_loaded(content(created))
        assert identifier in catalog.list_tables(namespace)
        assert catalog.table_exists(identifier)
        loaded = catalog.load_table(identifier)
        assert content(loaded) == as_loaded(content(created))
        assert [field.name for field in loaded.schema().fields] == ["id", "name", "tags", "at"]
        assert [field.field_type.__class__ for field in loaded.schema().fields] == [
            field.field_type.__class__ for field in SCHEMA.fields
        ]
        assert loaded.properties["owner"] == "me"
        assert loaded.properties["table_type"] == "lance"
        catalog.drop_table(identifier)
        assert not catalog.table_exists(identifier)
        with pytest.raises(NoSuchTableError):
            catalog.load_table(identifier)
        with pytest.raises(NoSuchTableError):
            catalog.drop_table(identifier)
        registered = catalog.register_table(identifier, created.location())
        assert registered.metadata.table_uuid == created.metadata.table_uuid
        catalog.purge_table(identifier)
        assert not root.exists(created.location())

    @pytest.mark.needs("rename")
    def test_rename(self, catalog: RestCatalog, namespace: Place, name: str) -> None:
        uuid = catalog.create_table((*namespace, name), SCHEMA).metadata.table_uuid
        renamed = catalog.rename_table((*namespace, name), (*namespace, f"{name} new"))
        assert renamed.metadata.table_uuid == uuid
        assert not catalog.table_exists((*namespace, name))

    def test_properties(self, root: Root, catalog: RestCatalog, namespace: Place, name: str) -> None:
        table = catalog.create_table((*namespace, name), SCHEMA)
        with table.transaction() as transaction:
            transaction.set_properties({"a": "1", "b": "2"})
        assert table.properties["a"] == "1"
        table.transaction().remove_properties("a").commit_transaction()
        assert "a" not in table.properties
        assert catalog.load_table((*namespace, name)).properties["b"] == "2"
        assert table.metadata_location and root.exists(table.metadata_location.partition("#")[0])
        assert root.open(table.location()).version == 3

    def test_a_commit_on_a_table_that_was_made_again(
        self, catalog: RestCatalog, namespace: Place, name: str
    ) -> None:
        old = catalog.create_table((*namespace, name), SCHEMA)
        catalog.purge_table((*namespace, name))
        catalog.create_table((*namespace, name), SCHEMA)
        with pytest.raises(CommitFailedException, match=r"Requirement failed: .*UUID does not match"):
            old.transaction().set_properties({"a": "1"}).commit_transaction()

    def test_a_staged_table(self, catalog: RestCatalog, namespace: Place, name: str) -> None:
        with catalog.create_table_transaction((*namespace, name), SCHEMA) as transaction:
            transaction.set_properties({"a": "1"})
            assert not catalog.table_exists((*namespace, name))
        table = catalog.load_table((*namespace, name))
        assert table.properties["a"] == "1"
        assert [field.name for field in table.schema().fields] == ["id", "name", "tags", "at"]

    def test_history_and_refs(self, root: Root, catalog: RestCatalog, namespace: Place, name: str) -> None:
        table = with_rows(root, catalog, namespace, name)
        root.open(table.location()).tags.create("t", 1)
        table = catalog.load_table((*namespace, name))
        assert [entry.snapshot_id for entry in table.history()] == [1, 2]
        assert table.snapshot_by_name("t") == table.snapshot_by_id(1)
        current = table.current_snapshot()
        assert current and current.snapshot_id == 2
        assert table.refs()["main"].snapshot_id == 2
        refs = connect_refs(catalog)
        assert version_numbers(refs.load_table((*namespace, name)).snapshots()) == [1, 2]
        refs.close()

    def test_a_declared_table(self, bridge: Bridge, catalog: RestCatalog, namespace: Place, name: str) -> None:
        bridge.client.declare_table(namespace, name)
        table = catalog.load_table((*namespace, name))
        assert table.current_snapshot() is None
        assert list(table.schema().fields) == []
        assert catalog.table_exists((*namespace, name))

    def test_there_are_no_views(self, catalog: RestCatalog, namespace: Place) -> None:
        assert catalog.list_views(namespace) == []
        with pytest.raises(NotImplementedError):
            catalog.drop_view((*namespace, "v"))


def content(table: Table) -> dict[str, Any]:
    """The metadata of the table as JSON."""
    metadata: dict[str, Any] = json.loads(table.metadata.model_dump_json())
    return metadata


def connect_refs(catalog: RestCatalog) -> WatchedCatalog:
    return WatchedCatalog("bridge", uri=catalog.uri, warehouse="main", **{"snapshot-loading-mode": "refs"})


class TestRefusals:
    def test_partitions_and_orders(self, catalog: RestCatalog, namespace: Place, name: str) -> None:
        spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
        with pytest.raises(BadRequestError, match="partition"):
            catalog.create_table((*namespace, name), SCHEMA, partition_spec=spec)
        assert not catalog.table_exists((*namespace, name))

    @ONE_WORLD
    def test_rows(self, catalog: RestCatalog, namespace: Place, name: str) -> None:
        table = catalog.create_table((*namespace, name), SCHEMA)
        data = pa.Table.from_pylist([{"id": 1}], schema=table.schema().as_arrow())
        with pytest.raises(Exception, match=r"cannot write rows|has-no-Parquet-copy"):
            table.append(data)
        assert content(catalog.load_table((*namespace, name))) == as_loaded(content(table))

    def test_an_unknown_warehouse(self, bridge: Bridge) -> None:
        with pytest.raises(RESTError, match="nowhere"):
            connect(bridge.server, warehouse="nowhere")

    def test_a_token(self, start: Start, tmp_path: Any) -> None:
        server = start('[server]\ntoken = "abc"\n' + COMPATIBLE.configuration(tmp_path / "tables"))
        with pytest.raises(UnauthorizedError):
            connect(server)
        catalog = connect(server, token="abc")
        assert catalog.list_namespaces() == [("default",)]
        catalog.close()

    def test_a_uuid_column_is_made_or_refused(self, catalog: RestCatalog, namespace: Place, name: str) -> None:
        schema = Schema(NestedField(1, "u", UUIDType()))
        try:
            loaded = catalog.create_table((*namespace, name), schema).schema()
        except BadRequestError as refused:
            assert "uuid" in str(refused)
        else:
            assert isinstance(loaded.fields[0].field_type, UUIDType)


class TestScans:
    def test_rows_never_scan_as_empty(self, root: Root, catalog: RestCatalog, namespace: Place, name: str) -> None:
        table = with_rows(root, catalog, namespace, name)
        assert root.open(table.location()).count_rows() == 3
        for scan in (table.scan(), table.scan(snapshot_id=2), table.scan(limit=1), table.scan("id = 1")):
            with pytest.raises((ValueError, OSError)) as failure:
                scan.to_arrow()
            assert len(str(failure.value).replace("-", " ").split()) > 5

    @pytest.mark.needs("folders as tables")
    def test_nor_do_those_of_others(self, bridge: Bridge, catalog: RestCatalog, name: str) -> None:
        bridge.root.write(bridge.root.at(f"{name}.lance"), pa.table({"a": [1, 2]}))
        with pytest.raises((ValueError, OSError)):
            catalog.load_table(("default", name)).scan().to_arrow()
