"""Tables whose files are there and whose names are gone."""

from collections.abc import Iterator

from irc_bridge.backends.directory.folders import Folders, FolderState
from irc_bridge.backends.directory.layout import hashed_object_id, listed_folder, listed_name
from irc_bridge.backends.directory.manifest import Manifest
from irc_bridge.backends.directory.moving import MOVING
from irc_bridge.backends.directory.names import levels
from irc_bridge.catalog.models import Levels
from irc_bridge.lance_store.table_folders import MANIFEST
from irc_bridge.storage.base import Storage


def marked(folders: Folders) -> Iterator[tuple[Levels, str]]:
    """Names and folders that directory listing passes over because of their marker."""
    for name in folders.names():
        path = listed_folder(name)
        if folders.is_hidden(path):
            yield (name,), path


def unclaimed(
    storage: Storage, folders: Folders, manifest: Manifest, listing: bool
) -> Iterator[tuple[Levels, str]]:
    """Names and folders that no row names. With `listing` those that it finds are tables."""
    folders_there = sorted(storage.folders())
    objects = manifest.objects()
    for path in folders_there:
        object_id = listed_name(path) or hashed_object_id(path)
        if path == MANIFEST or object_id is None or objects.at(path) is not None:
            continue
        if listing and listed_name(path) and folders.state(path) is not FolderState.DEREGISTERED:
            continue
        if folders.is_lance(path) and MOVING not in storage.names(path):
            yield levels(object_id), path
