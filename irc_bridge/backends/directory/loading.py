"""From the folder of a table to what a catalog answers about it."""

import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from irc_bridge.backends.directory.folders import Folders
from irc_bridge.backends.directory.layout import RESERVED
from irc_bridge.catalog.models import History, Levels, TableInfo, Unchanged
from irc_bridge.errors import BrokenTable
from irc_bridge.lance_store.storage import Storage
from irc_bridge.lance_store.tables import LanceTables

_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class Found:
    """Where the name of a table leads."""

    table: Levels
    path: str
    row: Mapping[str, str] | None
    """The properties in its manifest row; None for a table found by its folder."""
    names: Hashable | None
    """The stamp of what the name was looked up in."""


class Token(NamedTuple):
    names: Hashable | None
    path: str
    row: tuple[tuple[str, str], ...] | None
    files: Hashable | None


class Loader:
    def __init__(self, storage: Storage, tables: LanceTables, folders: Folders) -> None:
        self._storage = storage
        self._tables = tables
        self._folders = folders

    def load_found(
        self, find: Callable[[], Found], history: History, known: Hashable | None
    ) -> TableInfo | Unchanged:
        for attempt in range(1, _ATTEMPTS):
            # a table that somebody drops, or gives up making, looks broken until its name is gone too
            with suppress(BrokenTable):
                return self._load(find(), history, known)
            time.sleep(0.01 * attempt)
        return self._load(find(), history, known)

    def _load(self, found: Found, history: History, known: Hashable | None) -> TableInfo | Unchanged:
        files = self._storage.table_stamp(found.path)
        row = None if found.row is None else tuple(found.row.items())
        token = Token(found.names, found.path, row, files)
        if isinstance(known, Token) and files is not None and known[1:] == token[1:]:
            return Unchanged(token)
        return self._read(found, history, token)

    def files_are_current(self, token: Token) -> bool:
        return self._storage.same_table_stamp(token.path, token.files)

    def kept(self, found: Found) -> Mapping[str, str]:
        """The properties that wait for the first version."""
        return found.row if found.row is not None else self._folders.kept(found.path)

    def _read(self, found: Found, history: History, token: Token) -> TableInfo:
        location = self._storage.location(found.path)
        kept = self.kept(found)
        content = self._tables.read(found.path, history)
        if content is None:
            if not self._folders.is_reserved(found.path):
                raise BrokenTable(
                    f"The folder {location} holds no version of a Lance table and no {RESERVED} marker. "
                    f"Only this table is affected; restore its files or drop it."
                )
            return TableInfo(location, kept, (), {}, self._folders.reserved_ms(found.path), token)
        return TableInfo(
            location=location,
            properties=dict(sorted({**kept, **content.metadata}.items())),
            versions=content.versions,
            tags=content.tags,
            updated_ms=content.versions[-1].timestamp_ms,
            token=token,
        )
