"""Removing what no reader can need any more. Looks at the mirror's own folder only, never at a Lance file."""

from collections.abc import Iterable
from dataclasses import dataclass

from irc_bridge.catalog.models import TableInfo
from irc_bridge.catalog.properties import ENGINE_DATA, ENGINE_METADATA
from irc_bridge.lance_store.mirror_layout import DATA, LOGS, MANIFESTS, is_version_list, list_name
from irc_bridge.mirror.avro import read_list, read_manifest
from irc_bridge.mirror.pieces import Source
from irc_bridge.storage.base import Storage, open_storage
from irc_bridge.storage.layout import LISTS, MIRROR
from irc_bridge.storage.locations import path_below

EXPIRED = f"{MIRROR}/expired"
"""Holds an empty file by the name of each manifest list whose version was found to be gone."""
_DAY_MS = 24 * 3600 * 1000
_KEPT_LOGS_MS = 30 * _DAY_MS


@dataclass(frozen=True, slots=True)
class Expired:
    versions: int
    waiting: int
    """Versions that are gone, but for less time than the grace."""
    files: int


def expire(source: Source, info: TableInfo, grace_ms: int, now_ms: int) -> Expired:
    """Versions that Lance has cleaned up go `grace_ms` after they were first found to be gone, since a query that
    runs may still read them. What a mirror run left that died goes after a day."""
    storage = open_storage(source.location, source.options)
    names = set(filter(is_version_list, storage.names(LISTS)))
    gone = names - {list_name(source.location, each.version, each.timestamp_ms) for each in info.versions}
    due = {name for name in gone if _found_gone_ms(storage, name, now_ms) + grace_ms <= now_ms}
    live = _files_of(storage, source, names - due)
    dead = _files_of(storage, source, due) - live
    for name in due:
        storage.delete(f"{LISTS}/{name}")
    # who dies here leaves files that no list names: they go after a day
    dead |= _older(storage, (DATA, MANIFESTS), now_ms - _DAY_MS) - live
    # no version ever names what an Iceberg client wrote before its commit was refused
    dead |= _older(storage, (ENGINE_DATA, ENGINE_METADATA), now_ms - _DAY_MS)
    dead |= _older(storage, (LOGS,), now_ms - _KEPT_LOGS_MS)
    for path in dead:
        storage.delete(path)
    for name in due:
        storage.delete(f"{EXPIRED}/{name}")
    return Expired(len(due), len(gone) - len(due), len(dead))


def _found_gone_ms(storage: Storage, name: str, now_ms: int) -> int:
    mark = f"{EXPIRED}/{name}"
    found = storage.modified_ms(mark)
    if found is None:
        storage.put_if_absent(mark, b"")
    return now_ms if found is None else found


def _files_of(storage: Storage, source: Source, lists: Iterable[str]) -> set[str]:
    """The paths of the manifests and files that these lists lead to. A list that another run removed meanwhile
    leads to none."""
    read: dict[str, set[str]] = {}
    for name in lists:
        content = storage.read(f"{LISTS}/{name}")
        for manifest in () if content is None else read_list(storage.location(f"{LISTS}/{name}"), content):
            path = path_below(source.location, manifest.manifest_path)
            if path not in read:
                entries = read_manifest(manifest, storage.read(path) or b"").entries
                files = (path_below(source.location, entry.data_file.file_path) for entry in entries)
                read[path] = {path, *files}
    return set().union(*read.values())


def _older(storage: Storage, folders: Iterable[str], than_ms: int) -> set[str]:
    return {
        f"{folder}/{each.name}"
        for folder in folders
        for each in storage.attributes(folder, storage.names(folder))
        if each.modified_ms < than_ms
    }
