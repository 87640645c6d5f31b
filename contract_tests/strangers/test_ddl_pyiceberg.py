"""pyiceberg changes schemas of Lance tables as it does those of the reference server's tables."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import (
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from contract_tests.strangers.ddl import REFERENCE, Place, Results, bridged, require_same, result, steps

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True, doc="the key"),
    NestedField(2, "name", StringType()),
    NestedField(3, "place", StructType(NestedField(4, "x", DoubleType()), NestedField(5, "y", DoubleType()))),
    NestedField(6, "tags", ListType(7, StringType(), element_required=False)),
    NestedField(8, "small", IntegerType()),
)
PARTITIONED = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "bucket"))


@dataclass(frozen=True)
class Session:
    catalog: Catalog
    place: Place

    def named(self, name: str = "t") -> tuple[str, str]:
        return (self.place.namespace, name)

    def create(self, name: str = "t", **more: Any) -> Table:
        properties = {**self.place.properties, **more.pop("properties", {})}
        return self.catalog.create_table(
            self.named(name), more.pop("schema", SCHEMA), properties=properties, **more
        )

    def create_in_transaction(self) -> None:
        name, properties = self.named(), self.place.properties
        with self.catalog.create_table_transaction(name, SCHEMA, properties=properties) as transaction:
            with transaction.update_schema() as update:
                update.add_column("more", StringType())
            transaction.set_properties(color="blue")

    def table(self, name: str = "t") -> Table:
        return self.catalog.load_table(self.named(name))

    def update(self, change: Callable[[Any], Any]) -> None:
        with self.table().update_schema() as update:
            change(update)

    def change(self, name: str, change: Callable[[Any], Any]) -> None:
        with self.table(name).update_schema(allow_incompatible_changes=True) as update:
            change(update)

    def shown(self) -> list[Any]:
        if not self.catalog.namespace_exists(self.place.namespace):
            return []
        tables = sorted(self.catalog.list_tables(self.place.namespace))
        return [(name, schema_of(self.table(name))) for _, name in tables]

    def properties(self, *keys: str) -> dict[str, str]:
        return {key: value for key, value in self.table().properties.items() if key in keys}


def schema_of(table: Table) -> Any:
    """Without ids of fields: other catalogs may give others."""
    return [without_ids(field) for field in table.schema().fields]


def without_ids(field: NestedField) -> Any:
    inner = getattr(field.field_type, "fields", ())
    type_ = [without_ids(each) for each in inner] if inner else str(field.field_type)
    return (field.name, type_, field.required, field.doc)


Act = Callable[[Session], Any]
STEPS: dict[str, Act] = {
    "create the namespace": lambda s: s.catalog.create_namespace(s.place.namespace, {"color": "blue"}),
    "create it again": lambda s: s.catalog.create_namespace(s.place.namespace),
    "create it if it is not there": lambda s: s.catalog.create_namespace_if_not_exists(s.place.namespace),
    "set its properties": lambda s: s.catalog.update_namespace_properties(
        s.place.namespace, {"color"}, {"size": "big"}
    ),
    "create": lambda s: s.create(properties={"color": "blue"}),
    "create again": lambda s: s.create(),
    "create if not there": lambda s: s.catalog.create_table_if_not_exists(s.named(), SCHEMA),
    "create in a namespace that is not there": lambda s: s.catalog.create_table((s.place.nowhere, "t"), SCHEMA),
    "add a column": lambda s: s.update(lambda u: u.add_column("score", DoubleType(), doc="of the game")),
    "add two columns": lambda s: s.update(
        lambda u: u.add_column("a", StringType()).add_column("b", ListType(1, LongType(), element_required=False))
    ),
    "add a field of a struct": lambda s: s.update(lambda u: u.add_column(("place", "z"), DoubleType())),
    "add a struct": lambda s: s.update(
        lambda u: u.add_column("more", StructType(NestedField(1, "m", StringType())))
    ),
    "add a column that is there": lambda s: s.update(lambda u: u.add_column("score", StringType())),
    "rename": lambda s: s.update(lambda u: u.rename_column("name", "label")),
    "rename a field of a struct": lambda s: s.update(lambda u: u.rename_column("place.x", "lon")),
    "rename to a name that is there": lambda s: s.update(lambda u: u.rename_column("a", "label")),
    "rename what is not there": lambda s: s.update(lambda u: u.rename_column("nothing", "b2")),
    "drop a column": lambda s: s.update(lambda u: u.delete_column("score")),
    "drop a field of a struct": lambda s: s.update(lambda u: u.delete_column("place.y")),
    "drop what is not there": lambda s: s.update(lambda u: u.delete_column("nothing")),
    "add what was dropped": lambda s: s.update(lambda u: u.add_column("score", LongType())),
    "drop NOT NULL": lambda s: s.update(lambda u: u.make_column_optional("id")),
    "set NOT NULL": lambda s: s.update(lambda u: u.update_column("id", required=True)),
    "comment": lambda s: s.update(lambda u: u.update_column("label", doc="what it is called")),
    "several changes": lambda s: s.update(
        lambda u: u.rename_column("a", "first").delete_column("b").add_column("last", StringType())
    ),
    "set a property": lambda s: s.table().transaction().set_properties(size="big").commit_transaction(),
    "remove a property": lambda s: s.table().transaction().remove_properties("color").commit_transaction(),
    "rename the table": lambda s: s.catalog.rename_table(s.named(), s.named("u")),
    "rename what is gone": lambda s: s.catalog.rename_table(s.named(), s.named("v")),
    "create beside it": lambda s: s.create(),
    "rename over another": lambda s: s.catalog.rename_table(s.named("u"), s.named()),
    "rename into a namespace that is not there": lambda s: s.catalog.rename_table(
        s.named(), (f"neither_{s.place.nowhere}", "v")
    ),
    "drop the namespace": lambda s: s.catalog.drop_namespace(s.place.namespace),
    "drop": lambda s: s.catalog.drop_table(s.named("u")),
    "drop again": lambda s: s.catalog.drop_table(s.named("u")),
    "purge": lambda s: s.catalog.purge_table(s.named()),
    "load what is gone": lambda s: s.table(),
    "create in a transaction": lambda s: s.create_in_transaction(),
    "drop what came of it": lambda s: s.catalog.drop_table(s.named()),
    "drop the empty namespace": lambda s: s.catalog.drop_namespace(s.place.namespace),
    "drop the namespace that is gone": lambda s: s.catalog.drop_namespace(s.place.namespace),
}
LISTS = "lies inside a list or a map cannot be changed"
IN_ORDER = "keeps fields in the order in which they were made"
REFUSED = {"create in a namespace that is not there": "NoSuchNamespaceError"}
DENIED: dict[str, tuple[Act, str]] = {
    "widen a type": (
        lambda s: s.change("d", lambda u: u.update_column("small", field_type=LongType())),
        "small: int cannot become long",
    ),
    "move to the front": (lambda s: s.change("d", lambda u: u.move_first("name")), IN_ORDER),
    "move behind": (lambda s: s.change("d", lambda u: u.move_after("id", "name")), IN_ORDER),
    "a required column": (
        lambda s: s.change("d", lambda u: u.add_column("r", StringType(), required=True)),
        "a new field must be optional",
    ),
    "an optional column made required": (
        lambda s: s.change("d", lambda u: u.update_column("name", required=True)),
        "required",
    ),
    "a field in a list": (
        lambda s: s.change("d", lambda u: u.add_column(("list", "element", "z"), DoubleType())),
        LISTS,
    ),
    "partitions": (lambda s: s.create("p", partition_spec=PARTITIONED), "neither partitioned nor sorted"),
    "a field of a partition spec": (
        lambda s: s.table("d").update_spec().add_field("id", BucketTransform(4), "b").commit(),
        "add-spec",
    ),
    "a map with structs changed": (
        lambda s: s.change("d", lambda u: u.add_column(("map", "value", "z"), DoubleType())),
        LISTS,
    ),
    "format version 3": (
        lambda s: s.create("p", properties={"format-version": "3"}),
        "format-version cannot be 3",
    ),
}
DENIED_SCHEMA = Schema(
    *SCHEMA.fields,
    NestedField(
        9,
        "list",
        ListType(10, StructType(NestedField(11, "e", StringType(), required=False)), element_required=False),
    ),
    NestedField(
        12,
        "map",
        MapType(13, StringType(), 14, StructType(NestedField(15, "v", StringType())), value_required=False),
    ),
)


@pytest.fixture(scope="module")
def sessions(places: Mapping[str, Place]) -> dict[str, Session]:
    return {
        name: Session(load_catalog(name, type="rest", uri=place.uri, warehouse=place.warehouse), place)
        for name, place in places.items()
    }


@pytest.fixture(scope="module")
def results(sessions: dict[str, Session]) -> Results:
    def kind(error: Exception) -> str:
        return type(error).__name__

    def run(session: Session) -> dict[str, Any]:
        return {step: result(lambda: act(session), session.shown, kind) for step, act in STEPS.items()}  # noqa: B023

    return {name: run(session) for name, session in sessions.items()}


@bridged()
@steps(list(STEPS))
def test_the_same_as_on_the_reference_server(results: Results, place: str, step: str) -> None:
    require_same(results, place, step, REFUSED)


@bridged()
@pytest.mark.parametrize("what", DENIED)
def test_what_lance_cannot(sessions: dict[str, Session], place: str, what: str) -> None:
    """The reference server does it; of a Lance table it is refused with the reason, and nothing changes."""
    act, reason = DENIED[what]
    with made(sessions[REFERENCE]) as session:
        act(session)
    with made(sessions[place]) as session:
        before = schema_of(session.table("d"))
        with pytest.raises(Exception, match=reason):
            act(session)
        assert schema_of(session.table("d")) == before


@contextmanager
def made(session: Session) -> Iterator[Session]:
    """With a table named d."""
    session.catalog.create_namespace_if_not_exists(session.place.namespace)
    session.create("d", schema=DENIED_SCHEMA)
    try:
        yield session
    finally:
        for identifier in session.catalog.list_tables(session.place.namespace):
            session.catalog.drop_table(identifier)
