"""Lance tables in a directory: names are folders (V1) or rows of the table `__manifest` (V2), or both. Keepers of
names are `FolderNames` and `ManifestNames`; versions are files, or rows with `table_version_management`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from irc_bridge.backends import OpenBackend
from irc_bridge.errors import InvalidInput
from irc_bridge.names import quoted

if TYPE_CHECKING:
    from irc_bridge.backends.directory.migration import Migration
    from irc_bridge.backends.directory.settings import DirectorySettings
    from irc_bridge.lance_catalog.catalog import LanceCatalog

_NO_OPTIONS: Mapping[str, str] = {}


def open(name: str, settings: "DirectorySettings") -> OpenBackend:
    catalog = open_directory(
        settings.root,
        manifest_enabled=settings.manifest_enabled,
        dir_listing_enabled=settings.dir_listing_enabled,
        table_version_management=settings.table_version_management,
        storage_options=settings.storage,
        allowed_locations=settings.allowed_locations,
        shown_in=f"{name}.{quoted(settings.root_namespace)}",
    )
    if catalog.namespace_exists((settings.root_namespace,)):
        raise InvalidInput(
            f"Warehouse {name} has a namespace named {settings.root_namespace!r}, the name under which "
            f"the tables of its root appear: choose another one with warehouses.{name}.root_namespace"
        )
    return OpenBackend(catalog, settings.root_namespace)


def open_migration(root: str, storage_options: Mapping[str, str] = _NO_OPTIONS) -> "Migration":
    from irc_bridge.backends.directory.migration import Migration
    from irc_bridge.storage.base import open_storage

    return Migration(open_storage(root, storage_options))


def open_directory(
    root: str,
    *,
    manifest_enabled: bool = True,
    dir_listing_enabled: bool = True,
    table_version_management: bool = False,
    storage_options: Mapping[str, str] = _NO_OPTIONS,
    allowed_locations: Sequence[str] = (),
    shown_in: str = "WAREHOUSE.NAMESPACE",
) -> "LanceCatalog":
    """A folder of Lance tables, whose versions may name files in the root and in the allowed locations. Opening it
    reads and writes nothing. `shown_in` is what commands call the place of the tables of its root."""
    if not manifest_enabled and not dir_listing_enabled:
        raise InvalidInput(f"{root} has neither manifest_enabled nor dir_listing_enabled: set one of them")
    if table_version_management and not manifest_enabled:
        raise InvalidInput(f"{root} has table_version_management, which needs manifest_enabled: set that too")
    # late, because Lance takes a while to import
    from irc_bridge.backends.directory.folder_names import FolderNames
    from irc_bridge.backends.directory.manifest_names import ManifestNames
    from irc_bridge.lance_catalog.catalog import LanceCatalog
    from irc_bridge.lance_store.tables import LanceTables
    from irc_bridge.storage.base import open_storage

    storage = open_storage(root, storage_options, allowed_locations)
    tables = LanceTables(storage, [root, *allowed_locations])
    if not manifest_enabled:
        return LanceCatalog(FolderNames(storage, tables, shown_in))
    names = ManifestNames(storage, tables, dir_listing_enabled, table_version_management)
    return LanceCatalog(names, names if table_version_management else None)
