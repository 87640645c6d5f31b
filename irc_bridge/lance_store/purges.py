"""Purged tables: the name is gone at once, the files stay until a time, and then only go if nobody needs them.

A purge marks the folder (`.lance-deregistered`, with a token that is never used twice), takes the name away, and
writes a note that holds the token, when the files go, and what the latest version was. So a note counts only as
long as its token is in the folder: who registers the table removes the marker, and a table that is dropped once
more gets another token.

    step of a purge                        a crash after it leaves
    1 the folder is marked                 the table; where folders are listed a deregistered one
    2 the name goes                        a deregistered table: its files stay
    3 the note is written                  a purged table, which any server or `expire` removes when it is due

    step of the removal, under the lock of the folder
    1 note, token, claims, latest version  a lock that another process takes over
      are looked at once more
    2 the files go, the marker and the     a part of the folder, hidden and locked: the next removal goes on
      lock last
    3 the note goes                        a note of nothing, which the next removal deletes

Who registers a purged table takes the same lock, and so gets all of the files or is refused. Nobody else writes
into such a folder but a Lance writer that had the table open: the latest version is another one then, and the
files stay.
"""

import json
from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import NamedTuple, Protocol
from uuid import uuid4

from irc_bridge.catalog.models import Levels
from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.folder_locks import locked
from irc_bridge.lance_store.table_folders import DEREGISTERED, LOCK
from irc_bridge.storage.base import Storage
from irc_bridge.storage.layout import VERSIONS, newest_of

FOLDER = "_irc_bridge/purges"
NATIVE = "reserved"
"""What native Lance writes into its markers: no token, as all have it."""


class ChangedAfterPurge(InvalidInput):
    """The folder has another latest version than the one that was purged."""


@dataclass(frozen=True, slots=True)
class PurgeNote:
    table: Levels
    place: str
    """The folder of the table, in the words of the backend that keeps the note."""
    token: str
    """That in the marker of the folder."""
    content: str
    """What `content_of` said of the folder."""
    purged_ms: int
    due_ms: int | None
    """None for files that stay until somebody asks for their removal."""
    uuid: str = ""
    """That of the table, where the files do not tell it."""

    def encoded(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False).encode()


def note_of(content: str | bytes | None) -> PurgeNote | None:
    """None for what is no note."""
    try:
        values = json.loads(content or b"")
        note = PurgeNote(**{**values, "table": tuple(values["table"])})
    except (ValueError, KeyError, TypeError):
        return None
    texts = (*note.table, note.place, note.token, note.content, note.uuid)
    whole = isinstance(note.purged_ms, int) and isinstance(note.due_ms, int | None)
    if not whole or not all(isinstance(each, str) for each in texts):
        return None
    # a marker of native Lance is like any other, so no note is about one
    return note if note.place and note.token not in ("", NATIVE) else None


class PurgeNotes(Protocol):
    def read(self, place: str) -> PurgeNote | None: ...

    def write(self, note: PurgeNote) -> None:
        """Replaces the note of that place."""

    def delete(self, place: str) -> None:
        """A note that is not there is no error."""

    def all(self) -> list[PurgeNote]: ...


class NotesInStorage:
    """One file for each note, below a root."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[Hashable, PurgeNote | None] = {}

    def read(self, place: str) -> PurgeNote | None:
        return note_of(self._storage.read(_file_of(place)))

    def write(self, note: PurgeNote) -> None:
        self._storage.write(_file_of(note.place), note.encoded())

    def delete(self, place: str) -> None:
        self._storage.delete(_file_of(place))

    def all(self) -> list[PurgeNote]:
        """Reads only files that it has not read before."""
        known: dict[Hashable, PurgeNote | None] = {
            entry: self._known[entry] if entry in self._known else self._at(entry.name)
            for entry in self._storage.files(FOLDER)
        }
        self._known = known
        return [note for note in known.values() if note is not None]

    def _at(self, name: str) -> PurgeNote | None:
        return note_of(self._storage.read(f"{FOLDER}/{name}"))


def content_of(storage: Storage, folder: str) -> str:
    """The name and a digest of the latest manifest; empty for a folder without a version."""
    name = newest_of(storage.names(f"{folder}/{VERSIONS}"))
    manifest = storage.read(f"{folder}/{VERSIONS}/{name}") if name else None
    return f"{name} {blake2b(manifest, digest_size=16).hexdigest()}" if manifest is not None else ""


def delete_folder(storage: Storage, folder: str, _: PurgeNote) -> None:
    storage.delete_tree(folder, LOCK, DEREGISTERED)


class Mark(NamedTuple):
    """The marker of a folder whose table loses its name."""

    token: str
    is_new: bool
    """False when the folder had a marker before."""


def mark(storage: Storage, folder: str) -> Mark | None:
    """Marks the folder of a table whose name goes. None when it has no files."""
    marker = f"{folder}/{DEREGISTERED}"
    while storage.names(folder):
        token = uuid4().hex
        if storage.put_if_absent(marker, token.encode()):
            if set(storage.names(folder)) > {DEREGISTERED}:
                return Mark(token, is_new=True)
            # another process removed the folder, and the marker alone made it again
            storage.delete(marker)
            return None
        there = token_of(storage, folder)
        if there == NATIVE:
            storage.write(marker, token.encode())
            return Mark(token, is_new=False)
        if there is not None:
            return Mark(there, is_new=False)
    return None


def token_of(storage: Storage, folder: str) -> str | None:
    """The token in the marker of a folder; None for a folder without a marker."""
    marker = storage.read(f"{folder}/{DEREGISTERED}")
    return None if marker is None else marker.decode(errors="replace")


def is_changed(storage: Storage, folder: str, note: PurgeNote) -> bool:
    """Whether the folder has a version that is not the one that was purged."""
    return content_of(storage, folder) not in ("", note.content)


@dataclass(frozen=True, slots=True)
class Removal:
    """Removes the folders of purged tables."""

    notes: PurgeNotes
    is_claimed: Callable[[PurgeNote], bool]
    """Whether a table of the catalog lies in the folder, or in one above or below it."""
    is_changed: Callable[[Storage, str, PurgeNote], bool]
    """Whether somebody wrote into the folder after the purge."""
    delete: Callable[[Storage, str, PurgeNote], None]
    """Deletes the files, then the marker, then the lock."""

    def remove(self, storage: Storage, folder: str, note: PurgeNote) -> bool:
        """False when there was nothing to remove: the table was registered again, or another process removed the
        files. ChangedAfterPurge, and FolderLocked while another process removes or registers the folder."""
        if not storage.names(folder):
            self._forget(note)
            return False
        with locked(storage, folder, "remove") as lock:
            if not self._counts(storage, folder, note):
                return False
            if lock.left_by_dead != note.token and self.is_changed(storage, folder, note):
                raise ChangedAfterPurge(
                    f"The table at {storage.location(folder)} was changed after it was purged, so its files stay: "
                    f"register it, and drop it again if it is not needed"
                )
            lock.begin(note.token)
            self.delete(storage, folder, note)
        if token_of(storage, folder) == note.token:
            return False
        self._forget(note)
        return True

    def _counts(self, storage: Storage, folder: str, note: PurgeNote) -> bool:
        if self.notes.read(note.place) != note:
            return False
        if token_of(storage, folder) == note.token and not self.is_claimed(note):
            return True
        self._forget(note)
        return False

    def _forget(self, note: PurgeNote) -> None:
        if self.notes.read(note.place) == note:
            self.notes.delete(note.place)


def _file_of(place: str) -> str:
    return f"{FOLDER}/{blake2b(place.encode(), digest_size=16).hexdigest()}.json"
