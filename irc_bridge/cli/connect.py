from pathlib import Path
from typing import TYPE_CHECKING

import click

from irc_bridge.cli.engines import ENGINES, Connection, url
from irc_bridge.cli.options import config_option, host_option, port_option, settings_of
from irc_bridge.cli.output import Output, output_option
from irc_bridge.errors import InvalidInput

if TYPE_CHECKING:
    from irc_bridge.settings import Settings


@click.command()
@click.argument("engine", type=click.Choice(list(ENGINES)))
@click.option("--warehouse", metavar="W", help="Warehouse to connect to; needed where there are several.")
@config_option
@host_option("Host under which the client reaches the server, if not that of the settings.")
@port_option("Port of the server, if not that of the settings.")
@output_option
def connect(
    engine: str, warehouse: str | None, config: Path | None, host: str | None, port: int | None, output: Output
) -> None:
    """Print what connects a client to this server.

    The token is never printed: set it in the client's environment as IRC_BRIDGE_TOKEN, or put it where <token>
    stands.
    """
    settings = settings_of(config, host=host, port=port)
    name = _chosen(settings, warehouse)
    chosen = settings.warehouses[name]
    connection = Connection(
        uri=url(settings.server.host, settings.server.port),
        warehouse=name,
        has_token=settings.server.token is not None or chosen.passes_authorization,
        beside_iceberg=chosen.keeps_iceberg_tables,
        root=chosen.root or "",
    )
    output.document(*ENGINES[engine](connection))


def _chosen(settings: "Settings", name: str | None) -> str:
    known = ", ".join(settings.warehouses)
    if name is None:
        if len(settings.warehouses) > 1:
            raise InvalidInput(f"Choose a warehouse with --warehouse: the settings have {known}")
        return next(iter(settings.warehouses))
    if name not in settings.warehouses:
        raise InvalidInput(f"There is no warehouse {name}: the settings have {known}")
    return name
