import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from irc_bridge.cli.options import config_option, settings_of
from irc_bridge.cli.output import Output, note, output_option
from irc_bridge.cli.spark_options import spark_options

if TYPE_CHECKING:
    from irc_bridge.backends.directory.migration import Look, Migration
    from irc_bridge.catalog.models import Migrated

_AT_ONCE = 100
"""So many folders are looked into by one piece of work."""


@click.command()
@click.argument("root")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--spark", "on_spark", is_flag=True, help="Look into the folders on Spark, for very many of them.")
@spark_options
@config_option
@output_option
def migrate(
    root: str,
    dry_run: bool,
    on_spark: bool,
    master: str | None,
    conf: Mapping[str, str],
    config: Path | None,
    output: Output,
) -> None:
    """Register the tables of a folder in its manifest.

    ROOT is a warehouse of the settings, a folder or a URI. Tables that only directory listing finds (V1) become
    tables of the manifest (V2); their files stay where they are. It can be stopped and run again. When every table
    is registered, dir_listing_enabled can be set to false.
    """
    settings = settings_of(config)
    from irc_bridge.cli.backends import migration_of

    migration = migration_of(root, settings)
    names = migration.names()
    look = _seen_on_spark(migration, names, master, conf) if on_spark else None
    done = list(_with_progress(migration.run(names, dry_run, look), len(names)))
    registered = sum(each.skipped is None for each in done)
    outcome = "would be registered" if dry_run else "registered"
    output.rows(
        [
            {
                "table": each.name,
                "outcome": outcome if each.skipped is None else "skipped",
                "why": each.skipped,
                "location": each.location,
            }
            for each in done
        ]
    )
    if not names:
        note(f"There is no table in {root}: no folder there has a name that ends with .lance")
    else:
        note(f"{registered} {outcome}, {len(done) - registered} skipped")


def _seen_on_spark(
    migration: "Migration", names: Sequence[str], master: str | None, conf: Mapping[str, str]
) -> "Look":
    from irc_bridge.pipeline.session import spark_session
    from irc_bridge.pipeline.work import run

    pieces = [names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE)]
    with spark_session("irc-bridge migrate", master, conf) as spark:
        found = run(spark, migration.look_into, pieces, len, "Looking into folders")
    seen = dict(zip(names, chain.from_iterable(found), strict=True))
    return lambda wanted: [seen[name] for name in wanted]


def _with_progress(done: "Iterable[Migrated]", total: int) -> "Iterator[Migrated]":
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(done, "Registering", total=total, console=console, disable=not sys.stderr.isatty())
