from collections.abc import Mapping

from irc_bridge.catalog.ports import Catalog
from irc_bridge.errors import InvalidInput

_NO_OPTIONS: Mapping[str, str] = {}


def open_directory(
    root: str,
    *,
    manifest_enabled: bool = True,
    dir_listing_enabled: bool = True,
    storage_options: Mapping[str, str] = _NO_OPTIONS,
) -> Catalog:
    """A folder of Lance tables. Opening it reads and writes nothing."""
    if not manifest_enabled and not dir_listing_enabled:
        raise InvalidInput(f"{root} has neither manifest_enabled nor dir_listing_enabled: set one of them")
    # late, because Lance takes a while to import
    from irc_bridge.backends.directory.folder_catalog import FolderCatalog
    from irc_bridge.backends.directory.manifest_catalog import ManifestCatalog
    from irc_bridge.lance_store.storage import open_storage

    storage = open_storage(root, storage_options)
    if manifest_enabled:
        return ManifestCatalog(storage, listing=dir_listing_enabled)
    return FolderCatalog(storage)
