"""The files of one table, wherever they lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irc_bridge.catalog.models import VersionRecord
from irc_bridge.lance_store.mirror_layout import remove_engine_folders
from irc_bridge.lance_store.staged import Staged, require_of_table
from irc_bridge.storage.base import FileEntry, Storage
from irc_bridge.storage.layout import VERSIONS, version_of

if TYPE_CHECKING:
    # Lance takes a while to import, and a client that only lists names does not need it
    from irc_bridge.lance_store.tables import LanceTables
    from irc_bridge.lance_store.version_files import VersionFiles


@dataclass(frozen=True, slots=True)
class TableFiles:
    storage: Storage
    tables: "LanceTables"
    versions: "VersionFiles"
    path: str
    """The folder of the table in the storage."""

    @property
    def location(self) -> str:
        return self.storage.location(self.path)

    def newest(self) -> int | None:
        """The latest version that has a file. None when there is no version."""
        newest = self.tables.newest(self.path)
        return version_of(newest.name) if newest else None

    def holds(self, version: int) -> bool:
        return self.tables.manifest(self.path, version) is not None

    def require_of_table(self, staged: Staged, latest: int | None) -> None:
        """InvalidInput for a staged manifest of another table."""
        entry = self.tables.manifest(self.path, latest) if latest else None
        require_of_table(self.storage, self.path, staged, entry)

    def remove(self, doomed: Sequence[FileEntry]) -> None:
        """Removes these files and no others: the folder may have a new table already."""
        same = set(self.storage.tree(self.path)) & set(doomed)
        paths = [f"{self.path}/{each.name}" for each in sorted(same, key=lambda each: each.name)]
        for _ in self.storage.at_once(self.storage.delete, paths):
            pass
        remove_engine_folders(self.storage, self.path)
        self.tables.forget(self.path)

    def record(self, version: int) -> VersionRecord:
        """The entry of a version, read from its file. TableVersionNotFound."""
        entry = self.tables.manifest(self.path, version)
        found = self.storage.attributes(f"{self.path}/{VERSIONS}", [entry.name]) if entry else []
        for each in found:
            location = self.storage.location(f"{self.path}/{VERSIONS}/{each.name}")
            return VersionRecord(version, location, each.size, each.e_tag, each.modified_ms)
        raise self.versions.no_version(self.path, version)
