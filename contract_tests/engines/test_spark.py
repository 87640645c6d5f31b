from collections.abc import Iterator

import lance
import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

from contract_tests.engines.lake import ODD_NAMES, TABLES, Lake
from contract_tests.worlds.spark import LEAVES_SOCKETS, CannotRun, settings_for, spark_session

pytestmark = LEAVES_SOCKETS


@pytest.fixture(scope="module")
def spark(lake: Lake) -> Iterator[SparkSession]:
    try:
        with spark_session(settings_for(lake.url, lake.root.parent)) as session:
            yield session
    except CannotRun as reason:
        pytest.skip(f"Spark: {reason}")


def rows(spark: SparkSession, statement: str) -> list[Row]:
    return spark.sql(statement).collect()


def columns(spark: SparkSession, table: str) -> dict[str, str]:
    return {row["col_name"]: row["data_type"] for row in rows(spark, f"DESCRIBE {table}")}


def test_namespaces(spark: SparkSession) -> None:
    assert {"default", "ns1"} <= {row["namespace"] for row in rows(spark, "SHOW NAMESPACES IN irc")}
    assert [row["namespace"] for row in rows(spark, "SHOW NAMESPACES IN irc.ns1")] == ["ns1.ns2"]


def test_tables(spark: SparkSession) -> None:
    assert {row["tableName"] for row in rows(spark, "SHOW TABLES IN irc.default")} == set(TABLES)
    assert [row["tableName"] for row in rows(spark, "SHOW TABLES IN irc.ns1.ns2")] == ["deep"]


def test_describe(spark: SparkSession) -> None:
    assert columns(spark, "irc.default.people") == {"id": "bigint", "name": "string"}
    assert columns(spark, "irc.default.vectors") == {"id": "bigint", "emb": "array<float>"}
    assert columns(spark, "irc.ns1.ns2.deep") == {"id": "bigint"}
    assert columns(spark, "irc.default.declared") == {}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_describe_a_table_with_an_odd_name(spark: SparkSession, name: str) -> None:
    assert columns(spark, f"irc.default.`{name}`") == {"id": "bigint", "name": "string"}


def test_table_properties(spark: SparkSession) -> None:
    """Spark 4.1 keeps the name `table_type` for itself and does not show it."""
    shown = {row["key"]: row["value"] for row in rows(spark, "SHOW TBLPROPERTIES irc.default.history")}
    assert shown["managed_by"] == "storage"
    assert shown["current-snapshot-id"] == "4"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM irc.default.people",
        "SELECT count(*) FROM irc.default.people",
        "SELECT * FROM irc.default.history VERSION AS OF 1",
        "DESCRIBE EXTENDED irc.default.people",
    ],
)
def test_what_opens_the_files_fails_with_the_reason(spark: SparkSession, statement: str) -> None:
    with pytest.raises(Exception, match=r"Failed to open input stream.*Lance-version-[14]-has-no-Parquet-copy"):
        rows(spark, statement)


def test_a_broken_table_says_so_for_itself_alone(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="broken"):
        columns(spark, "irc.default.broken")
    assert columns(spark, "irc.default.empty") == {"id": "bigint", "name": "string"}


def test_create_and_drop(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE irc.made_by_spark")
    spark.sql("CREATE TABLE irc.made_by_spark.t (id BIGINT NOT NULL, name STRING) TBLPROPERTIES ('color'='blue')")
    shown = {row["key"]: row["value"] for row in rows(spark, "SHOW TBLPROPERTIES irc.made_by_spark.t")}
    assert shown["color"] == "blue"
    spark.sql("ALTER TABLE irc.made_by_spark.t SET TBLPROPERTIES ('color'='red')")
    spark.sql("DROP TABLE irc.made_by_spark.t")
    assert rows(spark, "SHOW TABLES IN irc.made_by_spark") == []
    spark.sql("DROP NAMESPACE irc.made_by_spark")


def test_a_table_made_by_spark_is_a_lance_table(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE irc.default.by_spark (id BIGINT NOT NULL, name STRING)")
    made = lance.dataset(str(lake.location("by_spark")))
    assert [(field.name, field.nullable) for field in made.schema] == [("id", False), ("name", True)]
    spark.sql("DROP TABLE irc.default.by_spark")
    assert made.count_rows() == 0


def test_alter_table(spark: SparkSession, lake: Lake) -> None:
    table = "irc.default.altered"
    spark.sql(f"CREATE TABLE {table} (id BIGINT NOT NULL, name STRING, place STRUCT<x: DOUBLE, y: DOUBLE>)")
    location = str(lake.location("altered"))
    values = {"id": [1, 2], "name": ["a", "b"], "place": [{"x": 1.0, "y": 2.0}, None]}
    lance.write_dataset(pa.table(values, schema=lance.dataset(location).schema), location, mode="append")
    steps = [
        "ADD COLUMN score DOUBLE COMMENT 'of the last game'",
        "ADD COLUMN place.z DOUBLE",
        "RENAME COLUMN name TO called",
        "DROP COLUMN place.y",
        "ALTER COLUMN id DROP NOT NULL",
        "ALTER COLUMN id COMMENT 'the key'",
        "SET TBLPROPERTIES ('color'='blue')",
        "UNSET TBLPROPERTIES ('color')",
    ]
    for step in steps:
        before = lance.dataset(location).version
        spark.sql(f"ALTER TABLE {table} {step}")
        assert lance.dataset(location).version == before + 1, step
    shown = columns(spark, table)
    assert shown == {"id": "bigint", "called": "string", "place": "struct<x:double,z:double>", "score": "double"}
    made = lance.dataset(location)
    assert made.to_table().to_pylist() == [
        {"id": 1, "called": "a", "place": {"x": 1.0, "z": None}, "score": None},
        {"id": 2, "called": "b", "place": None, "score": None},
    ]
    assert made.schema.field("id").nullable
    for step in ["ALTER COLUMN called FIRST", "ADD COLUMN first INT FIRST"]:
        with pytest.raises(Exception, match="order"):
            spark.sql(f"ALTER TABLE {table} {step}")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN small INT")
    with pytest.raises(Exception, match="cannot become long"):
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN small TYPE BIGINT")
    assert lance.dataset(location).version == made.version + 1
    spark.sql(f"DROP TABLE {table}")


def test_insert_says_what_to_do(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE irc.default.inserted (id BIGINT)")
    spark.sql("ALTER TABLE irc.default.inserted SET TBLPROPERTIES ('managed_by'='impl')")
    with pytest.raises(Exception, match=r"cannot write rows to a Lance table yet|has-no-Parquet-copy"):
        spark.sql("INSERT INTO irc.default.inserted VALUES (1)")
    spark.sql("DROP TABLE irc.default.inserted")
