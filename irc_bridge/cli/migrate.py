import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from irc_bridge.cli.options import config_option, settings_of
from irc_bridge.cli.output import Output, note, output_option

if TYPE_CHECKING:
    from irc_bridge.catalog.models import Migrated


@click.command()
@click.argument("root")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@config_option
@output_option
def migrate(root: str, dry_run: bool, config: Path | None, output: Output) -> None:
    """Register the tables of a folder in its manifest.

    ROOT is a warehouse of the settings, a folder or a URI. Tables that only directory listing finds (V1) become
    tables of the manifest (V2); their files stay where they are. It can be stopped and run again. When every table
    is registered, dir_listing_enabled can be set to false.
    """
    settings = settings_of(config)
    from irc_bridge.cli.backends import migration_of

    migration = migration_of(root, settings)
    names = migration.names()
    done = list(_with_progress(migration.run(names, dry_run), len(names)))
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


def _with_progress(done: "Iterable[Migrated]", total: int) -> "Iterator[Migrated]":
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(done, "Registering", total=total, console=console, disable=not sys.stderr.isatty())
