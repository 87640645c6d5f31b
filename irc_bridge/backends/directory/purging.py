"""The files of tables whose names are gone, in a directory."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from irc_bridge.backends.directory.folders import Folders
from irc_bridge.backends.directory.layout import is_plain
from irc_bridge.catalog.models import Deregistered, Levels, Purge
from irc_bridge.errors import ConcurrentModification, PermissionDenied
from irc_bridge.lance_store.folder_locks import FolderLock, FolderLocked, locked, require_unlocked
from irc_bridge.lance_store.purges import (
    ChangedAfterPurge,
    NotesInStorage,
    PurgeNote,
    Removal,
    content_of,
    delete_folder,
    is_changed,
    token_of,
)
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.names import dotted
from irc_bridge.storage.base import Storage

_ATTEMPTS = 100


def registered_again(table: Levels) -> ConcurrentModification:
    return ConcurrentModification(f"{dotted(table)} was registered again while it was dropped: try again")


class Purging:
    def __init__(
        self, storage: Storage, tables: LanceTables, folders: Folders, is_claimed: Callable[[str], bool]
    ) -> None:
        """`is_claimed` says whether a table of the catalog lies in a folder, or in one above or below it."""
        self._storage = storage
        self._tables = tables
        self._folders = folders
        self._is_claimed = is_claimed
        self._notes = NotesInStorage(storage)
        self._removal = Removal(self._notes, lambda note: is_claimed(note.place), is_changed, delete_folder)

    def purge(self, table: Levels, path: str, token: str, after_ms: int | None) -> bool:
        """Of a table whose name is gone and whose folder has the token. Files that go at once are gone on return.
        False when others registered the table before they went. FolderLocked when another process keeps
        the folder for long."""
        note = self._note_down(table, path, token, after_ms)
        for attempt in range(_ATTEMPTS if after_ms == 0 else 0):
            try:
                if self._remove(note):
                    return True
                if token_of(self._storage, path) != token:
                    is_gone = self._folders.is_hidden(path) or not self._folders.is_lance(path)
                    return is_gone or content_of(self._storage, path) != note.content
            except ChangedAfterPurge:
                # by a writer that had the table open: its version goes too
                pass
            except FolderLocked:
                if attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(min(0.1, 0.002 * attempt))
            note = self._note_down(table, path, token, after_ms)
        return True

    def wait_until_free(self, path: str) -> None:
        """FolderLocked when another process keeps the folder for long."""
        for attempt in range(_ATTEMPTS - 1):
            with suppress(FolderLocked):
                require_unlocked(self._storage, path)
                return
            time.sleep(min(0.1, 0.002 * attempt))
        require_unlocked(self._storage, path)

    def free_if_due(self, path: str) -> None:
        """Removes the files of a purged table when they are due, and waits for another process that does so, as
        long as that is no longer than usual."""
        with suppress(FolderLocked, ChangedAfterPurge):
            self.wait_until_free(path)
            note = self._notes.read(path)
            if note is not None and note.due_ms is not None and note.due_ms <= time.time_ns() // 1_000_000:
                self._remove(note)

    def pending(self) -> list[Purge]:
        """The purged tables whose files are there, as their notes say. Notes of folders that have a table again
        are forgotten: such a table may be deregistered later, and then its files stay."""
        notes = self._notes_of_folders()
        claimed = [note for note in notes if self._is_claimed(note.place)]
        for note in claimed:
            self._notes.delete(note.place)
        return [self._purge(note) for note in notes if note not in claimed]

    def remove(self, purge: Purge) -> bool:
        """False when there is nothing to remove any more."""
        path = self._storage.path_of(purge.location)
        note = self._notes.read(path) if path is not None else None
        return note is not None and self._purge(note) == purge and self._remove(note)

    def is_pending(self, path: str) -> bool:
        return self._notes.read(path) is not None

    def forget(self, path: str) -> None:
        """The folder is that of a table again, or of one that was only deregistered."""
        self._notes.delete(path)

    @contextmanager
    def registering(self, path: str) -> Iterator[FolderLock | None]:
        """Keeps others from removing the folder, or from making a table in it. FolderLocked while one does. None
        for a folder that must not be written: then nobody can do either."""
        with ExitStack() as stack:
            lock = None
            with suppress(PermissionDenied):
                lock = stack.enter_context(locked(self._storage, path, "register"))
            yield lock

    def among(self, deregistered: Iterator[tuple[Levels, str]]) -> Iterator[Deregistered]:
        """Tables without names, those that were purged with their notes. `deregistered` are names and folders."""
        notes: dict[str, PurgeNote] = {note.place: note for note in self._notes_of_folders()}
        for table, path in deregistered:
            yield self._deregistered(table, path, notes)
            notes.pop(path, None)
        for path, note in notes.items():
            if token_of(self._storage, path) == note.token and not self._is_claimed(path):
                yield self._deregistered(note.table, path, notes)

    def _deregistered(self, table: Levels, path: str, notes: Mapping[str, PurgeNote]) -> Deregistered:
        location, note = self._storage.location(path), notes.get(path)
        if note is None or token_of(self._storage, path) != note.token:
            return Deregistered(table, location)
        return Deregistered(note.table, location, self._purge(note), is_changed(self._storage, path, note))

    def _remove(self, note: PurgeNote) -> bool:
        self._folders.require_removable(note.place)
        is_removed = self._removal.remove(self._storage, note.place, note)
        self._tables.forget(note.place)
        return is_removed

    def _notes_of_folders(self) -> list[PurgeNote]:
        return [note for note in self._notes.all() if is_plain(note.place)]

    def _note_down(self, table: Levels, path: str, token: str, after_ms: int | None) -> PurgeNote:
        now_ms = time.time_ns() // 1_000_000
        due_ms = None if after_ms is None else now_ms + after_ms
        note = PurgeNote(table, path, token, content_of(self._storage, path), now_ms, due_ms)
        self._notes.write(note)
        return note

    def _purge(self, note: PurgeNote) -> Purge:
        return Purge(note.table, self._storage.location(note.place), note.purged_ms, note.due_ms)
