import re
import time
from functools import partial
from pathlib import Path

import click

from irc_bridge.cli.options import config_option, settings_of
from irc_bridge.cli.output import Output, output_option

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}


def _milliseconds(_context: click.Context, option: click.Parameter, text: str) -> int:
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a number of s, m, h or d, such as 90m or 2d", param=option)
    return int(match[1]) * _UNITS[match[2]] * 1000


@click.command()
@click.argument("tables", metavar="[WAREHOUSE.NS.TABLE]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All Lance tables of all warehouses.")
@click.option(
    "--grace",
    default="1h",
    show_default=True,
    metavar="TIME",
    callback=_milliseconds,
    help="How long a version stays after it was found to be gone: longer than queries and mirror runs take.",
)
@config_option
@output_option
def expire(tables: tuple[str, ...], everything: bool, grace: int, config: Path | None, output: Output) -> None:
    """Remove the Parquet copies of versions that Lance has cleaned up.

    The first run that finds a version gone makes a note of it; the first one after the grace removes its copy,
    with the files that no other version has. No Lance file is touched.
    """
    settings = settings_of(config)
    from irc_bridge.cli.backends import open_warehouses
    from irc_bridge.cli.each_table import chosen_tables, each_table, told
    from irc_bridge.pipeline.mirroring import expired

    chosen = chosen_tables(open_warehouses(settings), tables, everything)
    work = partial(expired, grace_ms=grace, now_ms=time.time_ns() // 1_000_000)
    rows, whole = told(each_table(chosen, work, everything))
    output.rows(rows)
    if not whole:
        raise SystemExit(1)
