import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from irc_bridge.cli.options import config_option, settings_of
from irc_bridge.cli.output import Output, note, output_option, warn
from irc_bridge.durations import EXPECTED, milliseconds
from irc_bridge.errors import BridgeError, InvalidInput, PermissionDenied

if TYPE_CHECKING:
    from irc_bridge.catalog.models import Levels
    from irc_bridge.catalog.warehouses import Warehouse, Warehouses


def _milliseconds(_context: click.Context, option: click.Parameter, text: str) -> int:
    try:
        return milliseconds(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not {EXPECTED}", param=option) from None


@click.command()
@click.argument("tables", metavar="[WAREHOUSE.NS.TABLE]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All Lance tables of all warehouses, and purged ones.")
@click.option(
    "--now", is_flag=True, help="Remove the files of the purged tables that are named, before their time."
)
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
def expire(
    tables: tuple[str, ...], everything: bool, now: bool, grace: int, config: Path | None, output: Output
) -> None:
    """Remove the Parquet copies of versions that Lance has cleaned up, and the files of purged tables.

    The first run that finds a version gone makes a note of it; the first one after the grace removes its copy,
    with the files that no other version has. No Lance file of a table is touched. With --all the files of tables
    that were dropped with purge are removed too when their time has come (purge_after); --now removes those of the
    tables that are named before it.
    """
    if now and (everything or not tables):
        raise click.UsageError("--now needs the names of purged tables.")
    settings = settings_of(config)
    from irc_bridge.cli.backends import open_warehouses

    warehouses = open_warehouses(settings)
    if now:
        output.rows([each for name in tables for each in _removed_now(warehouses, name)])
        return
    from irc_bridge.cli.each_table import chosen_tables, each_table, results_of
    from irc_bridge.pipeline.mirroring import expired

    chosen = chosen_tables(warehouses, tables, everything)
    now_ms = time.time_ns() // 1_000_000
    work = partial(expired, grace_ms=grace, now_ms=now_ms)
    rows, whole = results_of(each_table(chosen, work, everything))
    output.rows(rows)
    purged = [_remove_due(each, now_ms) for each in warehouses.values()] if everything else []
    if not whole or not all(purged):
        raise SystemExit(1)


def _remove_due(warehouse: "Warehouse", now_ms: int) -> bool:
    """False when files stay that are due."""
    from irc_bridge.catalog.ports import CanKeepPurged
    from irc_bridge.cli.tables import iceberg_name

    catalog, is_done = warehouse.catalog, True
    if not isinstance(catalog, CanKeepPurged):
        return True
    if warehouse.read_only:
        note(f"Warehouse {warehouse.name} is read-only: the files of its purged tables stay")
        return True
    for each in catalog.purges():
        if each.due_ms is None or each.due_ms > now_ms:
            continue
        name = iceberg_name(warehouse, each.table)
        try:
            if catalog.remove_purged(each):
                note(f"{name}: purged, its files at {each.location} are removed")
        except BridgeError as error:
            warn(f"{name}: {error.message}")
            is_done = False
    return is_done


def _removed_now(warehouses: "Warehouses", name: str) -> "Iterator[dict[str, str]]":
    from irc_bridge.catalog.ports import CanKeepPurged
    from irc_bridge.cli.tables import named_table

    warehouse, table = named_table(warehouses, name)
    if warehouse.read_only:
        raise PermissionDenied(f"Warehouse {warehouse.name} is read-only: the files of its purged tables stay")
    if not isinstance(warehouse.catalog, CanKeepPurged):
        raise InvalidInput(f"Warehouse {warehouse.name} keeps no purged tables")
    purges = [each for each in warehouse.catalog.purges() if each.table == table]
    if not purges:
        raise _not_purged(warehouse, table, name)
    for each in purges:
        is_removed = warehouse.catalog.remove_purged(each)
        yield {"table": name, "location": each.location, "outcome": "removed" if is_removed else "gone already"}


def _not_purged(warehouse: "Warehouse", table: "Levels", name: str) -> InvalidInput:
    from irc_bridge.catalog.ports import CanListDeregistered

    catalog = warehouse.catalog
    if catalog.table_exists(table):
        return InvalidInput(
            f"{name} was not purged, it is a table: drop it with purge, then its files can be removed"
        )
    if isinstance(catalog, CanListDeregistered):
        for each in catalog.deregistered():
            if each.table == table:
                return InvalidInput(
                    f"{name} was deregistered and not purged, so its files stay: register it again at "
                    f"{each.location}, drop it with purge, and then its files can be removed"
                )
    return InvalidInput(f"There is no purged table {name}: irc-bridge deregistered lists those that there are")
