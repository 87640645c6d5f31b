import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from irc_bridge.cli.options import config_option, settings_of
from irc_bridge.cli.output import Output, note, output_option, warn
from irc_bridge.cli.spark_options import spark_options
from irc_bridge.errors import BridgeError

if TYPE_CHECKING:
    from irc_bridge.pipeline.mirroring import Report

    Outcome = Report | BridgeError | None


@click.command()
@click.argument("tables", metavar="[WAREHOUSE.NS.TABLE]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All Lance tables of all warehouses.")
@click.option(
    "--versions",
    default="latest",
    show_default=True,
    metavar="latest|all|A..B",
    help="Which versions engines shall be able to read, besides those that they can read already.",
)
@click.option("--follow", is_flag=True, help="Go on with new versions until stopped.")
@click.option(
    "--every",
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    help="How often to look for them.",
)
@spark_options
@config_option
@output_option
def mirror(
    tables: tuple[str, ...],
    everything: bool,
    versions: str,
    follow: bool,
    every: float,
    master: str | None,
    conf: Mapping[str, str],
    config: Path | None,
    output: Output,
) -> None:
    """Copy versions of Lance tables to Parquet, for every Iceberg engine.

    The copy lies in the folder _iceberg of a table, with an Iceberg snapshot for each version. What did not change
    since another version is not copied again. It can be stopped and run again at any time, several at once too.
    """
    settings = settings_of(config)
    from irc_bridge.cli.backends import open_warehouses
    from irc_bridge.cli.each_table import chosen_tables, each_table, results_of
    from irc_bridge.pipeline.mirroring import Mirroring, Versions, on_spark
    from irc_bridge.pipeline.session import session_when_needed

    wanted = Versions.parse(versions)
    chosen = chosen_tables(open_warehouses(settings), tables, everything)
    with session_when_needed("irc-bridge mirror", master, conf) as session:
        mirroring = Mirroring(wanted, on_spark(session))
        if follow:
            _follow(lambda: each_table(chosen, mirroring.bring, everything), every, output)
        reports, whole = results_of(each_table(chosen, mirroring.bring, everything))
    output.rows([report.summary() for report in reports if report is not None])
    if not whole:
        raise SystemExit(1)


def _follow(look: "Callable[[], Iterable[tuple[str, Outcome]]]", every: float, output: Output) -> NoReturn:
    note(f"Looking for new versions every {every:g} seconds. Stop with Ctrl-C.")
    said: dict[str, str] = {}
    pause = threading.Event()
    while True:
        for name, outcome in _without_end(look):
            message = outcome.message if isinstance(outcome, BridgeError) else ""
            if message and said.get(name) != message:
                warn(f"{name}: {message.rstrip('.')}. Trying again.")
            said[name] = message
            if outcome is not None and not isinstance(outcome, BridgeError) and outcome.versions:
                output.rows([outcome.summary()])
        pause.wait(every)


def _without_end(look: "Callable[[], Iterable[tuple[str, Outcome]]]") -> "Iterator[tuple[str, Outcome]]":
    """Tables cannot even be listed while a storage or a server is down."""
    try:
        yield from look()
    except BridgeError as error:
        yield "the list of tables", error
