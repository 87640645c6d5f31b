"""Properties that a directory keeps beside the versions of a table: in its row, or in the marker of its folder.
They wait for the first version, which has them as Lance table metadata."""

from collections.abc import Hashable, Mapping
from uuid import uuid4

from irc_bridge.backends.directory.folders import Folders
from irc_bridge.catalog.models import TABLE_UUID, NewTable
from irc_bridge.errors import BrokenTable
from irc_bridge.lance_catalog.commits import properties_after
from irc_bridge.lance_catalog.names import ResolvedTable
from irc_bridge.lance_catalog.versions import TableChange
from irc_bridge.lance_store.table_folders import RESERVED


def first_properties(new: NewTable) -> dict[str, str]:
    """The properties that a new table begins with."""
    return {TABLE_UUID: str(uuid4()), **new.properties}


def its_uuid(properties: Mapping[str, str]) -> dict[str, str]:
    return {TABLE_UUID: properties[TABLE_UUID]}


class TableProperties:
    def __init__(self, folders: Folders) -> None:
        self._folders = folders

    def kept(self, table: ResolvedTable) -> Mapping[str, str]:
        return self._folders.kept(table.path) if table.properties is None else table.properties

    def shown(self, kept: Mapping[str, str], metadata: Mapping[str, str]) -> dict[str, str]:
        return dict(sorted({**kept, **metadata}.items()))

    def updated_ms(self, table: ResolvedTable, latest_ms: int | None) -> int:
        """The time of the latest version; without versions when the folder was reserved. BrokenTable where it is
        not."""
        if latest_ms is not None:
            return latest_ms
        if not self._folders.is_reserved(table.path):
            raise BrokenTable(
                f"The folder {table.location} holds no version of a Lance table and no {RESERVED} marker. "
                f"Only this table is affected; restore its files or drop it."
            )
        return self._folders.reserved_ms(table.path)

    def identity(self, table: ResolvedTable, version: int) -> Hashable:
        """The folder; for a first version also what it is made for: a table that was dropped and declared again is
        another one."""
        if version > 1:
            return table.path
        return table.path, self.kept(table).get(TABLE_UUID), self._folders.is_reserved(table.path)

    def waiting_after(self, change: TableChange) -> dict[str, str] | None:
        """The properties that have to be kept after a commit. None where they are kept already."""
        if change.info is None:
            return None
        if change.new is None and change.info.latest is None:
            properties = properties_after(change.info, change.commit)
            return None if properties == change.info.properties else properties
        return {} if change.is_staged_here and self.kept(change.table) else None
