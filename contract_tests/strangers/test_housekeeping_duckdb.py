"""DuckDB's statements on Lance tables. It has no command that cleans up."""

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest
from duckdb_extensions import import_extension

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

EXTENSIONS = ["avro", "httpfs", "iceberg"]
CATALOGS = ["dir", "dir_read_only", "irc", "irc_read_only"]
NO_ROWS = "Iceberg engines cannot write rows to a Lance table"
STATED = "gc.enabled stays false"
WRITES = {
    "INSERT INTO {table} SELECT * FROM {table}": NO_ROWS,
    "DELETE FROM {table} WHERE id = 1": NO_ROWS,
    "UPDATE {table} SET name = 'x' WHERE id = 2": NO_ROWS,
    "TRUNCATE {table}": NO_ROWS,
}
REFUSED = {
    **WRITES,
    "CREATE OR REPLACE TABLE {table} (a INTEGER)": "CREATE OR REPLACE not supported",
    "CALL set_iceberg_table_properties({table}, {{'gc.enabled': 'true'}})": STATED,
    "CALL remove_iceberg_table_properties({table}, ['gc.enabled'])": STATED,
    "DROP SCHEMA {schema} CASCADE": "CASCADE is not supported",
    "DROP SCHEMA {schema}": "not empty|cannot be dropped",
}
Run = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def session(estate: Estate) -> Iterator[duckdb.DuckDBPyConnection]:
    for extension in EXTENSIONS:
        import_extension(extension)
    with duckdb.connect() as connection:
        for extension in EXTENSIONS:
            connection.execute(f"LOAD {extension}")
        options = (
            f"TYPE iceberg, ENDPOINT '{estate.url}', AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none'"
        )
        for name in CATALOGS:
            connection.execute(f"ATTACH '{name}' AS {name} ({options})")
            connection.execute(f"ATTACH '{name}' AS {name}_purging ({options}, PURGE_REQUESTED true)")
        yield connection


@pytest.fixture(scope="module")
def run(session: duckdb.DuckDBPyConnection) -> Run:
    def run(statement: str, way: Way, suffix: str = "") -> list[Any]:
        schema = f'{way.catalog}{suffix}."{way.table.namespace}"'
        return session.execute(statement.format(schema=schema, table=f"{schema}.{way.table.name}")).fetchall()

    return run


def require_readable(run: Run, way: Way) -> None:
    for version, count in way.table.rows.items():
        assert run(f"SELECT count(*) FROM {{table}} AT (VERSION => {version})", way) == [(count,)]


@ways(*TABLES)
@pytest.mark.parametrize("statement", REFUSED)
def test_changes_that_are_refused(run: Run, way: Way, statement: str) -> None:
    with unharmed(way.table), pytest.raises(duckdb.Error, match=REFUSED[statement]):
        run(statement, way)
    require_readable(run, way)


@ways(*READ_ONLY)
@pytest.mark.parametrize("statement", [*WRITES, "DROP TABLE {table}"])
def test_where_nothing_may_change(run: Run, way: Way, statement: str) -> None:
    with unharmed(way.table), pytest.raises(duckdb.Error):
        run(statement, way)
    require_readable(run, way)


@ways(*TABLES, *ALONE)
@pytest.mark.parametrize("suffix", ["", "_purging"], ids=["drop", "purge"])
def test_drop(run: Run, way: Way, estate: Estate, suffix: str) -> None:
    with unharmed(way.table):
        run("DROP TABLE {table}", way, suffix)
        require_dropped(estate, way.table, purged=bool(suffix))
    require_readable(run, way)
