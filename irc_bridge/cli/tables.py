"""Tables as commands name them: WAREHOUSE.NAMESPACE.TABLE, with the names that Iceberg clients see."""

from typing import NamedTuple

from irc_bridge.catalog.models import Levels
from irc_bridge.catalog.warehouses import Warehouse, Warehouses
from irc_bridge.errors import InvalidInput
from irc_bridge.names import dotted, quoted


class NamedTable(NamedTuple):
    warehouse: Warehouse
    table: Levels
    """As the catalog names it."""


def named_table(warehouses: Warehouses, name: str) -> NamedTable:
    """A name that holds a dot stands between backticks."""
    levels = _levels(name)
    if len(levels) < 3:
        raise InvalidInput(f"{name} is not WAREHOUSE.NAMESPACE.TABLE, such as main.default.products")
    warehouse = warehouses[levels[0]]
    namespace = levels[1:-1]
    if namespace[0] == warehouse.root_namespace:
        if len(namespace) > 1:
            raise InvalidInput(f"{name}: the namespace {namespace[0]} has no others in it")
        namespace = ()
    return NamedTable(warehouse, (*namespace, levels[-1]))


def iceberg_name(warehouse: Warehouse, table: Levels) -> str:
    """The way back."""
    root = () if warehouse.root_namespace is None or len(table) > 1 else (warehouse.root_namespace,)
    return dotted(tuple(quoted(each) for each in (warehouse.name, *root, *table)))


def _levels(name: str) -> Levels:
    levels, rest = [], name
    while rest:
        if rest.startswith("`"):
            level, quote, rest = rest[1:].partition("`")
            if not quote or (rest and not rest.startswith(".")):
                raise InvalidInput(f"{name}: a backtick begins a name that another one does not end")
            rest = rest.removeprefix(".")
        else:
            level, _, rest = rest.partition(".")
        levels.append(level)
    if not all(levels) or name.endswith("."):
        raise InvalidInput(f"{name} has a name without letters in it")
    return tuple(levels)
