from collections.abc import Iterator

import duckdb
import pytest
from duckdb_extensions import import_extension

from contract_tests.engines.mirror_lake import LEFT_OUT, MAKERS, ODD_NAMES, Place, lance_rows, versions_of
from contract_tests.engines.same_rows import of_arrow, of_lance, require_same
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


@pytest.mark.parametrize("name", [*MAKERS, *ODD_NAMES])
def test_every_version(session: duckdb.DuckDBPyConnection, place: Place, name: str) -> None:
    for version in versions_of(place.tables[name]):
        expected = lance_rows(place.tables[name], version)
        found = session.execute(f"FROM {name_of(place, name)} AT (VERSION => {version})").to_arrow_table()
        require_same(of_arrow(found, expected.schema), of_lance(expected, LEFT_OUT.get(name, ())))
