"""Changes to the tables of `__manifest`."""

from collections.abc import Callable, Mapping, Set
from dataclasses import replace

from irc_bridge.backends.directory.folders import Folders, FolderState
from irc_bridge.backends.directory.layout import parts_above
from irc_bridge.backends.directory.manifest import Change, Manifest
from irc_bridge.backends.directory.names import object_id
from irc_bridge.backends.directory.namespaces import require_free, require_namespace
from irc_bridge.backends.directory.objects import TABLE, Objects, Row, metadata_text, version_id, with_moved_from
from irc_bridge.catalog.models import Levels
from irc_bridge.lance_catalog.errors import LocationOverlaps, committed_meanwhile, no_table
from irc_bridge.lance_catalog.names import ResolvedTable
from irc_bridge.lance_store.failures import Lost
from irc_bridge.storage.base import Storage


class TableRows:
    def __init__(self, storage: Storage, manifest: Manifest, folders: Folders) -> None:
        self._storage = storage
        self._manifest = manifest
        self._folders = folders

    def holder(self, folder: str) -> str | None:
        """The id of the table that claims a folder."""
        return self._manifest.objects().at(folder)

    def row(self, table: Levels) -> Row | None:
        return self._manifest.objects().table(object_id(table))

    def versions(self, table: Levels) -> Set[int]:
        return self._manifest.objects().versions(object_id(table)).keys()

    def is_claimed(self, path: str) -> bool:
        """Whether a table lies in a folder, or in one above or below it."""
        return self._manifest.objects().overlapping(path) is not None

    def insert(
        self, table: Levels, path: str, properties: Mapping[str, str], require_whole: Callable[[], None]
    ) -> None:
        """`require_whole` raises when the folder is not that of the table any more. It is asked on the rows that
        the change is made on: a drop marks the folder first and changes the rows then, so that one of the two sees
        the other."""
        row = Row(object_id(table), TABLE, path, metadata_text(None, properties))

        def insert(objects: Objects) -> Change[None]:
            require_namespace(objects, table[:-1])
            require_free(objects, table)
            self.require_unclaimed(objects, path)
            require_whole()
            return Change(None, put=(row,))

        self._manifest.change(insert)

    def forget(self, table: Levels, path: str, is_marked: Callable[[], bool]) -> None:
        """Raises Lost when the marker of the folder is not there any more: then the table is another one."""

        def forget(objects: Objects) -> Change[None]:
            row = require_row(objects, table, path)
            if not is_marked():
                raise Lost(f"{self._storage.location(path)} was changed by others")
            return Change(None, drop=_with_versions(objects, row))

        self._manifest.change(forget)

    def forget_folder(self, path: str) -> None:
        """The row of the table that somebody just made in a folder. One that is on its way is refused then."""

        def forget(objects: Objects) -> Change[None]:
            row = objects.table(objects.at(path) or "")
            is_there = row is not None and row.location == path
            return Change(None, drop=_with_versions(objects, row) if row and is_there else (), ordered=True)

        self._manifest.change(forget)

    def keep(self, resolved: ResolvedTable, properties: Mapping[str, str]) -> None:
        """Raises Lost when others changed them."""

        def keep(objects: Objects) -> Change[None]:
            row = require_row(objects, resolved.name, resolved.path)
            if row.properties != resolved.properties:
                raise Lost(f"The properties of {row.object_id} were changed by another writer")
            return Change(None, put=(replace(row, metadata=metadata_text(row.metadata, properties)),))

        self._manifest.change(keep)

    def rename(self, old: Levels, new: Levels, path: str) -> None:
        def rename(objects: Objects) -> Change[None]:
            row = require_row(objects, old, path)
            _require_place(objects, new)
            return _renamed(objects, row, replace(row, object_id=object_id(new)))

        self._manifest.change(rename)

    def move(
        self, resolved: ResolvedTable, new: Levels, to: str, versions: Set[int], properties: Mapping[str, str]
    ) -> None:
        """Renames and leads to another folder; the row remembers the old one. `versions` are those that the table
        had rows for before its files were copied, `properties` are added to those of the row."""
        path = resolved.path

        def move(objects: Objects) -> Change[None]:
            if resolved.properties is not None:
                row = require_row(objects, resolved.name, path)
            elif objects.at(path) is not None or self._folders.state(path) is not FolderState.TABLE:
                raise no_table(resolved.name)
            else:
                row = Row("", TABLE, path)
            row = replace(row, metadata=metadata_text(row.metadata, {**row.properties, **properties}))
            if objects.versions(row.object_id).keys() - versions:
                raise committed_meanwhile(self._storage.location(path))
            _require_place(objects, new)
            moved = with_moved_from(replace(row, object_id=object_id(new), location=to), path)
            return _renamed(objects, row, moved)

        self._manifest.change(move)

    def has_left(self, table: Levels, folder: str) -> bool:
        """Whether a renamed table has nothing to do with its old folder any more."""
        row = self.row(table)
        return row is None or row.moved_from != folder

    def has_moved(self, table: Levels, path: str) -> None:
        def has_moved(objects: Objects) -> Change[None]:
            return Change(None, put=(with_moved_from(require_row(objects, table, path), None),))

        self._manifest.change(has_moved)

    def require_unclaimed(self, objects: Objects, path: str) -> None:
        other = objects.overlapping(path)
        if other is None:
            other = next((each for each in parts_above(path) if self._folders.is_lance(each)), None)
        if other is not None:
            raise LocationOverlaps(
                f"Location {self._storage.location(path)} overlaps that of another table, "
                f"{self._storage.location(other)}"
            )


def _renamed(objects: Objects, old: Row, new: Row) -> Change[None]:
    """The rows of its versions go with the table."""
    versions = objects.versions(old.object_id).items()
    carried = (replace(row, object_id=version_id(new.object_id, version)) for version, row in versions)
    return Change(None, put=(new, *carried), drop=(old.object_id, *(row.object_id for _, row in versions)))


def _with_versions(objects: Objects, row: Row) -> tuple[str, ...]:
    return (row.object_id, *(each.object_id for each in objects.versions(row.object_id).values()))


def _require_place(objects: Objects, table: Levels) -> None:
    require_namespace(objects, table[:-1])
    require_free(objects, table)


def require_row(objects: Objects, table: Levels, path: str) -> Row:
    row = objects.table(object_id(table))
    if row is None or row.location != path:
        raise no_table(table)
    return row
