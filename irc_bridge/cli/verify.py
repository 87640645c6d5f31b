from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click

from irc_bridge.cli.options import config_option, settings_of
from irc_bridge.cli.output import Output, note, output_option, warn
from irc_bridge.cli.spark_options import spark_options


@click.command()
@click.argument("tables", metavar="[WAREHOUSE.NS.TABLE]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All Lance tables of all warehouses.")
@click.option("--version", type=click.IntRange(min=1), help="The newest that engines can read unless set.")
@spark_options
@config_option
@output_option
def verify(
    tables: tuple[str, ...],
    everything: bool,
    version: int | None,
    master: str | None,
    conf: Mapping[str, str],
    config: Path | None,
    output: Output,
) -> None:
    """Compare the rows of Lance tables with those that Iceberg readers find.

    The number of rows, a checksum of each column and one of whole rows, which do not depend on the order of the
    rows. Differences are named, and the exit code is 1.
    """
    settings = settings_of(config)
    from irc_bridge.cli.backends import open_warehouses
    from irc_bridge.cli.each_table import chosen_tables, each_table, results_of
    from irc_bridge.pipeline.session import spark_session
    from irc_bridge.pipeline.verifying import verify as compare

    chosen = chosen_tables(open_warehouses(settings), tables, everything)
    with spark_session("irc-bridge verify", master, conf) as spark:
        compared, whole = results_of(each_table(chosen, partial(compare, number=version, spark=spark), everything))
    rows = [each for of_table in compared for each in of_table]
    output.rows(
        [
            {
                "table": each.table,
                "version": each.version,
                "compared": each.what,
                "lance": each.lance,
                "iceberg": each.iceberg,
                "equal": each.equal,
            }
            for each in rows
        ]
    )
    different = [each for each in rows if not each.equal]
    for each in different:
        warn(
            f"{each.table}, version {each.version}: {each.what}: {each.lance} in Lance, {each.iceberg} in Iceberg"
        )
    if different or not whole:
        raise SystemExit(1)
    note(f"{len(compared)} table{'' if len(compared) == 1 else 's'} compared: no difference.")
