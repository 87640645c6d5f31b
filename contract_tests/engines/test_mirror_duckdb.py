from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from duckdb_extensions import import_extension

from contract_tests.engines.every_version import (
    Engine,
    instant,
    marked,
    require_every_version,
    require_inner_fields,
    require_times,
)
from contract_tests.engines.mirror_lake import MAKERS, ODD_NAMES, Place
from contract_tests.engines.questions import (
    COLUMNS,
    in_one_query,
    questions_about,
    require_answers,
    text_of,
)
from contract_tests.engines.same_rows import Row, of_arrow
from contract_tests.worlds.s3 import KEY, SECRET


@pytest.fixture(scope="module")
def session(place: Place) -> Iterator[duckdb.DuckDBPyConnection]:
    for extension in ("avro", "httpfs", "iceberg"):
        import_extension(extension)
    with duckdb.connect() as connection:
        for extension in ("avro", "httpfs", "iceberg"):
            connection.execute(f"LOAD {extension}")
        if endpoint := place.tables["types"].options.get("aws_endpoint"):
            host = endpoint.removeprefix("http://")
            connection.execute(
                f"CREATE SECRET (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', ENDPOINT '{host}', "
                "URL_STYLE 'path', USE_SSL false, REGION 'us-east-1')"
            )
        connection.execute(
            f"ATTACH 'main' AS irc (TYPE iceberg, ENDPOINT '{place.url}', AUTHORIZATION_TYPE 'none', "
            "ACCESS_DELEGATION_MODE 'none')"
        )
        yield connection


def name_of(place: Place, table: str) -> str:
    return f'irc."{place.namespace}"."{table}"'


@pytest.fixture(scope="module")
def engine(session: duckdb.DuckDBPyConnection) -> Engine:
    def rows(place: Place, name: str, version: int, schema: pa.Schema) -> list[Row]:
        found = session.execute(f"FROM {name_of(place, name)} AT (VERSION => {version})")
        return of_arrow(found.to_arrow_table(), schema)

    def count(place: Place, name: str, version: int) -> int:
        counted = session.execute(f"SELECT count(*) FROM {name_of(place, name)} AT (VERSION => {version})")
        return counted.fetchall()[0][0]  # type: ignore[no-any-return]

    return Engine(rows, count)


def test_by_time(session: duckdb.DuckDBPyConnection, place: Place) -> None:
    def rows(moment: int, schema: pa.Schema) -> list[Row]:
        as_of = f"AT (TIMESTAMP => TIMESTAMP '{instant(moment):%Y-%m-%d %H:%M:%S.%f}')"
        return of_arrow(session.execute(f"FROM {name_of(place, 'life')} {as_of}").to_arrow_table(), schema)

    require_times(place, rows)


def test_fields_of_structs(session: duckdb.DuckDBPyConnection, place: Place) -> None:
    inner = 'place."where", list_transform(places, lambda each: each."at")'
    name = name_of(place, "nested")
    found = session.execute(f"SELECT id, {inner} FROM {name} WHERE place.\"where\" < 'at 7'").fetchall()
    require_inner_fields(place, found)


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_filters(session: duckdb.DuckDBPyConnection, place: Place, table: str, column: str) -> None:
    name = name_of(place, table)
    described = session.execute(f"SELECT name, type FROM pragma_table_info('{name}')").fetchall()
    type_ = dict(described)[column]

    def literal(value: Any) -> str:
        return f"unhex('{value.hex()}')" if isinstance(value, bytes) else f"CAST('{text_of(value)}' AS {type_})"

    asked = questions_about(place, table)[column]
    require_answers(asked, session.execute(in_one_query(name, f'"{column}"', asked, literal)).fetchall())


CANNOT = {"?": "s3: DuckDB takes ? in an S3 path for the beginning of parameters"}


@pytest.mark.parametrize("name", [*MAKERS, *ODD_NAMES])
def test_every_version(engine: Engine, place: Place, name: str, request: pytest.FixtureRequest) -> None:
    marked(CANNOT, request, place, name)
    require_every_version(engine, place, name)
