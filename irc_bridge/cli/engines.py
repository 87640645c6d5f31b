"""Settings by which each client finds a warehouse of this server: a text to paste, and its values."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from irc_bridge.storage.locations import scheme_of

SPARK_PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SPARK_S3_PACKAGE = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"
_TRINO_STORAGE = {
    "s3": "fs.native-s3.enabled",
    "gs": "fs.native-gcs.enabled",
    "az": "fs.native-azure.enabled",
    "abfss": "fs.native-azure.enabled",
}
_TRINO_FILES = "fs.hadoop.enabled"
CATALOG = "irc"
TOKEN_VARIABLE = "IRC_BRIDGE_TOKEN"
TOKEN_PLACE = "<token>"
TOKEN_HEADER = "header.Authorization"
"""The property of a Lance namespace that becomes a header."""


@dataclass(frozen=True, slots=True)
class Connection:
    uri: str
    warehouse: str
    has_token: bool
    beside_iceberg: bool = False
    """Whether Iceberg tables are listed as well, and all tables lie in namespaces."""
    root: str = ""
    """Below which the tables lie, where that is known."""


class Snippet(NamedTuple):
    text: str
    values: Mapping[str, str]


def url(host: str, port: int) -> str:
    """Where a client on this machine finds a server that listens on `host`."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def pyiceberg(connection: Connection) -> Snippet:
    token = f', token=os.environ["{TOKEN_VARIABLE}"]' if connection.has_token else ""
    text = f"""\
{_import_os(connection)}from pyiceberg.catalog import load_catalog

catalog = load_catalog("{CATALOG}", type="rest", uri="{connection.uri}", warehouse="{connection.warehouse}"{token})
tables = [table for namespace in catalog.list_namespaces() for table in catalog.list_tables(namespace)]
print(tables)
for name in tables[:1]:
    table = catalog.load_table(name)
    print(table.schema())
    print(table.properties)
    for snapshot in table.snapshots():
        print(snapshot)
    # Its rows, where `irc-bridge mirror` has copied them: table.scan(limit=10).to_arrow()
    # With pylance always: lance.dataset(table.location()).to_table()"""
    return Snippet(
        text, {"type": "rest", "uri": connection.uri, "warehouse": connection.warehouse, **_token(connection)}
    )


def spark(connection: Connection) -> Snippet:
    prefix = f"spark.sql.catalog.{CATALOG}"
    values = {
        "spark.jars.packages": f"{SPARK_PACKAGE},{SPARK_S3_PACKAGE}"
        if scheme_of(connection.root) == "s3"
        else SPARK_PACKAGE,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "rest",
        f"{prefix}.uri": connection.uri,
        f"{prefix}.warehouse": connection.warehouse,
        # Without it a session that is open does not see new versions for 30 seconds.
        f"{prefix}.cache-enabled": "false",
    }
    settings = [f"--conf {shlex.quote(f'{key}={value}')}" for key, value in values.items()]
    if connection.has_token:
        settings.append(f'--conf "{prefix}.token=${TOKEN_VARIABLE}"')
        values[f"{prefix}.token"] = TOKEN_PLACE
    text = " \\\n  ".join(
        ("# Spark 4.1 (pip install pyspark==4.1.4, Java 17). Then: SHOW NAMESPACES IN irc;\nspark-sql", *settings)
    )
    return Snippet(text, values)


def trino(connection: Connection) -> Snippet:
    values = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": connection.uri,
        "iceberg.rest-catalog.warehouse": connection.warehouse,
        "iceberg.rest-catalog.nested-namespace-enabled": "true",
    }
    if connection.root:
        values[_TRINO_STORAGE.get(scheme_of(connection.root), _TRINO_FILES)] = "true"
    if connection.has_token:
        values["iceberg.rest-catalog.security"] = "OAUTH2"
        values["iceberg.rest-catalog.oauth2.token"] = f"${{ENV:{TOKEN_VARIABLE}}}"
    lines = [f"# etc/catalog/{CATALOG}.properties. Then: SHOW SCHEMAS FROM {CATALOG};"]
    return Snippet("\n".join((*lines, *(f"{key}={value}" for key, value in values.items()))), values)


def duckdb(connection: Connection) -> Snippet:
    access = f"SECRET {CATALOG}" if connection.has_token else "AUTHORIZATION_TYPE 'none'"
    statements = [
        "INSTALL iceberg;",
        "LOAD iceberg;",
        *([f"CREATE SECRET {CATALOG} (TYPE iceberg, TOKEN '{TOKEN_PLACE}');"] if connection.has_token else []),
        f"ATTACH '{connection.warehouse}' AS {CATALOG} (TYPE iceberg, ENDPOINT '{connection.uri}', {access});",
        "SHOW ALL TABLES;",
        f"-- Columns: SELECT name, type FROM pragma_table_info('{CATALOG}.NAMESPACE.TABLE');",
        f"-- Rows, where irc-bridge mirror has copied them: FROM {CATALOG}.NAMESPACE.TABLE;",
    ]
    values = {"warehouse": connection.warehouse, "endpoint": connection.uri}
    return Snippet(
        "\n".join(statements),
        values | (_token(connection) if connection.has_token else {"authorization_type": "none"}),
    )


def pylance(connection: Connection) -> Snippet:
    only_lance = "include_declared=False" if connection.beside_iceberg else ""
    name = '["namespace", "name"]' if connection.beside_iceberg else '["name"]'
    text = f"""\
{_import_os(connection)}import lance
from lance_namespace import ListTablesRequest, connect

namespace = connect("rest", {_in_python(connection)})
tables = namespace.list_all_tables(ListTablesRequest({only_lance})).tables
print(tables)
for name in tables[:1]:
    table = lance.dataset(namespace_client=namespace, table_id=name.split("$"))
    print(table.schema)
    print(table.count_rows())
# To write: lance.write_dataset(rows, namespace_client=namespace, table_id={name})"""
    return Snippet(text, _lance_values(connection))


def lancedb(connection: Connection) -> Snippet:
    place = 'namespace_path=["namespace"]' if connection.beside_iceberg else ""
    also = f", {place}" if place else ""
    text = f"""\
{_import_os(connection)}import lancedb

db = lancedb.connect_namespace("rest", {_in_python(connection)})
tables = db.list_tables({place}).tables
print(tables)
for name in tables[:1]:
    table = db.open_table(name{also})
    print(table.schema)
    print(table.count_rows())
# To write: db.create_table("name", rows{also})"""
    return Snippet(text, _lance_values(connection))


def _lance_values(connection: Connection) -> dict[str, str]:
    values = {"uri": f"{connection.uri}/lance/{connection.warehouse}"}
    return values | ({TOKEN_HEADER: f"Bearer {TOKEN_PLACE}"} if connection.has_token else {})


def _in_python(connection: Connection) -> str:
    """The properties of a namespace as an expression."""
    uri = f'"uri": "{_lance_values(connection)["uri"]}"'
    token = f',\n    "{TOKEN_HEADER}": "Bearer " + os.environ["{TOKEN_VARIABLE}"]' if connection.has_token else ""
    return f"{{{uri}{token}}}"


def _import_os(connection: Connection) -> str:
    return "import os\n\n" if connection.has_token else ""


def _token(connection: Connection) -> dict[str, str]:
    return {"token": TOKEN_PLACE} if connection.has_token else {}


ENGINES: dict[str, Callable[[Connection], Snippet]] = {
    "pyiceberg": pyiceberg,
    "spark": spark,
    "trino": trino,
    "duckdb": duckdb,
    "pylance": pylance,
    "lancedb": lancedb,
}
