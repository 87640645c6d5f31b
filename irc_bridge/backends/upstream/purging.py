"""The files of Lance tables that were purged in a server behind the bridge.

The server drops the name and leaves the files. The note of the purge lies below the root of the warehouse; without
a root it is a property of a namespace of the server that holds nothing else, so that it outlives the namespace of
the table. Where neither can be written the files stay. Others may write where the server puts tables: so files
are only removed when the folder holds exactly those of the table that was purged, and when the server has no table
of the old name there. What the server itself writes into the folder for a new table of the name stays.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b

from irc_bridge.backends.upstream import listing
from irc_bridge.backends.upstream.files import below, one_form, same_place
from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.catalog.models import TABLE_UUID, Deregistered, Levels, Purge
from irc_bridge.catalog.properties import RESERVED_PREFIX
from irc_bridge.errors import BridgeError, InvalidInput, NamespaceAlreadyExists, NamespaceNotFound, NotFound
from irc_bridge.irc_client.lance_tables import LOCATION
from irc_bridge.irc_client.server import IrcServer
from irc_bridge.lance_catalog.names import ResolvedTable
from irc_bridge.lance_store.folder_locks import locked
from irc_bridge.lance_store.mirror_layout import remove_engine_folders
from irc_bridge.lance_store.purges import (
    NotesInStorage,
    PurgeNote,
    PurgeNotes,
    Removal,
    content_of,
    mark,
    note_of,
    token_of,
)
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.lance_store.table_folders import DEREGISTERED, LOCK, TABLE_PARTS
from irc_bridge.names import dotted
from irc_bridge.storage.base import Storage

log = logging.getLogger(__name__)

_FOLDER = "_irc_bridge"
_NAMESPACE: Levels = ("irc_bridge",)
_PREFIX = f"{RESERVED_PREFIX}purged."
_COMMENT = "Kept by irc-bridge: which purged Lance tables still have files. Without it these files stay for ever."
_SERVERS_OWN = "metadata"
"""The folder of a table in which the server writes what it knows of it."""


class NotesInNamespace:
    """The notes as properties of one namespace of a server."""

    def __init__(self, server: IrcServer) -> None:
        self._server = server

    def read(self, place: str) -> PurgeNote | None:
        return note_of(self._properties().get(_key(place)))

    def write(self, note: PurgeNote) -> None:
        with suppress(NamespaceAlreadyExists):
            self._server.create_namespace(_NAMESPACE, {"comment": _COMMENT})
        self._server.update_namespace_properties(_NAMESPACE, [], {_key(note.place): note.encoded().decode()})

    def delete(self, place: str) -> None:
        with suppress(NamespaceNotFound):
            self._server.update_namespace_properties(_NAMESPACE, [_key(place)], {})

    def all(self) -> list[PurgeNote]:
        notes = [note_of(each) for key, each in self._properties().items() if key.startswith(_PREFIX)]
        return [each for each in notes if each is not None]

    def _properties(self) -> Mapping[str, str]:
        try:
            return self._server.load_namespace(_NAMESPACE).get("properties") or {}
        except NamespaceNotFound:
            return {}


class Purging:
    def __init__(self, tables: Tables, root: str | None) -> None:
        self._tables = tables
        self._root = root

    def purge(self, found: ResolvedTable, after_ms: int | None) -> None:
        """A crash after the name is gone leaves files that stay."""
        storage, path = found.files.storage, found.files.path
        marked = mark(storage, path) if _is_table_only(storage, path) else None
        self._tables.drop(found.name, purge=False)
        if marked is None:
            log.warning(
                "%s was purged, and its files at %s stay: there is nothing there, or more than a Lance table",
                dotted(found.name),
                found.files.location,
            )
            return
        now_ms = time.time_ns() // 1_000_000
        note = PurgeNote(
            table=found.name,
            place=found.files.location,
            token=marked.token,
            content=_content(storage, path),
            purged_ms=now_ms,
            due_ms=None if after_ms is None else now_ms + after_ms,
            uuid=found.entry.properties.get(TABLE_UUID, found.entry.uuid),
        )
        try:
            self._notes().write(note)
        except BridgeError as error:
            log.warning(
                "%s was purged, and its files at %s stay: no note of it can be kept: %s",
                dotted(found.name),
                note.place,
                error.message,
            )

    def pending(self) -> list[Purge]:
        """The purged tables as their notes say. Notes of tables that the server has again are forgotten: such a
        table may be dropped later without a purge."""
        notes = self._notes()
        by_namespace: defaultdict[Levels, list[PurgeNote]] = defaultdict(list)
        for note in notes.all():
            by_namespace[note.table[:-1]].append(note)
        left = []
        for namespace, of_namespace in by_namespace.items():
            listed = self._tables_in(namespace)
            for note in of_namespace:
                if note.table in listed and self._is_claimed(note):
                    notes.delete(note.place)
                else:
                    left.append(note)
        return [_purge(note) for note in left]

    def deregistered(self) -> Iterator[Deregistered]:
        for note in self._notes().all():
            files = self._tables.lance_table_at(note.place)
            if token_of(files.storage, files.path) == note.token:
                changed = _is_changed(files.storage, files.path, note)
                yield Deregistered(note.table, note.place, _purge(note), changed)

    def remove(self, purge: Purge) -> bool:
        """False when there is nothing to remove any more."""
        notes = self._notes()
        note = notes.read(purge.location)
        if note is None or _purge(note) != purge:
            return False
        files = self._tables.lance_table_at(note.place)
        if not _is_table_only(files.storage, files.path):
            raise InvalidInput(f"{note.place} holds more than a Lance table: move away what does not belong to it")
        removal = Removal(notes, self._is_claimed, _is_changed, _delete)
        is_removed = removal.remove(files.storage, files.path, note)
        files.tables.forget(files.path)
        return is_removed

    def is_purged(self, location: str) -> bool:
        """Whether the folder is that of a table of this warehouse that was purged and not registered since."""
        with suppress(BridgeError):
            note = self._notes().read(one_form(location))
            if note is not None:
                files = self._tables.lance_table_at(note.place)
                return token_of(files.storage, files.path) == note.token
        return False

    @contextmanager
    def registering(self, files: TableFiles) -> Iterator[Mapping[str, str]]:
        """Keeps others from removing the folder, and gives what the table gets back beside its files. FolderLocked
        while another process removes it."""
        if token_of(files.storage, files.path) is None:
            yield {}
            return
        note = None
        with suppress(BridgeError):
            note = self._notes().read(files.location)
        with locked(files.storage, files.path, "register"):
            yield {TABLE_UUID: note.uuid} if note is not None and note.uuid else {}
            self.take(files)
        if note is not None:
            with suppress(BridgeError):
                self._notes().delete(note.place)

    def take(self, files: TableFiles) -> None:
        """The folder is that of a table: a purge before does not count any more."""
        if token_of(files.storage, files.path) is not None:
            files.storage.delete(f"{files.path}/{DEREGISTERED}")

    def _notes(self) -> PurgeNotes:
        if self._root is None:
            return NotesInNamespace(self._tables.server)
        return NotesInStorage(self._tables.lance_table_at(below(self._root, _FOLDER)).storage)

    def _tables_in(self, namespace: Levels) -> set[Levels]:
        try:
            return set(listing.everything(partial(self._tables.server.list_tables, namespace)))
        except NotFound:
            return set()

    def _is_claimed(self, note: PurgeNote) -> bool:
        """Whether the server has a table of the old name there, of whichever kind."""
        try:
            metadata = self._tables.server.load_table(note.table, "refs", False)["metadata"]
        except NotFound:
            return False
        places = (metadata["location"], (metadata.get("properties") or {}).get(LOCATION))
        return any(each and same_place(each, note.place) for each in places)


def _is_table_only(storage: Storage, folder: str) -> bool:
    return set(storage.names(folder)) <= {*TABLE_PARTS, _SERVERS_OWN}


def _content(storage: Storage, folder: str) -> str:
    """A digest that tells whether a folder is still as it was when it was purged: of the files of the Lance table,
    and of the files of the server, which writes there again when it makes a new table of the name."""
    lance, server = _files(storage, folder)
    return f"{content_of(storage, folder)} {_digest(lance)} {_digest(server)}"


def _is_changed(storage: Storage, folder: str, note: PurgeNote) -> bool:
    return _content(storage, folder).rpartition(" ")[0] != note.content.rpartition(" ")[0]


def _delete(storage: Storage, folder: str, note: PurgeNote) -> None:
    """Removes the files of the purged table. Files that the server wrote since the purge stay."""
    lance, server = _files(storage, folder)
    doomed = lance if _digest(server) != note.content.rpartition(" ")[2] else lance + server
    for _ in storage.at_once(storage.delete, [f"{folder}/{each}" for each in doomed]):
        pass
    remove_engine_folders(storage, folder)
    for each in (DEREGISTERED, LOCK):
        storage.delete(f"{folder}/{each}")


def _files(storage: Storage, folder: str) -> tuple[list[str], list[str]]:
    """The names of the files of the Lance table, and of those that the server keeps beside them."""
    names = sorted({each.name for each in storage.tree(folder)} - {DEREGISTERED, LOCK})
    server = [each for each in names if each.startswith(f"{_SERVERS_OWN}/")]
    return [each for each in names if each not in server], server


def _digest(names: Sequence[str]) -> str:
    return blake2b("\n".join(names).encode(), digest_size=16).hexdigest()


def _purge(note: PurgeNote) -> Purge:
    return Purge(note.table, note.place, note.purged_ms, note.due_ms)


def _key(place: str) -> str:
    return _PREFIX + blake2b(place.encode(), digest_size=16).hexdigest()
