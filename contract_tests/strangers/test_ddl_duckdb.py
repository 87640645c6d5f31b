"""DuckDB changes schemas of Lance tables as it does those of the reference server's tables."""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import duckdb
import pytest
from duckdb_extensions import import_extension

from contract_tests.strangers.ddl import (
    Place,
    Results,
    bridged,
    numbered,
    require_refused,
    require_same,
    results_of,
    steps,
)

EXTENSIONS = ["avro", "httpfs", "iceberg"]
COLUMNS = "id BIGINT, name VARCHAR, place STRUCT(x DOUBLE, y DOUBLE), tags VARCHAR[], small INTEGER"
STEPS = [
    "CREATE SCHEMA {ns}",
    "CREATE SCHEMA IF NOT EXISTS {ns}",
    f"CREATE TABLE {{ns}}.t ({COLUMNS}){{lance}}",
    "CREATE TABLE IF NOT EXISTS {ns}.t (a INTEGER)",
    "CREATE TABLE {ns}.t (a INTEGER)",
    "DESCRIBE {ns}.t",
    "SELECT count(*) FROM {ns}.t",
    "ALTER TABLE {ns}.t ADD COLUMN score DOUBLE",
    "ALTER TABLE {ns}.t ADD COLUMN a INTEGER",
    "ALTER TABLE {ns}.t ADD COLUMN IF NOT EXISTS a INTEGER",
    "ALTER TABLE {ns}.t ADD COLUMN a INTEGER",
    "ALTER TABLE {ns}.t ADD COLUMN place.z DOUBLE",
    "ALTER TABLE {ns}.t ADD COLUMN more STRUCT(m VARCHAR)",
    "ALTER TABLE {ns}.t RENAME COLUMN name TO label",
    "ALTER TABLE {ns}.t RENAME COLUMN place.x TO lon",
    "ALTER TABLE {ns}.t RENAME COLUMN a TO label",
    "ALTER TABLE {ns}.t RENAME COLUMN nothing TO b",
    "ALTER TABLE {ns}.t DROP COLUMN score",
    "ALTER TABLE {ns}.t DROP COLUMN place.y",
    "ALTER TABLE {ns}.t DROP COLUMN nothing",
    "ALTER TABLE {ns}.t DROP COLUMN IF EXISTS nothing",
    "ALTER TABLE {ns}.t ADD COLUMN score BIGINT",
    "ALTER TABLE {ns}.t ALTER small SET NOT NULL",
    "ALTER TABLE {ns}.t ALTER small DROP NOT NULL",
    "COMMENT ON TABLE {ns}.t IS 'of games'",
    "COMMENT ON COLUMN {ns}.t.id IS 'the key'",
    "CALL set_iceberg_table_properties({ns}.t, {{'color': 'blue'}})",
    "SELECT value FROM iceberg_table_properties({ns}.t) WHERE key = 'color'",
    "CALL remove_iceberg_table_properties({ns}.t, ['color'])",
    "SELECT value FROM iceberg_table_properties({ns}.t) WHERE key = 'color'",
    "ALTER TABLE {ns}.t RENAME TO u",
    "ALTER TABLE {ns}.t RENAME TO v",
    f"CREATE TABLE {{ns}}.t ({COLUMNS}){{lance}}",
    "ALTER TABLE {ns}.u RENAME TO t",
    "CREATE OR REPLACE TABLE {ns}.t (a INTEGER)",
    "CREATE VIEW {ns}.v AS SELECT 1 AS a",
    "DROP SCHEMA {ns}",
    "DROP TABLE {ns}.u",
    "DROP TABLE {ns}.u",
    "DROP TABLE IF EXISTS {ns}.u",
    "BEGIN",
    f"CREATE TABLE {{ns}}.two ({COLUMNS}){{lance}}",
    "ALTER TABLE {ns}.two ADD COLUMN more INTEGER",
    "COMMIT",
    "DROP TABLE {ns}.two",
    "DROP TABLE {ns}.t",
    "DROP SCHEMA {ns}",
    "DROP SCHEMA IF EXISTS {ns}",
]
DENIED = {
    "ALTER TABLE {ns}.d ALTER small TYPE BIGINT": "small: int cannot become long",
    "CREATE TABLE {ns}.p (id INTEGER) PARTITIONED BY (id){lance}": "neither partitioned nor sorted",
}


class Session:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.namespace = f"lake.{place.namespace}"
        self.rows: list[Any] = []
        self.connection = duckdb.connect()
        for extension in EXTENSIONS:
            self.connection.execute(f"LOAD {extension}")
        options = f"ENDPOINT '{place.uri}', AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none'"
        self.connection.execute(f"ATTACH '{place.warehouse}' AS lake (TYPE iceberg, {options})")

    def run(self, statement: str) -> None:
        """A change has no rows; the calls of functions tell how many properties there are."""
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in self.place.properties.items())
        lance = f" WITH ({properties})" if properties else ""
        rows = self.connection.execute(statement.format(ns=self.namespace, lance=lance)).fetchall()
        self.rows = [] if statement.startswith("CALL") else rows

    def shown(self) -> list[Any]:
        """The rows that came, and the columns of each table."""
        listed = f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{self.place.namespace}' ORDER BY 1"
        tables = [name for (name,) in self.connection.execute(listed).fetchall()]
        return [self.rows, *((name, self.columns(name)) for name in tables)]

    def columns(self, name: str) -> list[Any]:
        table = f"{self.namespace}.{name}"
        return self.connection.execute(
            f"SELECT name, type, \"notnull\" FROM pragma_table_info('{table}')"
        ).fetchall()


def kind(error: Exception) -> str:
    """What DuckDB takes it for, and the server, where it was the server who refused."""
    types = re.findall(r'"type": ?"(\w+)"', str(error))
    return " ".join([type(error).__name__, *types])


@pytest.fixture(scope="module")
def sessions(places: Mapping[str, Place]) -> Iterator[dict[str, Session]]:
    for extension in EXTENSIONS:
        import_extension(extension)
    with ExitStack() as stack:
        sessions = {name: Session(place) for name, place in places.items()}
        for session in sessions.values():
            stack.enter_context(session.connection)
        yield sessions


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
    table = f"CREATE TABLE {{ns}}.d ({COLUMNS}){{lance}}"
    require_refused(
        sessions, place, ["CREATE SCHEMA IF NOT EXISTS {ns}", table], statement, duckdb.Error, DENIED[statement]
    )
