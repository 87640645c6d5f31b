"""Spark changes schemas of Lance tables as it does those of the reference server's tables."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from contract_tests.strangers.ddl import (
    PLACES,
    REFERENCE,
    Place,
    Results,
    bridged,
    numbered,
    require_refused,
    require_same,
    results_of,
    steps,
)
from contract_tests.worlds.spark import LEAVES_SOCKETS, CannotRun, settings_for, spark_session

pytestmark = LEAVES_SOCKETS

COLUMNS = (
    "id BIGINT NOT NULL COMMENT 'the key', name STRING, place STRUCT<x: DOUBLE, y: DOUBLE>, tags ARRAY<STRING>, "
    "scores MAP<STRING, INT>, small INT"
)
ALTER = "ALTER TABLE {ns}.t"
STEPS = [
    "CREATE NAMESPACE {ns} COMMENT 'of games' WITH DBPROPERTIES ('color' = 'blue')",
    "CREATE NAMESPACE {ns}",
    "CREATE NAMESPACE IF NOT EXISTS {ns}",
    "ALTER NAMESPACE {ns} SET PROPERTIES ('size' = 'big')",
    "ALTER NAMESPACE {ns} UNSET PROPERTIES ('color')",
    f"CREATE TABLE {{ns}}.t ({COLUMNS}) TBLPROPERTIES ('color' = 'blue')",
    "CREATE TABLE {ns}.t (a INT)",
    "CREATE TABLE IF NOT EXISTS {ns}.t (a INT)",
    "SELECT count(*) FROM {ns}.t",
    f"{ALTER} ADD COLUMN score DOUBLE COMMENT 'of the last game'",
    f"{ALTER} ADD COLUMNS (a INT, b STRING, c ARRAY<STRUCT<d: INT>>)",
    f"{ALTER} ADD COLUMN a INT",
    f"{ALTER} ADD COLUMN place.z DOUBLE",
    f"{ALTER} ADD COLUMN nothing.z DOUBLE",
    f"{ALTER} RENAME COLUMN name TO label",
    f"{ALTER} RENAME COLUMN place.x TO lon",
    f"{ALTER} RENAME COLUMN a TO label",
    f"{ALTER} RENAME COLUMN nothing TO something",
    f"{ALTER} DROP COLUMN score",
    f"{ALTER} DROP COLUMNS (b, place.y)",
    f"{ALTER} DROP COLUMN nothing",
    f"{ALTER} DROP COLUMN IF EXISTS nothing",
    f"{ALTER} ADD COLUMN score BIGINT",
    f"{ALTER} ALTER COLUMN id DROP NOT NULL",
    f"{ALTER} ALTER COLUMN id SET NOT NULL",
    f"{ALTER} ALTER COLUMN label COMMENT 'what it is called'",
    f"{ALTER} ALTER COLUMN small TYPE STRING",
    f"{ALTER} SET TBLPROPERTIES ('size' = 'big')",
    f"{ALTER} UNSET TBLPROPERTIES ('color')",
    f"{ALTER} UNSET TBLPROPERTIES IF EXISTS ('nothing')",
    "COMMENT ON TABLE {ns}.t IS 'of games'",
    f"{ALTER} RENAME TO {{name}}.u",
    f"{ALTER} RENAME TO {{name}}.v",
    f"CREATE TABLE {{ns}}.t ({COLUMNS})",
    "ALTER TABLE {ns}.u RENAME TO {name}.t",
    f"{ALTER} RENAME TO nowhere_{{name}}.t",
    "DROP NAMESPACE {ns}",
    "DROP TABLE {ns}.u",
    "DROP TABLE {ns}.u",
    "DROP TABLE IF EXISTS {ns}.u",
    "SELECT * FROM {ns}.u",
    "DROP TABLE {ns}.t",
    "DROP NAMESPACE {ns}",
    "DROP NAMESPACE IF EXISTS {ns}",
    "DROP NAMESPACE {ns}",
]
LISTS = "lies inside a list or a map cannot be changed"
DENIED = {
    "ALTER TABLE {ns}.d ALTER COLUMN small TYPE BIGINT": "small: int cannot become long",
    "ALTER TABLE {ns}.d ALTER COLUMN name FIRST": "keeps fields in the order in which they were made",
    "ALTER TABLE {ns}.d ALTER COLUMN id AFTER name": "keeps fields in the order in which they were made",
    "ALTER TABLE {ns}.d ADD COLUMN first INT FIRST": "keeps fields in the order in which they were made",
    "ALTER TABLE {ns}.d ADD COLUMN second INT AFTER id": "keeps fields in the order in which they were made",
    "ALTER TABLE {ns}.d ADD COLUMN list.element.e INT": LISTS,
    "ALTER TABLE {ns}.d ADD PARTITION FIELD bucket(4, id)": "add-spec cannot be applied to a Lance table",
    "ALTER TABLE {ns}.d WRITE ORDERED BY id": "add-sort-order cannot be applied to a Lance table",
    "ALTER TABLE {ns}.d SET TBLPROPERTIES ('format-version' = '3')": "format-version cannot be 3",
    "CREATE TABLE {ns}.p (id INT) PARTITIONED BY (id)": "neither partitioned nor sorted",
    "CREATE TABLE {ns}.p AS SELECT 1 AS id": "cannot be created with the update add-snapshot|cannot write rows",
    "CREATE OR REPLACE TABLE {ns}.d (id INT)": "a Lance table is not replaced",
    "INSERT INTO {ns}.d (id) VALUES (1)": "Iceberg engines cannot write rows to a Lance table",
}


class Session:
    def __init__(self, spark: SparkSession, place: Place) -> None:
        self.spark = spark
        self.place = place
        self.namespace = f"{place.name}.{place.namespace}"

    def run(self, statement: str) -> None:
        self.spark.sql(statement.format(ns=self.namespace, name=self.place.namespace)).collect()

    def shown(self) -> list[Any]:
        """The properties of the namespace, and of each table its columns and properties."""
        if self.place.namespace not in [
            row["namespace"] for row in self.rows(f"SHOW NAMESPACES IN {self.place.name}")
        ]:
            return []
        tables = sorted(row["tableName"] for row in self.rows(f"SHOW TABLES IN {self.namespace}"))
        described = self.rows(f"DESCRIBE NAMESPACE EXTENDED {self.namespace}")
        properties = next(row["info_value"] for row in described if row["info_name"] == "Properties")
        own = [each for each in ("color,blue", "size,big") if each in properties]
        return [own, *((name, self.columns(name), self.properties(name)) for name in tables)]

    def columns(self, name: str) -> list[Any]:
        fields = self.spark.table(f"{self.namespace}.{name}").schema.fields
        return [(field.name, field.dataType.simpleString(), field.nullable, field.metadata) for field in fields]

    def properties(self, name: str) -> list[Any]:
        shown = self.rows(f"SHOW TBLPROPERTIES {self.namespace}.{name}")
        return [tuple(row) for row in shown if row["key"] in ("color", "size", "comment")]

    def rows(self, statement: str) -> list[Any]:
        return self.spark.sql(statement).collect()


def kind(error: Exception) -> str:
    """Spark's name for it, or the class of the Java exception."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    java = getattr(error, "java_exception", None)
    return condition or (java.getClass().getName() if java else type(error).__name__)


