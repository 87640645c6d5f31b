from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from irc_bridge.cli.options import config_option, settings_of
from irc_bridge.cli.output import Output, output_option
from irc_bridge.cli.spark_options import pairs, spark_options
from irc_bridge.errors import InvalidInput, PermissionDenied

if TYPE_CHECKING:
    from irc_bridge.cli.tables import NamedTable
    from irc_bridge.pipeline.importing import Mode, Target
    from irc_bridge.pipeline.sources import Format
    from irc_bridge.settings import Settings


@click.command("import")
@click.argument("source")
@click.argument("table", metavar="WAREHOUSE.NAMESPACE.TABLE")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["parquet", "csv", "json", "iceberg", "sql"]),
    default="parquet",
    help="What SOURCE is; parquet unless set.",
)
@click.option(
    "--mode",
    type=click.Choice(["append", "overwrite", "upsert"]),
    default="append",
    help="Add the rows, replace all that there are, or replace those with the same key; append unless set.",
)
@click.option("--key", "keys", metavar="COLUMN", multiple=True, help="A column of the key, for upsert.")
@click.option(
    "--option",
    "options",
    metavar="KEY=VALUE",
    multiple=True,
    callback=pairs,
    help="An option of Spark's reader, such as delimiter=;. Can be repeated.",
)
@spark_options
@config_option
@output_option
def import_rows(
    source: str,
    table: str,
    kind: "Format",
    mode: "Mode",
    keys: tuple[str, ...],
    options: Mapping[str, str],
    master: str | None,
    conf: Mapping[str, str],
    config: Path | None,
    output: Output,
) -> None:
    """Write what Spark reads into a Lance table.

    SOURCE is a path or a pattern, for iceberg a path or the name of a table, for sql a SELECT. Columns are
    matched by name. A table that does not exist is made. One commit shows all rows at once, or none.
    """
    if (mode == "upsert") != bool(keys):
        raise InvalidInput("--mode upsert needs --key, the columns that tell rows apart; other modes take none")
    settings = settings_of(config)
    from irc_bridge.cli.backends import open_warehouses
    from irc_bridge.cli.tables import named_table

    named = named_table(open_warehouses(settings), table)
    if named.warehouse.read_only:
        raise PermissionDenied(f"Warehouse {named.warehouse.name} is read-only")
    from irc_bridge.pipeline import importing
    from irc_bridge.pipeline.session import spark_session
    from irc_bridge.pipeline.sources import read

    with spark_session(f"irc-bridge import {table}", master, conf) as spark:
        target = _target(named, settings)
        done = importing.import_rows(read(spark, source, kind, options), target, mode, keys)
    output.rows([{"table": table, **asdict(done), "seconds": round(done.seconds, 1)}])


def _target(named: "NamedTable", settings: "Settings") -> "Target":
    from irc_bridge.pipeline.importing import Target

    warehouse, table = named
    return Target(
        warehouse.catalog,
        table,
        storage_options(named, settings),
        warehouse.properties_of_new({}),
    )


def storage_options(named: "NamedTable", settings: "Settings") -> dict[str, str]:
    """With which Lance opens the table, or makes it."""
    from irc_bridge.catalog.ports import CanVendCredentials

    warehouse, table = named
    found = settings.warehouses[warehouse.name].storage
    if isinstance(warehouse.catalog, CanVendCredentials) and warehouse.catalog.table_exists(table):
        found = dict(warehouse.catalog.storage_options(table))
    return {key: value for key, value in found.items() if key != "expires_at_millis"}
