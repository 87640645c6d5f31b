"""The files of tables, for what the namespace itself does with them."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from irc_bridge.catalog.models import VersionRecord
from irc_bridge.errors import InvalidInput

if TYPE_CHECKING:
    from irc_bridge.lance_store.staged import Staged
    from irc_bridge.lance_store.storage import FileEntry, Storage
    from irc_bridge.lance_store.tables import LanceTables
    from irc_bridge.lance_store.version_files import VersionFiles

_KEPT = 32


@dataclass(frozen=True, slots=True)
class TableFiles:
    storage: "Storage"
    tables: "LanceTables"
    versions: "VersionFiles"
    path: str
    """The table's root in the storage."""

    @property
    def location(self) -> str:
        return self.storage.location(self.path)

    def newest(self) -> int | None:
        from irc_bridge.lance_store.manifests import version_of

        newest = self.tables.newest(self.path)
        return version_of(newest.name) if newest else None

    def holds(self, version: int) -> bool:
        return self.tables.manifest(self.path, version) is not None

    def require_of_table(self, staged: "Staged", latest: int | None) -> None:
        """InvalidInput for a staged manifest of another table."""
        from irc_bridge.lance_store.staged import require_of_table

        entry = self.tables.manifest(self.path, latest) if latest else None
        require_of_table(self.storage, self.path, staged, entry)

    def remove(self, doomed: Sequence["FileEntry"]) -> None:
        """Those files and no others: the place may have a new table already."""
        same = set(self.storage.tree(self.path)) & set(doomed)
        paths = [f"{self.path}/{each.name}" for each in sorted(same, key=lambda each: each.name)]
        for _ in self.storage.at_once(self.storage.delete, paths):
            pass
        self.tables.forget(self.path)

    def record(self, version: int) -> VersionRecord:
        """TableVersionNotFound."""
        from irc_bridge.lance_store.manifests import VERSIONS

        entry = self.tables.manifest(self.path, version)
        found = self.storage.attributes(f"{self.path}/{VERSIONS}", [entry.name]) if entry else []
        for each in found:
            location = self.storage.location(f"{self.path}/{VERSIONS}/{each.name}")
            return VersionRecord(version, location, each.size, each.e_tag, each.modified_ms)
        raise self.versions.no_version(self.path, version)


class Files:
    """Storages stay open while tables below the same root are used with the same options."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[Any, TableFiles] = OrderedDict()

    def of(self, location: str, options: Mapping[str, str]) -> TableFiles:
        place = _place(location)
        root, _, name = place.rpartition("/")
        if not root or root.endswith("/") or not name:
            raise InvalidInput(f"The location {location} cannot be that of a table: it needs a folder above it")
        key = (root, frozenset(options.items()))
        with self._lock:
            opened = self._open.pop(key, None) or _open(root, options)
            self._open[key] = opened
            while len(self._open) > _KEPT:
                self._open.popitem(last=False)
        path = opened.storage.path_of(place)
        assert path is not None, location
        return TableFiles(opened.storage, opened.tables, opened.versions, path)


def _open(root: str, options: Mapping[str, str]) -> TableFiles:
    from irc_bridge.lance_store.storage import open_storage
    from irc_bridge.lance_store.tables import LanceTables
    from irc_bridge.lance_store.version_files import VersionFiles

    storage = open_storage(root, options)
    tables = LanceTables(storage)
    return TableFiles(storage, tables, VersionFiles(storage, tables), "")


def below(root: str, path: str) -> str:
    """The location of a path below a root that a person wrote."""
    from irc_bridge.lance_store.locations import LOCAL, encoded, file_uri, local_path, scheme_of

    above = local_path(root) if scheme_of(root) == LOCAL else root
    inside = f"{above.rstrip('/')}/"
    return file_uri(inside + path) if scheme_of(root) == LOCAL else inside + encoded(path)


def is_local(location: str) -> bool:
    from irc_bridge.lance_store.locations import LOCAL, scheme_of

    return scheme_of(location) == LOCAL


def same_place(one: str, other: str) -> bool:
    """Whichever way they are written."""
    return _place(one) == _place(other)


def _place(location: str) -> str:
    from irc_bridge.lance_store.locations import file_uri, local_path

    return file_uri(local_path(location)) if is_local(location) else location.rstrip("/")


def from_store_root(location: str) -> str:
    """As Lance names files: from the root of the storage system, without a slash, nothing encoded."""
    _, _, rest = location.partition("://")
    return unquote(rest.partition("/")[2])
