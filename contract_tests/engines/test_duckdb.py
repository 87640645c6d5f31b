from collections.abc import Iterator

import duckdb
import pytest
from duckdb_extensions import import_extension

from contract_tests.engines.conftest import Connect
from contract_tests.engines.lake import TABLES


@pytest.fixture(scope="module")
def session(connect: Connect) -> Iterator[duckdb.DuckDBPyConnection]:
    for extension in ("avro", "httpfs", "iceberg"):
        import_extension(extension)
    with duckdb.connect() as connection:
        connection.execute(connect("duckdb", "text"))
        yield connection


def columns(session: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str]]:
    """As DESCRIBE shows them. DESCRIBE itself binds a scan, and so opens the files of the snapshot."""
    return session.execute(f"SELECT name, type FROM pragma_table_info('{table}')").fetchall()


def test_every_table_is_listed(session: duckdb.DuckDBPyConnection) -> None:
    listed = session.execute("SELECT schema, name FROM (SHOW ALL TABLES)").fetchall()
    assert {name for schema, name in listed if schema == "default"} == set(TABLES)
    assert [name for (name,) in session.execute('SHOW TABLES FROM irc."ns1.ns2"').fetchall()] == ["deep"]


def test_columns(session: duckdb.DuckDBPyConnection) -> None:
    assert columns(session, "irc.default.people") == [("id", "BIGINT"), ("name", "VARCHAR")]
    assert columns(session, "irc.default.vectors") == [("id", "BIGINT"), ("emb", "FLOAT[]")]
    assert columns(session, 'irc.default."a b"') == [("id", "BIGINT"), ("name", "VARCHAR")]
    assert columns(session, 'irc."ns1.ns2".deep') == [("id", "BIGINT")]
    assert columns(session, "irc.default.declared") == []


@pytest.mark.parametrize("statement", ["SELECT * FROM", "DESCRIBE"])
def test_what_opens_the_files_fails_with_the_reason(session: duckdb.DuckDBPyConnection, statement: str) -> None:
    with pytest.raises(duckdb.IOException, match="Lance-version-1-has-no-Parquet-copy"):
        session.execute(f"{statement} irc.default.people").fetchall()


def test_a_broken_table_leaves_the_others_alone(session: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="broken"):
        columns(session, "irc.default.broken")
    assert "people" in {name for (name,) in session.execute("SHOW TABLES FROM irc.default").fetchall()}
