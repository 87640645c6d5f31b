"""Where the Parquet copy of a table lies, and which versions it has: those with a manifest list of their name."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from irc_bridge.catalog.models import TableVersion
from irc_bridge.lance_store.locations import place_of
from irc_bridge.lance_store.storage import Storage

MIRROR = "_iceberg"
LISTS = f"{MIRROR}/versions"
DATA = f"{MIRROR}/data"
MANIFESTS = f"{MIRROR}/manifests"
LOGS = f"{MIRROR}/log"
_NAME = re.compile(r"([1-9]\d{0,18})-[0-9a-f]{16}\.avro")


def list_name(location: str, version: int, timestamp_ms: int) -> str:
    """The name of a version's manifest list. Paths in it are absolute, and a table made anew counts from 1 again:
    so the name says of which version in which place it is."""
    digest = blake2b(f"{location}\n{version}\n{timestamp_ms}".encode(), digest_size=8).hexdigest()
    return f"{version}-{digest}.avro"


@dataclass(frozen=True, slots=True)
class ManifestLists:
    """What lies in the folder of the manifest lists of a table."""

    location: str
    """The table's."""
    names: frozenset[str]

    @classmethod
    def at(cls, storage: Storage, path: str) -> "ManifestLists":
        return cls(storage.location(path), frozenset(storage.names(f"{path}/{LISTS}")))

    def numbers(self) -> list[int]:
        """Of versions that may have one, the newest first."""
        return sorted({int(match[1]) for name in self.names if (match := _NAME.fullmatch(name))}, reverse=True)

    def of(self, versions: Iterable[TableVersion]) -> dict[int, str]:
        """The URIs of those that these versions have."""
        named = {each.version: list_name(self.location, each.version, each.timestamp_ms) for each in versions}
        return {
            each: place_of(self.location, f"{LISTS}/{name}") for each, name in named.items() if name in self.names
        }
