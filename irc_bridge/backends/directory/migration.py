"""From V1 to V2: the tables that directory listing finds get rows. Their folders stay where they are, so that it
can be stopped at any time, run again, and run beside servers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from irc_bridge.backends.directory.folders import Folders, FolderState
from irc_bridge.backends.directory.layout import listed_folder, listed_name
from irc_bridge.backends.directory.manifest import Change, Manifest
from irc_bridge.backends.directory.names import require_valid_table
from irc_bridge.backends.directory.objects import TABLE, Objects, Row, metadata_text
from irc_bridge.catalog.models import Migrated
from irc_bridge.errors import BridgeError, InvalidInput
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.storage.base import Storage, open_storage

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class FolderContent:
    """The content of a folder that looks like a table."""

    why_not: str | None
    """Why it is none."""
    kept: Mapping[str, str]
    """The properties that wait for its first version."""


Look = Callable[[Sequence[str]], Iterable[FolderContent]]


@dataclass(frozen=True, slots=True)
class LookInto:
    """Looks into folders of a root, in any process."""

    root: str
    options: Mapping[str, str]

    def __call__(self, names: Sequence[str]) -> list[FolderContent]:
        folders = Folders(open_storage(self.root, self.options))
        return [_content_of(folders, name) for name in names]


class Migration:
    def __init__(self, storage: Storage) -> None:
        tables = LanceTables(storage)
        self._storage = storage
        self._folders = Folders(storage)
        self._manifest = Manifest(storage, tables, manage_versions=False)

    @property
    def look_into(self) -> LookInto:
        return LookInto(self._storage.location(), self._storage.options)

    def names(self) -> list[str]:
        """Of all folders that look like tables."""
        self._storage.check()
        if self._storage.local and self._storage.identity("") is None:
            raise InvalidInput(f"There is no folder {self._storage.location()}")
        return sorted(name for folder in self._storage.folders() if (name := listed_name(folder)) is not None)

    def run(self, all_names: Sequence[str], dry_run: bool, look: Look | None = None) -> Iterator[Migrated]:
        """The outcome for each name, in the order of the names. `look` gives what other processes saw in the
        folders; without it this process looks into them, and once more before it makes a row."""
        for names in _batches(all_names):
            reasons = {name: _why_no_row(self._manifest.objects(), name) for name in names}
            new = [name for name in names if reasons[name] is None]
            seen = dict(zip(new, look(new) if look else map(self._look, new), strict=True))
            reasons |= {name: each.why_not for name, each in seen.items()}
            wanted = {name: each.kept for name, each in seen.items() if each.why_not is None}
            if wanted and not dry_run:
                reasons |= self._register(wanted, look_again=look is None)
            for name in names:
                yield Migrated(name, self._storage.location(listed_folder(name)), reasons[name])

    def _look(self, name: str) -> FolderContent:
        return _content_of(self._folders, name)

    def _register(self, wanted: Mapping[str, Mapping[str, str]], look_again: bool) -> dict[str, str | None]:
        rows = {
            name: Row(name, TABLE, listed_folder(name), metadata_text(None, kept)) for name, kept in wanted.items()
        }

        def register(objects: Objects) -> Change[dict[str, str | None]]:
            reasons = {name: _why_no_row(objects, name) for name in rows}
            if look_again:
                reasons |= {name: self._look(name).why_not for name, why in reasons.items() if why is None}
            return Change(reasons, put=tuple(row for name, row in rows.items() if reasons[name] is None))

        return self._manifest.change(register)


def _why_no_row(objects: Objects, name: str) -> str | None:
    """Of names and folders that are taken."""
    holder = objects.at(listed_folder(name))
    if holder == name:
        return "is in the manifest already"
    if holder is not None:
        return f"its folder belongs to {holder}"
    if (row := objects.row(name)) is not None:
        return f"the manifest has a {row.object_type} of that name"
    return None


def _content_of(folders: Folders, name: str) -> FolderContent:
    path = listed_folder(name)
    why_not = None
    try:
        require_valid_table((name,))
        state = folders.state(path)
        if state is FolderState.DEREGISTERED:
            why_not = "is deregistered"
        elif state is FolderState.NOTHING or not folders.is_lance(path):
            why_not = "holds no Lance table"
        return FolderContent(why_not, folders.kept(path) if why_not is None else {})
    except BridgeError as error:
        return FolderContent(error.message, {})


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _AT_ONCE):
        yield names[start : start + _AT_ONCE]
