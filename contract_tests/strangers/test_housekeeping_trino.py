"""Trino's table procedures and statements on Lance tables."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contract_tests.strangers.housekeeping import (
    ALONE,
    READ_ONLY,
    TABLES,
    Estate,
    Way,
    require_dropped,
    unharmed,
    ways,
)
from contract_tests.worlds.bridge import GUARD
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.trino import TrinoError, trino_server

CATALOGS = ["dir", "dir_read_only", "irc", "irc_read_only", "straight"]
ORPHANS = "ALTER TABLE {table} EXECUTE remove_orphan_files(retention_threshold => '0s')"
EXPIRE = "ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '0s')"
GC_DISABLED = "GC is disabled"
MISSING = f"{GUARD}|File does not exist|Failed to open input stream"
"""At the server behind, versions of a table with managed_by=impl name files that are gone."""
NO_ROWS = "Iceberg engines cannot write rows to a Lance table"
REFUSED = {
    "ALTER TABLE {table} EXECUTE optimize": NO_ROWS,
    "ALTER TABLE {table} EXECUTE optimize_manifests": NO_ROWS,
    "ALTER TABLE {table} EXECUTE rollback_to_snapshot(2)": "main follows the versions of a Lance table",
    "ANALYZE {table}": "set-statistics cannot be applied to a Lance table",
    "INSERT INTO {table} SELECT * FROM {table}": NO_ROWS,
    "DELETE FROM {table} WHERE id = 1": NO_ROWS,
    "TRUNCATE TABLE {table}": NO_ROWS,
    "CREATE OR REPLACE TABLE {table} (a INTEGER)": "a Lance table is not replaced",
    "SELECT * FROM {all_manifests}": GUARD,
    "DROP SCHEMA {schema}": "Cannot drop non-empty schema",
}


@pytest.fixture(scope="module")
def run(estate: Estate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., list[Any]]]:
    catalogs = {name: settings_of(estate, name) for name in CATALOGS}
    probe = "SELECT count(*) FROM dir.aged.storage"
    try:
        with trino_server(tmp_path_factory.mktemp("trino"), catalogs, probe) as trino:

            def run(statement: str, way: Way) -> list[Any]:
                schema, name = f'{way.catalog}."{way.table.namespace}"', way.table.name
                names = {"schema": schema, "table": f"{schema}.{name}"}
                names["all_manifests"] = f'{schema}."{name}$all_manifests"'
                return trino.rows(statement.format(**names))

            yield run
    except CannotRun as reason:
        pytest.skip(f"Trino: {reason}")


Run = Callable[..., list[Any]]


def settings_of(estate: Estate, name: str) -> dict[str, str]:
    settings = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": estate.uri(name),
        "iceberg.expire-snapshots.min-retention": "0s",
        "iceberg.remove-orphan-files.min-retention": "0s",
        "fs.hadoop.enabled": "true",
    }
    return settings if name == "straight" else {**settings, "iceberg.rest-catalog.warehouse": name}


def require_readable(run: Run, way: Way) -> None:
    current, first = max(way.table.rows), 3
    assert run("SELECT count(*) FROM {table}", way) == [[way.table.rows[current]]]
    assert run(f"SELECT count(*) FROM {{table}} FOR VERSION AS OF BIGINT '{first}'", way) == [
        [way.table.rows[first]]
    ]


@ways(*TABLES, *READ_ONLY)
@pytest.mark.parametrize(
    ("cleanup", "sentence"), [(ORPHANS, GUARD), (EXPIRE, GC_DISABLED)], ids=["orphans", "expire"]
)
def test_cleanups(run: Run, way: Way, cleanup: str, sentence: str) -> None:
    with unharmed(way.table), pytest.raises(TrinoError, match=sentence):
        run(cleanup, way)
    require_readable(run, way)


@pytest.mark.parametrize(
    ("name", "cleanup", "sentence"),
    [
        ("straight-impl", ORPHANS, MISSING),
        ("straight-impl", EXPIRE, GC_DISABLED),
        ("straight-storage", EXPIRE, GC_DISABLED),
    ],
)
def test_cleanups_at_the_server_behind(run: Run, way: Way, cleanup: str, sentence: str) -> None:
    with unharmed(way.table), pytest.raises(TrinoError, match=sentence):
        run(cleanup, way)
    require_readable(run, Way("irc", way.table))


@ways("straight-storage")
def test_a_table_without_a_current_snapshot_is_not_cleaned_up(run: Run, way: Way) -> None:
    """As the server behind knows a table whose storage decides about versions."""
    with unharmed(way.table):
        assert run(ORPHANS, way) == []
    require_readable(run, Way("irc", way.table))


@ways("straight-storage")
def test_cleanups_at_the_server_behind_after_a_write(run: Run, way: Way) -> None:
    """The row is none of the Lance table, but it makes a snapshot of the table that the server knows."""
    run("INSERT INTO {table} (dummy) VALUES ('x')", way)
    for cleanup, sentence in ((ORPHANS, GUARD), (EXPIRE, GC_DISABLED)):
        with unharmed(way.table), pytest.raises(TrinoError, match=sentence):
            run(cleanup, way)
    require_readable(run, Way("irc", way.table))


@ways("dir-storage", "irc-impl")
@pytest.mark.parametrize("statement", REFUSED)
def test_statements_that_are_refused(run: Run, way: Way, statement: str) -> None:
    with unharmed(way.table), pytest.raises(TrinoError, match=REFUSED[statement]):
        run(statement, way)
    require_readable(run, way)


@ways(*TABLES)
def test_cleanups_after_a_commit(run: Run, way: Way, estate: Estate) -> None:
    with unharmed(way.table):
        run("COMMENT ON TABLE {table} IS 'a comment'", way)
        with pytest.raises(TrinoError, match=GUARD):
            run(ORPHANS, way)
    estate.mirror()
    require_readable(run, way)


@ways(*TABLES, *ALONE)
def test_drop(run: Run, way: Way, estate: Estate) -> None:
    """Trino asks for a purge each time."""
    with unharmed(way.table):
        run("DROP TABLE {table}", way)
        require_dropped(estate, way.table, purged=True)
    require_readable(run, way)


@ways(*ALONE)
def test_drop_schema_with_its_tables(run: Run, way: Way, estate: Estate) -> None:
    with unharmed(way.table):
        run("DROP SCHEMA {schema} CASCADE", way)
        require_dropped(estate, way.table, purged=True)
    require_readable(run, way)


@ways(*READ_ONLY)
def test_drop_where_nothing_may_change(run: Run, way: Way) -> None:
    with unharmed(way.table), pytest.raises(TrinoError, match="does not support endpoint"):
        run("DROP TABLE {table}", way)
    require_readable(run, way)
