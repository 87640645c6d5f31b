"""From the folder of a table to what a catalog answers about it."""

import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from irc_bridge.backends.directory.folders import Folders
from irc_bridge.catalog.models import History, Levels, TableInfo, Unchanged
from irc_bridge.errors import BrokenTable
from irc_bridge.lance_store.table_folders import RESERVED
from irc_bridge.lance_store.tables import Content, LanceTables
from irc_bridge.storage.base import Storage

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
    versions: Mapping[int, object] | None = None
    """Those that the manifest keeps; None where the files are the versions."""


class Token(NamedTuple):
    names: Hashable | None
    path: str
    row: tuple[tuple[str, str], ...] | None
    files: Hashable | None
    versions: tuple[int, int] | None = None
    """How many the manifest keeps and the latest of them."""


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

    def load_version(self, found: Found, version: int) -> TableInfo | None:
        """The table with one version only, None when that is not there."""
        token, kept = self._token(found), self.kept(found)
        content = self._tables.read_version(found.path, version)
        return None if content is None else self._info(found, kept, content, token)

    def _load(self, found: Found, history: History, known: Hashable | None) -> TableInfo | Unchanged:
        token = self._token(found)
        if isinstance(known, Token) and token.files is not None and known[1:] == token[1:]:
            return Unchanged(token)
        return self._read(found, history, token)

    def _token(self, found: Found) -> Token:
        row = None if found.row is None else tuple(found.row.items())
        kept = found.versions
        versions = None if kept is None else (len(kept), max(kept, default=0))
        return Token(found.names, found.path, row, self._storage.table_stamp(found.path), versions)

    def files_are_current(self, token: Token) -> bool:
        return self._storage.same_table_stamp(token.path, token.files)

    def kept(self, found: Found) -> Mapping[str, str]:
        """The properties that wait for the first version."""
        return found.row if found.row is not None else self._folders.kept(found.path)

    def _read(self, found: Found, history: History, token: Token) -> TableInfo:
        # first, because a commit moves them into the table
        kept = self.kept(found)
        content = self._tables.read(found.path, history, found.versions)
        if content is None:
            location = self._storage.location(found.path)
            if not self._folders.is_reserved(found.path):
                raise BrokenTable(
                    f"The folder {location} holds no version of a Lance table and no {RESERVED} marker. "
                    f"Only this table is affected; restore its files or drop it."
                )
            return TableInfo(location, kept, (), {}, self._folders.reserved_ms(found.path), token)
        return self._info(found, kept, content, token)

    def _info(self, found: Found, kept: Mapping[str, str], content: Content, token: Token) -> TableInfo:
        return TableInfo(
            location=self._storage.location(found.path),
            properties=dict(sorted({**kept, **content.metadata}.items())),
            versions=content.versions,
            tags=content.tags,
            updated_ms=content.versions[-1].timestamp_ms,
            token=token,
            schema_metadata=content.schema_metadata,
            mirrored=content.mirrored,
            schema_starts=content.schema_starts,
            empty_list=content.empty_list,
        )
