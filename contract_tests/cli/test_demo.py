import ast
import re
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import lance
import pytest
import requests
from duckdb_extensions import import_extension
from pyiceberg.catalog import Catalog, load_catalog

from contract_tests.cli.conftest import Demo
from contract_tests.worlds.bridge import version_numbers


def snippet(demo: Demo, engine: str) -> str:
    found = re.search(rf"^--- {engine}\n\n(.*?)\n\n(?=---|Ctrl-C)", demo.text(), re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


@pytest.fixture(scope="module")
def catalog(demo: Demo) -> Catalog:
    return load_catalog("irc", type="rest", uri=demo.url, warehouse="main")


def test_the_tables_are_there(catalog: Catalog) -> None:
    assert sorted(catalog.list_tables("default")) == [("default", "orders"), ("default", "products")]
    assert catalog.list_tables("sales.europe") == [("sales", "europe", "customers")]


def test_one_has_vectors(catalog: Catalog) -> None:
    products = catalog.load_table("default.products")
    assert str(products.schema().find_type("embedding")) == "list<float>"
    assert lance.dataset(products.location()).count_rows() == 4


def test_their_rows_can_be_read(catalog: Catalog) -> None:
    for name in ("default.products", "default.orders", "sales.europe.customers"):
        table = catalog.load_table(name)
        for version in version_numbers(table.snapshots()):
            found = table.scan(snapshot_id=version).to_arrow().to_pylist()
            expected = lance.dataset(table.location(), version=version).to_table().to_pylist()
            assert sorted(found, key=str) == sorted(expected, key=str)


def test_one_has_versions_a_tag_and_deleted_rows(catalog: Catalog) -> None:
    orders = catalog.load_table("default.orders")
    rows = lance.dataset(orders.location())
    snapshots = version_numbers(orders.snapshots())
    assert snapshots == [version["version"] for version in rows.versions()]
    assert len(snapshots) >= 3
    assert orders.refs()["first-day"].snapshot_id == snapshots[0]
    assert rows.count_rows() == 135
    assert sum(fragment.num_deletions for fragment in rows.get_fragments()) == 15


def test_the_pyiceberg_snippet_runs(demo: Demo) -> None:
    done = subprocess.run([sys.executable, "-c", snippet(demo, "pyiceberg")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "('default', 'products')" in done.stdout
    assert "table_type" in done.stdout


def test_the_duckdb_snippet_runs(demo: Demo) -> None:
    for extension in ("avro", "httpfs", "iceberg"):
        import_extension(extension)
    with duckdb.connect() as session:
        shown = session.execute(snippet(demo, "duckdb")).fetchall()
        orders = session.execute("SELECT count(*), sum(amount) FROM irc.default.orders").fetchone()
    assert {(row[0], row[2]) for row in shown} >= {("irc", "orders"), ("irc", "products")}
    assert orders == (135, 15187.5)


@pytest.mark.parametrize("engine", ["pylance", "lancedb"])
def test_the_snippets_for_lance_run(demo: Demo, engine: str) -> None:
    command = [sys.executable, "-W", "error", "-c", snippet(demo, engine)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    assert {"orders", "products"} <= set(ast.literal_eval(shown[0]))
    assert shown[-1] == "135"


@pytest.mark.parametrize("engine", ["spark", "trino"])
def test_the_other_snippets_name_the_server(demo: Demo, engine: str) -> None:
    assert demo.url in snippet(demo, engine)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_folder_goes_at_the_end(tmp_path: Path, number: signal.Signals) -> None:
    with Demo("--port", "0", cwd=tmp_path, environment={"TMPDIR": str(tmp_path)}) as demo:
        assert requests.get(f"{demo.url}/v1/config", timeout=30).status_code == 200
        assert [path.name for path in tmp_path.glob("irc-bridge-demo-*/orders.lance")] == ["orders.lance"]
        demo.process.send_signal(number)
        assert demo.process.wait(30) == 0
    assert list(tmp_path.iterdir()) == []
