"""Options of the commands that run on Spark."""

from collections.abc import Callable

import click

Command = Callable[..., None]


def spark_options(command: Command) -> Command:
    """Adds the arguments `master` and `conf`, a mapping."""
    master = click.option(
        "--master",
        metavar="URL",
        help="Spark's master, such as spark://host:7077 or local[4]; all cores of this machine unless set.",
    )
    conf = click.option(
        "--conf",
        metavar="KEY=VALUE",
        multiple=True,
        callback=pairs,
        help="A Spark setting. Can be repeated.",
    )
    return master(conf(command))


def pairs(_context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Of an option that is repeated: its values by their keys."""
    found = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{each!r} is not KEY=VALUE", param=option)
        found[key.strip()] = value
    return found
