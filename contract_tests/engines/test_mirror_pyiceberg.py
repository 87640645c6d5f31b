from datetime import date, time
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.expressions import (
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    IsNull,
    LessThan,
    NotNull,
)
from pyiceberg.types import DecimalType, IcebergType

from contract_tests.engines.every_version import (
    Engine,
    marked,
    require_every_version,
    require_inner_fields,
    require_times,
)
from contract_tests.engines.mirror_lake import MAKERS, ODD_NAMES, Place, versions_of
from contract_tests.engines.questions import (
    COLUMNS,
    IS_NOT_NULL,
    IS_NULL,
    Question,
    questions_about,
    require_answers,
)
from contract_tests.engines.same_rows import Row, of_arrow
from contract_tests.worlds.bridge import GUARD, version_numbers


@pytest.fixture(scope="module")
def catalog(place: Place) -> Catalog:
    return load_catalog("bridge", type="rest", uri=place.url, warehouse="main", **place.s3_properties)


@pytest.fixture(scope="module")
def engine(catalog: Catalog) -> Engine:
    def rows(place: Place, name: str, version: int, schema: pa.Schema) -> list[Row]:
        table = catalog.load_table((place.namespace, name))
        return of_arrow(table.scan(snapshot_id=version).to_arrow(), schema)

    def count(place: Place, name: str, version: int) -> int:
        return catalog.load_table((place.namespace, name)).scan(snapshot_id=version).count()

    return Engine(rows, count, null_is_empty=True)


def test_by_time(catalog: Catalog, place: Place) -> None:
    table = catalog.load_table((place.namespace, "life"))

    def rows(moment: int, schema: pa.Schema) -> list[Row]:
        snapshot = table.snapshot_as_of_timestamp(moment)
        assert snapshot is not None
        return of_arrow(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow(), schema)

    require_times(place, rows)


def test_by_tag(catalog: Catalog, place: Place) -> None:
    scan = catalog.load_table((place.namespace, "life")).scan().use_ref("two-fragments")
    assert scan.count() == place.tables["life"].open(2).count_rows()


def test_fields_of_structs(catalog: Catalog, place: Place) -> None:
    chosen = ("id", "place.where", "places.element.at")
    table = catalog.load_table((place.namespace, "nested"))
    found = table.scan(row_filter="place.where < 'at 7'", selected_fields=chosen).to_arrow().to_pylist()
    inner = [
        (row["id"], row["place"]["where"], row["places"] and [each and each["at"] for each in row["places"]])
        for row in found
    ]
    require_inner_fields(place, inner, null_is_empty=True)


INFINITE = pytest.mark.xfail(strict=True, reason="pyiceberg takes infinity for a number that no float can be")
ABOUT = [pytest.param(*each, marks=INFINITE if each == ("floats", "single") else ()) for each in COLUMNS]


@pytest.mark.parametrize(("table", "column"), ABOUT)
def test_filters(catalog: Catalog, place: Place, table: str, column: str) -> None:
    loaded = catalog.load_table((place.namespace, table))
    type_ = loaded.schema().find_type(column)
    asked = questions_about(place, table)[column]
    rows = []
    for number, question in enumerate(asked):
        found = loaded.scan(row_filter=condition(question, type_), selected_fields=("id",)).to_arrow()
        rows += [(number, id_) for id_ in found["id"].to_pylist()]
    require_answers(asked, rows)


def condition(question: Question, type_: IcebergType) -> BooleanExpression:
    value = question.value
    if isinstance(type_, DecimalType) and value is not None:
        value = value.quantize(Decimal(1).scaleb(-type_.scale), context=Context(prec=type_.precision))
    if isinstance(value, (date, time, UUID)):
        value = value.isoformat() if not isinstance(value, UUID) else str(value)
    makers: dict[str, Any] = {
        "=": EqualTo,
        "<": LessThan,
        ">=": GreaterThanOrEqual,
        IS_NULL: IsNull,
        IS_NOT_NULL: NotNull,
    }
    operands = [question.column] if value is None else [question.column, value]
    made: BooleanExpression = makers[question.sign](*operands)
    return made


OVER_ALL_SNAPSHOTS = ["all_data_files", "all_delete_files", "all_files", "all_manifests"]
METADATA_TABLES = [
    *("data_files", "delete_files", "entries", "files", "history", "manifests", "partitions", "refs", "snapshots"),
]


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_metadata_tables(catalog: Catalog, place: Place, name: str) -> None:
    found = getattr(catalog.load_table((place.namespace, "life")).inspect, name)()
    assert name == "delete_files" or len(found)
    if name == "data_files":
        fragments = place.tables["life"].open().get_fragments()
        assert sum(found["record_count"].to_pylist()) == sum(each.physical_rows for each in fragments)


@pytest.mark.parametrize("name", OVER_ALL_SNAPSHOTS)
def test_metadata_tables_over_all_snapshots(catalog: Catalog, place: Place, name: str) -> None:
    """Which need the guard snapshot's list."""
    with pytest.raises(FileNotFoundError, match=GUARD):
        getattr(catalog.load_table((place.namespace, "life")).inspect, name)()


def test_the_metadata_table_that_names_the_metadata_file(catalog: Catalog, place: Place) -> None:
    """Which a Lance table has none of, by seed 004."""
    with pytest.raises(ValueError, match="metadata_file"):
        catalog.load_table((place.namespace, "life")).inspect.metadata_log_entries()


CANNOT = dict.fromkeys("?#", "pyiceberg takes ? and # for the end of a path")


@pytest.mark.parametrize("name", [*MAKERS, *ODD_NAMES])
def test_every_version(
    engine: Engine, catalog: Catalog, place: Place, name: str, request: pytest.FixtureRequest
) -> None:
    marked(CANNOT, request, place, name)
    snapshots = catalog.load_table((place.namespace, name)).snapshots()
    assert version_numbers(snapshots) == versions_of(place.tables[name])
    require_every_version(engine, place, name)
