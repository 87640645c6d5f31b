from pathlib import Path

import click

from irc_bridge.cli.options import config_option, settings_of
from irc_bridge.cli.output import Output, output_option


@click.command()
@config_option
@output_option
def config(config: Path | None, output: Output) -> None:
    """Show every setting, its value and where it came from.

    Later wins: irc-bridge.toml, the environment (IRC_BRIDGE__SERVER__PORT=8282), flags. Secrets are masked.
    """
    output.rows(settings_of(config).rows())
