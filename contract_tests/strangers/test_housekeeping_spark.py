"""Spark's maintenance procedures on Lance tables, and the Java library's by themselves."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract_tests.strangers.housekeeping import (
    ALONE,
    READ_ONLY,
    STRAIGHT,
    TABLES,
    Estate,
    Way,
    require_dropped,
    unharmed,
    ways,
)
from contract_tests.worlds.bridge import GUARD
from contract_tests.worlds.spark import LEAVES_SOCKETS, CannotRun, settings_for, spark_session

pytestmark = LEAVES_SOCKETS

GC_DISABLED = "GC is disabled"
NO_ROWS = "Iceberg engines cannot write rows to a Lance table"
STATED = "gc.enabled stays false"
CATALOGS = ["dir", "dir_read_only", "irc", "irc_read_only", "straight"]
SUFFIXES = ["", "_cached", "_purging"]
"""Of the name of a catalog: one that keeps no tables, one that keeps them, and one that lets the server purge."""

ORPHANS = "CALL {catalog}.system.remove_orphan_files(table => '{table}'"
EXPIRE = "CALL {catalog}.system.expire_snapshots(table => '{table}'"
CLEANUPS = {
    "orphans": f"{ORPHANS})",
    "orphans in data": f"{ORPHANS}, location => '{{location}}/data')",
    "orphans by prefix": f"{ORPHANS}, prefix_listing => true)",
    "expire all": f"{EXPIRE}, older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)",
    "expire one": f"{EXPIRE}, snapshot_ids => array(3))",
    "purge": "DROP TABLE {catalog}.{table} PURGE",
}
REFUSED = {
    "CALL {catalog}.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))": NO_ROWS,
    "CALL {catalog}.system.rewrite_manifests('{table}')": NO_ROWS,
    "CALL {catalog}.system.rollback_to_snapshot('{table}', 2)": "main follows the versions of a Lance table",
    "CALL {catalog}.system.compute_table_stats('{table}')": "set-statistics cannot be applied to a Lance table",
    "INSERT INTO {catalog}.{table} SELECT * FROM {catalog}.{table}": NO_ROWS,
    "DELETE FROM {catalog}.{table} WHERE id = 1": NO_ROWS,
    "TRUNCATE TABLE {catalog}.{table}": NO_ROWS,
    "CREATE OR REPLACE TABLE {catalog}.{table} (a int)": "a Lance table is not replaced",
    "ALTER TABLE {catalog}.{table} SET TBLPROPERTIES ('gc.enabled' = 'true')": STATED,
    "ALTER TABLE {catalog}.{table} UNSET TBLPROPERTIES ('gc.enabled')": STATED,
    "ALTER TABLE {catalog}.{table} SET LOCATION '{location}/data'": "set-location",
    "DROP NAMESPACE {catalog}.{namespace} CASCADE": "not empty|cannot be dropped",
}
FIRST_A_TAG = "ALTER TABLE {catalog}.{table} CREATE TAG {tag} AS OF VERSION 3"


@pytest.fixture(scope="module")
def spark(estate: Estate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    printed = settings_for(estate.url, tmp_path_factory.mktemp("settings"))
    settings = {key: value for key, value in printed.items() if ".catalog." not in key}
    settings |= {"spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "UTC"}
    for name in CATALOGS:
        for suffix in SUFFIXES:
            settings |= settings_of(estate, name, suffix)
    try:
        with spark_session(settings) as session:
            yield session
    except CannotRun as reason:
        pytest.skip(f"Spark: {reason}")


def settings_of(estate: Estate, name: str, suffix: str) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}{suffix}"
    settings = {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "rest",
        f"{prefix}.uri": estate.uri(name),
        f"{prefix}.cache-enabled": str(suffix == "_cached").lower(),
    }
    if name != "straight":
        settings[f"{prefix}.warehouse"] = name
    if suffix == "_purging":
        settings[f"{prefix}.rest-catalog-purge"] = "true"
    return settings


Run = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def run(spark: SparkSession) -> Run:
    def run(statement: str, way: Way, suffix: str = "", **more: str) -> list[Any]:
        names = {"table": way.identifier, "namespace": way.table.namespace, "location": way.table.location}
        names |= {"catalog": f"{way.catalog}{suffix}", "folder": str(way.table.folder), **more}
        return [tuple(row) for row in spark.sql(statement.format(**names)).collect()]

    return run


def require_readable(run: Run, way: Way, suffix: str = "") -> None:
    current, old = max(way.table.rows), 3
    table = "FROM {catalog}.{table}"
    counts = f"SELECT (SELECT count(*) {table}), (SELECT count(*) {table} VERSION AS OF {old})"
    assert run(counts, way, suffix) == [(way.table.rows[current], way.table.rows[old])]


@ways(*TABLES)
@pytest.mark.parametrize("cleanup", CLEANUPS)
def test_cleanups(run: Run, way: Way, cleanup: str) -> None:
    with unharmed(way.table), pytest.raises(Exception, match=GC_DISABLED):
        run(CLEANUPS[cleanup], way)
    require_readable(run, way)


@ways(*TABLES)
@pytest.mark.parametrize("cleanup", CLEANUPS)
def test_cleanups_with_a_cache_after_a_commit(run: Run, way: Way, cleanup: str) -> None:
    """After a commit the cache holds a table with a metadata location."""
    with unharmed(way.table):
        run(FIRST_A_TAG, way, "_cached", tag=cleanup.replace(" ", "_"))
        with pytest.raises(Exception, match=GC_DISABLED):
            run(CLEANUPS[cleanup], way, "_cached")
    require_readable(run, way, "_cached")


@ways(*READ_ONLY)
@pytest.mark.parametrize("cleanup", ["orphans", "expire all", "purge"])
@pytest.mark.parametrize("suffix", ["", "_cached"])
def test_cleanups_where_nothing_may_change(run: Run, way: Way, cleanup: str, suffix: str) -> None:
    with unharmed(way.table), pytest.raises(Exception, match=GC_DISABLED):
        run(CLEANUPS[cleanup], way, suffix)
    require_readable(run, way, suffix)


@ways(*STRAIGHT)
@pytest.mark.parametrize("cleanup", CLEANUPS)
def test_cleanups_at_the_server_behind(run: Run, way: Way, cleanup: str) -> None:
    with unharmed(way.table), pytest.raises(Exception, match=GC_DISABLED):
        run(CLEANUPS[cleanup], way)
    require_readable(run, Way("irc", way.table))


@ways("dir-storage", "irc-impl")
@pytest.mark.parametrize("statement", REFUSED)
def test_changes_that_are_refused(run: Run, way: Way, statement: str) -> None:
    with unharmed(way.table), pytest.raises(Exception, match=REFUSED[statement]):
        run(statement, way)
    require_readable(run, way)


@ways(*TABLES)
def test_files_are_not_added(run: Run, way: Way, estate: Estate) -> None:
    """Spark first sets a property, which makes a version without a Parquet copy where the storage has them."""
    statement = "CALL {catalog}.system.add_files('{table}', '`parquet`.`{folder}/_iceberg/data`')"
    with unharmed(way.table), pytest.raises(Exception, match=f"{NO_ROWS}|has-no-Parquet-copy"):
        run(statement, way)
    estate.mirror()
    require_readable(run, way)


@ways(*TABLES)
def test_compaction_of_deletes_finds_nothing_to_do(run: Run, way: Way) -> None:
    statement = "CALL {catalog}.system.rewrite_position_delete_files(table => '{table}')"
    with unharmed(way.table):
        assert run(statement, way) == [(0, 0, 0, 0)]
    require_readable(run, way)


@ways(*TABLES, *ALONE)
def test_drop(run: Run, way: Way, estate: Estate) -> None:
    with unharmed(way.table):
        run("DROP TABLE {catalog}.{table}", way)
        require_dropped(estate, way.table)
    require_readable(run, way)


@ways(*TABLES)
def test_a_purge_that_is_left_to_the_server(run: Run, way: Way) -> None:
    """Spark looks at the table before."""
    with unharmed(way.table), pytest.raises(Exception, match=GC_DISABLED):
        run(CLEANUPS["purge"], way, "_purging")
    require_readable(run, way)


class Java:
    """The Iceberg library for Java, in the JVM of the Spark session."""

    def __init__(self, spark: Any, estate: Estate) -> None:
        self._jvm = spark._jvm
        self._session = spark._jsparkSession
        self._estate = estate
        self.iceberg = self._jvm.org.apache.iceberg

    def catalog(self, name: str) -> Any:
        catalog = self.iceberg.rest.RESTCatalog()
        properties = self._jvm.java.util.HashMap()
        properties["uri"] = self._estate.uri(name)
        if name != "straight":
            properties["warehouse"] = name
        catalog.initialize("java", properties)
        return catalog

    def load(self, way: Way) -> Any:
        return self.catalog(way.catalog).loadTable(self.identifier(way))

    def load_and_commit(self, way: Way, tag: str) -> Any:
        """A table that is held after a commit knows a metadata location."""
        table = self.load(way)
        table.manageSnapshots().createTag(tag, 3).commit()
        return table

    def identifier(self, way: Way) -> Any:
        return self.iceberg.catalog.TableIdentifier.parse(way.identifier)

    def actions(self) -> Any:
        return self.iceberg.spark.actions.SparkActions.get(self._session)


@pytest.fixture(scope="module")
def java(spark: SparkSession, estate: Estate) -> Java:
    return Java(spark, estate)


JAVA_CLEANUPS: dict[str, Callable[[Java, Any], Any]] = {
    "orphans": lambda java, table: java.actions().deleteOrphanFiles(table).execute(),
    "expire one": lambda java, table: table.expireSnapshots().expireSnapshotId(4).commit(),
    "expire all": lambda java, table: table.expireSnapshots().expireOlderThan(2**42).retainLast(1).commit(),
}


@ways(*TABLES)
@pytest.mark.parametrize("cleanup", JAVA_CLEANUPS)
def test_java_cleanups_after_a_commit(java: Java, run: Run, way: Way, cleanup: str) -> None:
    with unharmed(way.table), pytest.raises(Exception, match=GC_DISABLED):
        JAVA_CLEANUPS[cleanup](java, java.load_and_commit(way, f"java_{cleanup}".replace(" ", "_")))
    require_readable(run, way)


@ways(*STRAIGHT)
@pytest.mark.parametrize("cleanup", JAVA_CLEANUPS)
def test_java_cleanups_at_the_server_behind(java: Java, run: Run, way: Way, cleanup: str) -> None:
    with unharmed(way.table), pytest.raises(Exception, match=GC_DISABLED):
        JAVA_CLEANUPS[cleanup](java, java.load(way))
    require_readable(run, Way("irc", way.table))


@ways(*TABLES)
def test_a_java_client_that_deletes_the_files_itself(java: Java, run: Run, way: Way) -> None:
    """As catalogs that purge on the client's side do: it deletes manifests even where it deletes no data."""
    table = java.load_and_commit(way, "java_purge")
    with unharmed(way.table), pytest.raises(Exception, match=GUARD):
        java.iceberg.CatalogUtil.dropTableData(table.io(), table.operations().current())
    with unharmed(way.table), pytest.raises(Exception, match="is not a valid metadata file"):
        place = table.operations().current().metadataFileLocation()
        java.actions().deleteReachableFiles(place).io(table.io()).execute()
    require_readable(run, way)


@ways(*TABLES, *ALONE)
def test_java_purge(java: Java, run: Run, way: Way, estate: Estate) -> None:
    with unharmed(way.table):
        assert java.catalog(way.catalog).dropTable(java.identifier(way), True)
        require_dropped(estate, way.table, purged=True)
    require_readable(run, way)


@ways(*STRAIGHT)
def test_java_purge_at_the_server_behind(java: Java, run: Run, way: Way) -> None:
    """The server deletes its own metadata, or fails; that table is registered again."""
    with unharmed(way.table):
        with suppress(Exception):
            java.catalog("straight").dropTable(java.identifier(way), True)
        way.table.register()
    require_readable(run, Way("irc", way.table))
