"""The one place that turns settings into backends."""

from typing import TYPE_CHECKING

from irc_bridge.backends import open_backend
from irc_bridge.backends.directory import open_migration
from irc_bridge.catalog.models import IcebergView
from irc_bridge.catalog.warehouses import Warehouse, Warehouses
from irc_bridge.durations import milliseconds
from irc_bridge.settings import Settings
from irc_bridge.settings_fields import WarehouseSettings

if TYPE_CHECKING:
    from irc_bridge.backends.directory.migration import Migration


def open_warehouses(settings: Settings) -> Warehouses:
    return Warehouses([_open(name, warehouse) for name, warehouse in settings.warehouses.items()])


def migration_of(root: str, settings: Settings) -> "Migration":
    """Of a warehouse or of any folder; the settings may hold the storage options of its root."""
    directories = {name: each for name, each in settings.warehouses.items() if each.folder_to_make is not None}
    known = directories.get(root) or next(
        (each for each in directories.values() if str(each.folder_to_make).rstrip("/") == root.rstrip("/")), None
    )
    return open_migration(root) if known is None else open_migration(str(known.folder_to_make), known.storage)


def _open(name: str, settings: WarehouseSettings) -> Warehouse:
    catalog, root_namespace = open_backend(name, settings)
    return Warehouse(
        name=name,
        catalog=catalog,
        root_namespace=root_namespace,
        read_only=settings.read_only,
        vend_credentials=settings.vend_credentials,
        default_managed_by=settings.default_managed_by,
        view=IcebergView(settings.mirror_lag, settings.schema_ids, settings.guard_snapshot),
        allow_expire=settings.allow_expire,
        purge_after_ms=None if settings.purge_after == "never" else milliseconds(settings.purge_after),
    )
