import re

from irc_bridge.backends.directory.folders import Folders, FolderState
from irc_bridge.backends.directory.layout import require_folder
from irc_bridge.catalog.models import History
from irc_bridge.errors import BrokenTable, InvalidInput
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.storage.base import Storage

_MANIFEST = re.compile(r"/_versions/[^/]+\.manifest$")


def registered_folder(storage: Storage, tables: LanceTables, folders: Folders, location: str) -> str:
    """The path of the Lance table at a location, which is its root or one of its manifests; without a scheme or a
    slash before it, one from the root of the warehouse. One that is only declared is a table when it was
    deregistered; otherwise somebody may be making it."""
    place = _MANIFEST.sub("", location).rstrip("/")
    path = storage.path_of(place) if ":" in place or place.startswith("/") else place
    if path is None:
        raise InvalidInput(f"Location {location[:200]!r} is not inside the warehouse root {storage.location()}")
    require_folder(storage, path, f"Location {location[:200]!r}")
    try:
        content = tables.read(path, History.HEADS)
    except BrokenTable as error:
        raise InvalidInput(f"There is no readable Lance table at {location}: {error.message}") from error
    if content is not None:
        tables.require_own_files(path, content.versions[-1].version)
    if content is None and not (folders.is_reserved(path) and folders.state(path) is FolderState.DEREGISTERED):
        raise InvalidInput(f"There is no Lance table at {location}")
    return path
