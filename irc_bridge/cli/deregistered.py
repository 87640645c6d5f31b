from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from irc_bridge.cli.options import config_option, settings_of
from irc_bridge.cli.output import Output, note, output_option
from irc_bridge.errors import InvalidInput
from irc_bridge.names import dotted

if TYPE_CHECKING:
    from irc_bridge.catalog.models import Deregistered


@click.command()
@click.argument("warehouse", required=False)
@config_option
@output_option
def deregistered(warehouse: str | None, config: Path | None, output: Output) -> None:
    """List tables whose files are there and whose names are gone.

    Register one under its location to bring it back. The files of a table that was dropped with purge are removed
    after the time in REMOVED_AFTER; those of a table that was only deregistered stay. Without WAREHOUSE all of the
    settings are looked at.
    """
    settings = settings_of(config)
    if warehouse is not None and warehouse not in settings.warehouses:
        raise InvalidInput(
            f"There is no warehouse {warehouse}: the settings have {', '.join(settings.warehouses)}"
        )
    from irc_bridge.catalog.ports import CanListDeregistered
    from irc_bridge.cli.backends import open_warehouses

    rows = [
        {
            "warehouse": each.name,
            "table": dotted(found.table),
            "location": found.location,
            "removed_after": _removed_after(found),
        }
        for each in open_warehouses(settings).values()
        if warehouse in (None, each.name) and isinstance(each.catalog, CanListDeregistered)
        for found in each.catalog.deregistered()
    ]
    output.rows(rows)
    if not rows:
        note("No table is deregistered")


def _removed_after(table: "Deregistered") -> str | None:
    if table.purge is None:
        return None
    if table.changed:
        return "changed since it was purged, stays"
    if table.purge.due_ms is None:
        return "never"
    return datetime.fromtimestamp(table.purge.due_ms / 1000, UTC).isoformat(timespec="seconds")
