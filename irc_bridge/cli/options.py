"""Options of several commands, and the settings that follow from them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from irc_bridge.settings import Settings

Command = Callable[..., None]


def config_option(command: Command) -> Command:
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="Settings file to read instead of ./irc-bridge.toml.",
    )(command)


def host_option(help_text: str) -> Callable[[Command], Command]:
    return click.option("--host", metavar="HOST", help=help_text)


def port_option(help_text: str) -> Callable[[Command], Command]:
    return click.option("--port", metavar="PORT", type=click.IntRange(0, 65535), help=help_text)


def settings_of(config: Path | None, *, root: str | None = None, **server_flags: Any) -> "Settings":
    """Keyword arguments are the flags of the same names; None is a flag that was not given."""
    from irc_bridge.backends import settings_models
    from irc_bridge.settings import Layer, Value, load_settings

    flags: Layer = {
        ("server", name): Value(value, f"--{name}") for name, value in server_flags.items() if value is not None
    }
    return load_settings(config, os.environ, flags, settings_models(), root)
