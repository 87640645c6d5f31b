"""Spark through the bridge before another server: its Iceberg tables are written and read as ever, and Lance
tables stand beside them in the same namespaces."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import lance
import pytest
from pyspark.sql import Row, SparkSession

from contract_tests.worlds.bridge import SCHEMA, Client, Server
from contract_tests.worlds.servers import reference_server
from contract_tests.worlds.spark import LEAVES_SOCKETS, CannotRun, settings_for, spark_session
from contract_tests.worlds.upstream import bridge_over
from contract_tests.worlds.writer import rows as lance_rows

pytestmark = LEAVES_SOCKETS


@dataclass(frozen=True)
class Lake:
    url: str
    behind: str
    """Of the server behind the bridge."""
    folder: Path


@pytest.fixture(scope="module")
def upstream_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lake, Server]]:
    folder = tmp_path_factory.mktemp("spark-upstream")
    (folder / "behind").mkdir()
    with ExitStack() as stack:
        try:
            url = stack.enter_context(reference_server(folder / "behind"))
        except CannotRun as reason:
            pytest.skip(str(reason))
        server = stack.enter_context(bridge_over(url, folder / "bridge"))
        yield Lake(server.url, url, folder), server


@pytest.fixture(scope="module")
def lake(upstream_lake: tuple[Lake, Server]) -> Lake:
    return upstream_lake[0]


@pytest.fixture(scope="module")
def spark(upstream_lake: tuple[Lake, Server]) -> Iterator[SparkSession]:
    lake, server = upstream_lake
    settings = {**settings_for(lake.url, server.cwd), "spark.sql.shuffle.partitions": "1"}
    try:
        with spark_session(settings) as session:
            yield session
    except CannotRun as reason:
        pytest.skip(f"Spark: {reason}")


@pytest.fixture
def namespace(spark: SparkSession, name: str) -> str:
    spark.sql(f"CREATE NAMESPACE irc.{name}")
    return name


def rows(spark: SparkSession, statement: str) -> list[Row]:
    return spark.sql(statement).collect()


def contents(spark: SparkSession, table: str) -> dict[int, str]:
    return {row["id"]: row["name"] for row in rows(spark, f"SELECT id, name FROM {table}")}


def columns(spark: SparkSession, table: str) -> dict[str, str]:
    return {row["col_name"]: row["data_type"] for row in rows(spark, f"DESCRIBE {table}")}


def versions(spark: SparkSession, table: str) -> list[int]:
    found = rows(spark, f"SELECT snapshot_id FROM {table}.snapshots WHERE snapshot_id > 0 ORDER BY committed_at")
    return [row["snapshot_id"] for row in found]


def make_lance_table(lake: Lake, namespace: str, name: str) -> str:
    """With the rows that a Lance writer put there."""
    with Client(lake.url) as client:
        made = client.create_table((namespace,), name, schema=SCHEMA, properties={"table_type": "lance"})
    location: str = made["metadata"]["location"]
    schema = lance.dataset(location).schema
    lance.write_dataset(lance_rows(3).cast(schema), location, mode="append")
    return location


def test_a_table_is_written_changed_and_read(spark: SparkSession, namespace: str) -> None:
    table = f"irc.{namespace}.people"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, name STRING) USING iceberg")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'Ada'), (2, 'Bo'), (3, 'Cy')")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT * FROM VALUES (2, 'Bob'), (4, 'Di') AS s(id, name)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET t.name = s.name WHEN NOT MATCHED THEN INSERT *"
    )
    assert contents(spark, table) == {1: "Ada", 2: "Bob", 3: "Cy", 4: "Di"}
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    spark.sql(f"UPDATE {table} SET name = 'Dee' WHERE id = 4")
    assert contents(spark, table) == {2: "Bob", 3: "Cy", 4: "Dee"}
    inserted, merged, deleted, updated = versions(spark, table)
    assert contents(spark, f"{table} VERSION AS OF {inserted}") == {1: "Ada", 2: "Bo", 3: "Cy"}
    assert contents(spark, f"{table} VERSION AS OF {merged}") == {1: "Ada", 2: "Bob", 3: "Cy", 4: "Di"}
    assert contents(spark, f"{table} VERSION AS OF {deleted}") == {2: "Bob", 3: "Cy", 4: "Di"}
    assert contents(spark, f"{table} VERSION AS OF {updated}") == {2: "Bob", 3: "Cy", 4: "Dee"}


def test_a_table_is_altered_and_renamed(spark: SparkSession, namespace: str) -> None:
    table = f"irc.{namespace}.t"
    spark.sql(f"CREATE TABLE {table} USING iceberg PARTITIONED BY (bucket(2, id)) AS SELECT 1L AS id, 'a' AS name")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN score DOUBLE AFTER id")
    spark.sql(f"ALTER TABLE {table} RENAME TO {namespace}.renamed")
    renamed = f"irc.{namespace}.renamed"
    assert [name for name in columns(spark, renamed) if name in ("id", "score", "name")] == ["id", "score", "name"]
    spark.sql(f"INSERT INTO {renamed} VALUES (2, 0.5, 'b')")
    assert contents(spark, renamed) == {1: "a", 2: "b"}
    spark.sql(f"DROP TABLE {renamed}")
    assert rows(spark, f"SHOW TABLES IN irc.{namespace}") == []


def test_views(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE irc.{namespace}.t USING iceberg AS SELECT 1L AS id, 'a' AS name")
    spark.sql(f"CREATE VIEW irc.{namespace}.v AS SELECT id + 1 AS id, name FROM irc.{namespace}.t")
    assert contents(spark, f"irc.{namespace}.v") == {2: "a"}
    assert [row["viewName"] for row in rows(spark, f"SHOW VIEWS IN irc.{namespace}")] == ["v"]
    spark.sql(f"DROP VIEW irc.{namespace}.v")


def test_a_lance_table_beside_an_iceberg_table(spark: SparkSession, lake: Lake, namespace: str) -> None:
    spark.sql(f"CREATE TABLE irc.{namespace}.iceberg USING iceberg AS SELECT 7L AS id, 'x' AS name")
    location = make_lance_table(lake, namespace, "lance")
    shown = {row["tableName"] for row in rows(spark, f"SHOW TABLES IN irc.{namespace}")}
    assert shown == {"iceberg", "lance"}
    assert columns(spark, f"irc.{namespace}.lance") == {"id": "bigint", "name": "string"}
    lance.dataset(location).add_columns({"double": "id * 2"})
    assert columns(spark, f"irc.{namespace}.lance") == {"id": "bigint", "name": "string", "double": "bigint"}
    properties = {row["key"]: row["value"] for row in rows(spark, f"SHOW TBLPROPERTIES irc.{namespace}.lance")}
    assert properties["current-snapshot-id"] == str(lance.dataset(location).version)
    assert contents(spark, f"irc.{namespace}.iceberg") == {7: "x"}
    with pytest.raises(Exception, match=r"Lance-version-\d+-has-no-Parquet-copy"):
        rows(spark, f"SELECT * FROM irc.{namespace}.lance")
    spark.sql(f"DROP TABLE irc.{namespace}.lance")
    assert [row["tableName"] for row in rows(spark, f"SHOW TABLES IN irc.{namespace}")] == ["iceberg"]
    assert lance.dataset(location).count_rows() == 3


def test_what_spark_wrote_is_in_the_server_behind(spark: SparkSession, lake: Lake, namespace: str) -> None:
    spark.sql(f"CREATE TABLE irc.{namespace}.t USING iceberg AS SELECT 1L AS id, 'a' AS name")
    (version,) = versions(spark, f"irc.{namespace}.t")
    with Client(lake.behind, prefix=None) as behind, Client(lake.url) as bridge:
        straight = behind.load((namespace,), "t")
        assert straight["metadata"]["current-snapshot-id"] == version
        assert bridge.load((namespace,), "t") == straight
