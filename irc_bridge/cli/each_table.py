"""Work on several tables, one after the other, for commands."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import click

from irc_bridge.catalog.models import Levels
from irc_bridge.catalog.ports import Catalog
from irc_bridge.catalog.walking import tables_below
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.cli.output import warn
from irc_bridge.cli.tables import NamedTable, iceberg_name, named_table
from irc_bridge.errors import BridgeError, NotFound

T = TypeVar("T")

Tables = Callable[[], Iterable[NamedTable]]
"""Those that there are at the moment."""
Work = Callable[[str, Catalog, Levels], T]


def chosen_tables(warehouses: Warehouses, names: tuple[str, ...], everything: bool) -> Tables:
    if everything == bool(names):
        raise click.UsageError("Name tables, or give --all.")
    named = [named_table(warehouses, each) for each in names]
    return (lambda: _all(warehouses)) if everything else (lambda: named)


def each_table(tables: Tables, work: Work[T], everything: bool) -> Iterator[tuple[str, T | BridgeError]]:
    """By the name of the table. An error is that of one table only; what is no Lance table, or was dropped
    meanwhile, does not belong to everything."""
    for warehouse, table in tables():
        name = iceberg_name(warehouse, table)
        try:
            yield name, work(name, warehouse.catalog, table)
        except NotFound as error:
            if not everything:
                yield name, error
        except BridgeError as error:
            yield name, error


def results_of(done: Iterable[tuple[str, T | BridgeError]]) -> tuple[list[T], bool]:
    """The results, and whether there was no error. Errors are written to standard error."""
    found: list[T] = []
    whole = True
    for name, each in done:
        if isinstance(each, BridgeError):
            warn(f"{name}: {each.message}")
            whole = False
        else:
            found.append(each)
    return found, whole


def _all(warehouses: Warehouses) -> Iterator[NamedTable]:
    for warehouse in warehouses.values():
        for table in tables_below(warehouse.catalog):
            yield NamedTable(warehouse, table)
