import signal
import sys

import click

from irc_bridge import __version__
from irc_bridge.cli.config import config
from irc_bridge.cli.connect import connect
from irc_bridge.cli.demo import demo
from irc_bridge.cli.deregistered import deregistered
from irc_bridge.cli.expire import expire
from irc_bridge.cli.health import health
from irc_bridge.cli.import_rows import import_rows
from irc_bridge.cli.migrate import migrate
from irc_bridge.cli.mirror import mirror
from irc_bridge.cli.serve import serve
from irc_bridge.cli.verify import verify
from irc_bridge.errors import BridgeError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="irc-bridge")
def cli() -> None:
    """Lance tables for every client of the Iceberg REST Catalog (IRC)."""


for command in (serve, demo, connect, config, health, deregistered, migrate, import_rows, mirror, verify, expire):
    cli.add_command(command)


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends a command as Ctrl-C does
    try:
        cli(prog_name="irc-bridge")
    except BridgeError as error:
        click.echo(f"irc-bridge: {error.message}", err=True)
        sys.exit(1)