@pytest.fixture(scope="module")
def sessions(
    places: Mapping[str, Place], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Session]]:
    printed = settings_for(places[REFERENCE].uri, tmp_path_factory.mktemp("settings"))
    settings = {key: value for key, value in printed.items() if ".catalog." not in key}
    for name, place in places.items():
        prefix = f"spark.sql.catalog.{name}"
        own = {"type": "rest", "uri": place.uri, "warehouse": place.warehouse, "cache-enabled": "false"}
        own |= {f"table-override.{key}": value for key, value in place.properties.items()}
        settings[prefix] = "org.apache.iceberg.spark.SparkCatalog"
        settings |= {f"{prefix}.{key}": value for key, value in own.items() if value}
    try:
        with spark_session(settings) as spark:
            yield {name: Session(spark, places[name]) for name in PLACES}
    except CannotRun as reason:
        pytest.skip(f"Spark: {reason}")


@pytest.fixture(scope="module")
def results(sessions: dict[str, Session]) -> Results:
    return {name: results_of(session.run, session.shown, kind, STEPS) for name, session in sessions.items()}


@bridged()
@steps(numbered(STEPS))
def test_the_same_as_on_the_reference_server(results: Results, place: str, step: str) -> None:
    require_same(results, place, step, {})


@bridged()
@pytest.mark.parametrize("statement", DENIED)
def test_what_lance_cannot(results: Results, sessions: dict[str, Session], place: str, statement: str) -> None:
    table = f"CREATE TABLE {{ns}}.d ({COLUMNS}, list ARRAY<STRUCT<c: INT>>)"
    require_refused(
        sessions, place, ["CREATE NAMESPACE IF NOT EXISTS {ns}", table], statement, Exception, DENIED[statement]
    )
