"""Where the Parquet copy of a table lies, and which versions it has: those with a manifest list of their name."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b

from irc_bridge.catalog.models import TableVersion
from irc_bridge.catalog.properties import ENGINE_DATA, ENGINE_METADATA
from irc_bridge.storage.base import Storage
from irc_bridge.storage.layout import LISTS, MIRROR
from irc_bridge.storage.locations import place_of

DATA = f"{MIRROR}/data"
MANIFESTS = f"{MIRROR}/manifests"
LOGS = f"{MIRROR}/log"
EMPTY_LIST = "no-rows.avro"
"""The manifest list that names no manifest: the copy of every version without rows."""
_NAME = re.compile(r"([1-9]\d{0,18})-[0-9a-f]{16}\.avro")


def list_name(location: str, version: int, timestamp_ms: int) -> str:
    """The name of a version's manifest list. Paths in it are absolute, and a table made anew counts from 1 again:
    so the name says of which version in which place it is."""
    digest = blake2b(f"{location}\n{version}\n{timestamp_ms}".encode(), digest_size=8).hexdigest()
    return f"{version}-{digest}.avro"


@dataclass(frozen=True, slots=True)
class ManifestLists:
    """The names in the folder of the manifest lists of a table."""

    location: str
    """The table's."""
    names: frozenset[str]

    @classmethod
    def at(cls, storage: Storage, path: str) -> "ManifestLists":
        return cls(storage.location(path), frozenset(storage.names(f"{path}/{LISTS}")))

    @property
    def empty(self) -> str | None:
        """The URI of the list without manifests, where the table has it."""
        return place_of(self.location, f"{LISTS}/{EMPTY_LIST}") if EMPTY_LIST in self.names else None

    def numbers(self) -> list[int]:
        """Of versions that may have one, the newest first."""
        return sorted({int(match[1]) for name in self.names if (match := _NAME.fullmatch(name))}, reverse=True)

    def of(self, versions: Iterable[TableVersion]) -> dict[int, str]:
        """The URIs of those that these versions have."""
        named = {each.version: list_name(self.location, each.version, each.timestamp_ms) for each in versions}
        return {
            each: place_of(self.location, f"{LISTS}/{name}") for each, name in named.items() if name in self.names
        }


def is_version_list(name: str) -> bool:
    """Whether a file among the manifest lists is that of one version."""
    return _NAME.fullmatch(name) is not None


def prepare_for_engines(
    storage: Storage, path: str, empty_list: bytes | None, is_still_there: Callable[[], bool]
) -> str | None:
    """Makes the folders in which Iceberg clients may leave files, which DuckDB does not make, and stores the list
    without manifests if its content is given; gives the URI of that list. A table that was dropped meanwhile gets
    nothing: its folder would be there again."""
    for folder in (ENGINE_DATA, ENGINE_METADATA):
        storage.make_folder(f"{path}/{folder}")
    file = f"{path}/{LISTS}/{EMPTY_LIST}"
    if empty_list is not None:
        storage.put_if_absent(file, empty_list)
    if not is_still_there():
        storage.delete(file)
        remove_engine_folders(storage, path)
    return None if empty_list is None else place_of(storage.location(path), f"{LISTS}/{EMPTY_LIST}")


def remove_engine_folders(storage: Storage, path: str) -> None:
    """Removes the folders for files of Iceberg clients if they are empty."""
    for folder in (ENGINE_DATA, ENGINE_METADATA):
        # a storage removes folders that are empty after a file, also after one that was not there
        storage.delete(f"{path}/{folder}/none")
