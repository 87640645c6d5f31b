"""Where tables are kept. Each backend has `settings.py` with its `BackendSettings`, and `open(name, settings)`."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from irc_bridge.catalog.ports import Catalog
    from irc_bridge.settings_fields import WarehouseSettings

BACKENDS: Mapping[str, str] = {
    "dir": "irc_bridge.backends.directory",
    "irc": "irc_bridge.backends.upstream",
}
"""The module of each backend, by its name in irc-bridge.toml."""


class OpenBackend(NamedTuple):
    catalog: "Catalog"
    root_namespace: str | None = None
    """The Iceberg namespace in which the tables of the catalog's root namespace appear."""


def settings_models() -> "Mapping[str, type[WarehouseSettings]]":
    return {name: import_module(f"{module}.settings").BackendSettings for name, module in BACKENDS.items()}


def open_backend(name: str, settings: "WarehouseSettings") -> OpenBackend:
    """`name` is that of the warehouse. Opening reads and writes nothing, or what shows that the settings fit."""
    opened: OpenBackend = import_module(BACKENDS[settings.backend]).open(name, settings)
    return opened
