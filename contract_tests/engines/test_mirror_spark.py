from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from contract_tests.engines.every_version import (
    Engine,
    instant,
    marked,
    require_every_version,
    require_inner_fields,
    require_times,
)
from contract_tests.engines.mirror_lake import HELD, MAKERS, ODD_NAMES, Place
from contract_tests.engines.questions import (
    COLUMNS,
    in_one_query,
    questions_about,
    require_answers,
    text_of,
)
from contract_tests.engines.same_rows import Row, of_arrow
from contract_tests.worlds.bridge import GUARD
from contract_tests.worlds.spark import LEAVES_SOCKETS, CannotRun, settings_for, spark_session

pytestmark = LEAVES_SOCKETS


def settings_of(place: Place) -> dict[str, str]:
    """As `irc-bridge connect` has them, under the name of the place and with what its storage needs."""
    prefix = f"spark.sql.catalog.{place.catalog}"
    named = {key.replace("spark.sql.catalog.irc", prefix): value for key, value in settings_for(place.url).items()}
    return named | {f"{prefix}.{key}": value for key, value in place.s3_properties.items()}


@pytest.fixture(scope="module")
def spark(places: list[Place]) -> Iterator[SparkSession]:
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1"}
    for place in places:
        settings |= settings_of(place)
    try:
        with spark_session(settings, on_s3=True) as session:
            yield session
    except CannotRun as reason:
        pytest.skip(f"Spark: {reason}")


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> Engine:
    def rows(place: Place, name: str, version: int, schema: pa.Schema) -> list[Row]:
        return of_arrow(spark.sql(f"SELECT * FROM {of(place, name)} VERSION AS OF {version}").toArrow(), schema)

    def count(place: Place, name: str, version: int) -> int:
        counted = spark.sql(f"SELECT count(*) FROM {of(place, name)} VERSION AS OF {version}").collect()
        return counted[0][0]  # type: ignore[no-any-return]

    return Engine(rows, count)


def of(place: Place, name: str) -> str:
    return f"{place.catalog}.{place.namespace}.`{name}`"


def test_by_time(spark: SparkSession, place: Place) -> None:
    def rows(moment: int, schema: pa.Schema) -> list[Row]:
        as_of = f"TIMESTAMP AS OF '{instant(moment):%Y-%m-%d %H:%M:%S.%f}'"
        return of_arrow(spark.sql(f"SELECT * FROM {of(place, 'life')} {as_of}").toArrow(), schema)

    require_times(place, rows)


def test_by_tag(spark: SparkSession, place: Place) -> None:
    counted = spark.sql(f"SELECT count(*) FROM {of(place, 'life')} VERSION AS OF 'two-fragments'").collect()
    assert counted[0][0] == place.tables["life"].open(2).count_rows()


def test_fields_of_structs(spark: SparkSession, place: Place) -> None:
    inner = "place.`where` AS a, places.`at` AS b"
    found = spark.sql(f"SELECT id, {inner} FROM {of(place, 'nested')} WHERE place.`where` < 'at 7'").collect()
    require_inner_fields(place, [tuple(row) for row in found])


SIGNED = pytest.mark.xfail(strict=True, reason="Iceberg for Java compares UUIDs as if they were signed")
ABOUT = [
    pytest.param(table, column, marks=SIGNED if column == "uuid" else ())
    for table, column in COLUMNS
    if table != "times"
]


@pytest.mark.parametrize(("table", "column"), ABOUT)
def test_filters(spark: SparkSession, local_place: Place, table: str, column: str) -> None:
    name = of(local_place, table)
    type_ = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE {name}").collect()}[column]

    def literal(value: Any) -> str:
        return f"X'{value.hex()}'" if isinstance(value, bytes) else f"CAST('{text_of(value)}' AS {type_})"

    asked = questions_about(local_place, table)[column]
    found = spark.sql(in_one_query(name, f"`{column}`", asked, literal)).collect()
    require_answers(asked, [tuple(row) for row in found])


NEED_A_METADATA_FILE = ["history", "metadata_log_entries", "partitions", "refs", "snapshots"]
OVER_ALL_SNAPSHOTS = ["all_data_files", "all_delete_files", "all_entries", "all_files", "all_manifests"]
METADATA_TABLES = ["data_files", "delete_files", "entries", "files", "manifests", "position_deletes"]


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_metadata_tables(spark: SparkSession, place: Place, name: str) -> None:
    found = spark.sql(f"SELECT * FROM {of(place, 'life')}.{name}").collect()
    assert name in ("delete_files", "position_deletes") or found
    if name == "data_files":
        fragments = place.tables["life"].open().get_fragments()
        assert sum(row["record_count"] for row in found) == sum(each.physical_rows for each in fragments)


@pytest.mark.parametrize("name", OVER_ALL_SNAPSHOTS)
def test_metadata_tables_over_all_snapshots(spark: SparkSession, place: Place, name: str) -> None:
    """Which need the guard snapshot's list. Of a key on S3 that is not there Spark does not tell the name."""
    with pytest.raises(Exception, match="NoSuchKey" if place.s3_properties else GUARD):
        spark.sql(f"SELECT * FROM {of(place, 'life')}.{name}").collect()


@pytest.mark.parametrize("name", NEED_A_METADATA_FILE)
def test_metadata_tables_that_name_the_metadata_file(spark: SparkSession, local_place: Place, name: str) -> None:
    """Which a Lance table has none of, by seed 004."""
    with pytest.raises(Exception, match='"location" is null'):
        spark.sql(f"SELECT * FROM {of(local_place, 'life')}.{name}").collect()


def test_a_session_that_is_open_sees_a_new_version(spark: SparkSession, local_place: Place) -> None:
    name = of(local_place, HELD)
    table = local_place.tables[HELD]
    version = table.open().version
    held = spark.table(name)
    before = spark.sql(f"SELECT count(*) FROM {name}").collect()[0][0]
    assert held.count() == before
    table.write(table.open().to_table().slice(0, 1), mode="append")
    assert spark.sql(f"SELECT count(*) FROM {name}").collect()[0][0] == before, "is not mirrored yet"
    table.bring([version + 1])
    assert spark.sql(f"SELECT count(*) FROM {name}").collect()[0][0] == before + 1
    # Spark 4.0 keeps a frame at the version that it was made of
    assert held.count() == (before if spark.version.startswith("4.0.") else before + 1)
    assert spark.sql(f"SELECT count(*) FROM {name} VERSION AS OF {version}").collect()[0][0] == before


CANNOT = dict.fromkeys("?#", "s3: Iceberg for Java takes ? and # for the end of an S3 path")


@pytest.mark.parametrize("name", [*MAKERS, *ODD_NAMES])
def test_every_version(engine: Engine, place: Place, name: str, request: pytest.FixtureRequest) -> None:
    marked(CANNOT, request, place, name)
    if name == "times":
        with pytest.raises(Exception, match="Spark does not support time fields"):
            require_every_version(engine, place, name)
    else:
        require_every_version(engine, place, name)
