"""From V1 to V2: the tables that directory listing finds get rows. Their folders stay where they are, so that it
can be stopped at any time, run again, and run beside servers."""

from collections.abc import Iterator, Sequence

from irc_bridge.backends.directory.folders import Folders, FolderState
from irc_bridge.backends.directory.layout import listed_folder, listed_name
from irc_bridge.backends.directory.manifest import Change, Manifest
from irc_bridge.backends.directory.names import require_valid_table
from irc_bridge.backends.directory.objects import TABLE, Objects, Row, metadata_text
from irc_bridge.catalog.models import Migrated
from irc_bridge.errors import BridgeError, InvalidInput
from irc_bridge.lance_store.storage import Storage
from irc_bridge.lance_store.tables import LanceTables

_AT_ONCE = 500


class Migration:
    def __init__(self, storage: Storage) -> None:
        tables = LanceTables(storage)
        self._storage = storage
        self._folders = Folders(storage)
        self._manifest = Manifest(storage, tables, manage_versions=False)

    def names(self) -> list[str]:
        """Of all folders that look like tables."""
        self._storage.check()
        if self._storage.local and self._storage.identity("") is None:
            raise InvalidInput(f"There is no folder {self._storage.location()}")
        return sorted(name for folder in self._storage.folders() if (name := listed_name(folder)) is not None)

    def run(self, all_names: Sequence[str], dry_run: bool) -> Iterator[Migrated]:
        """What becomes of each of them, in their order."""
        for names in _batches(all_names):
            reasons = {name: self._why_not(self._manifest.objects(), name) for name in names}
            wanted = [name for name in names if reasons[name] is None]
            if wanted and not dry_run:
                reasons |= self._register(wanted)
            for name in names:
                yield Migrated(name, self._storage.location(listed_folder(name)), reasons[name])

    def _register(self, names: Sequence[str]) -> dict[str, str | None]:
        rows = {}
        for name in names:
            path = listed_folder(name)
            rows[name] = Row(name, TABLE, path, metadata_text(None, self._folders.kept(path)))

        def register(objects: Objects) -> Change[dict[str, str | None]]:
            reasons = {name: self._why_not(objects, name) for name in names}
            return Change(reasons, put=tuple(row for name, row in rows.items() if reasons[name] is None))

        return self._manifest.change(register)

    def _why_not(self, objects: Objects, name: str) -> str | None:
        """Why the folder gets no row."""
        path = listed_folder(name)
        holder = objects.at(path)
        if holder == name:
            return "is in the manifest already"
        if holder is not None:
            return f"its folder belongs to {holder}"
        if (row := objects.row(name)) is not None:
            return f"the manifest has a {row.object_type} of that name"
        try:
            require_valid_table((name,))
            state = self._folders.state(path)
        except BridgeError as error:
            return error.message
        if state is FolderState.DEREGISTERED:
            return "is deregistered"
        if state is FolderState.NOTHING or not self._folders.is_lance(path):
            return "holds no Lance table"
        return None


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _AT_ONCE):
        yield names[start : start + _AT_ONCE]
