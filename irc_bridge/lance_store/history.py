"""Versions already read. A version never changes, but its number may come again in a table made anew:
it is known by its manifest file."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from threading import Lock

from irc_bridge.catalog.models import Schema, TableVersion
from irc_bridge.storage.base import FileEntry


@dataclass(frozen=True, slots=True)
class Newest:
    """The manifest of the latest version, as long as the folder has this stamp."""

    stamp: Hashable | None
    manifest: FileEntry


@dataclass(frozen=True, slots=True)
class SchemaStarts:
    """The first manifests in a folder that have a schema, in rising order of their versions."""

    firsts: tuple[tuple[FileEntry, Schema], ...]
    through: int
    """Every version up to this one was looked at; 0 where only the oldest version was."""


@dataclass(slots=True)
class Known:
    """The cached versions of the table in one folder."""

    newest: Newest | None = None
    versions: dict[FileEntry, TableVersion] = field(default_factory=dict)
    schema: Schema = ()
    """The one seen last, to be shared by versions that have the same."""
    starts: SchemaStarts | None = None
    size: int = 0


class HistoryCache:
    """The tables used least recently go first once all have more than `max_size` versions and columns."""

    def __init__(self, max_size: int = 50_000, max_tables: int = 10_000) -> None:
        self._max_size = max_size
        self._max_tables = max_tables
        self._tables: OrderedDict[str, Known] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def newest(self, path: str) -> Newest | None:
        with self._lock:
            known = self._tables.get(path)
            return known.newest if known else None

    def get(self, path: str, manifest: FileEntry) -> TableVersion | None:
        with self._lock:
            known = self._tables.get(path)
            return known.versions.get(manifest) if known else None

    def shared(self, path: str, schema: Schema) -> Schema:
        """The schema itself, or an equal one that other versions of the table hold already."""
        with self._lock:
            known = self._table(path)
            if known.schema != schema:
                known.schema = schema
            return known.schema

    def saw(self, path: str, newest: Newest) -> None:
        with self._lock:
            self._table(path).newest = newest

    def starts(self, path: str) -> SchemaStarts | None:
        with self._lock:
            known = self._tables.get(path)
            return known.starts if known else None

    def keep_starts(self, path: str, starts: SchemaStarts) -> None:
        with self._lock:
            self._table(path).starts = starts

    def put(self, path: str, versions: dict[FileEntry, TableVersion], keep_others: bool) -> None:
        with self._lock:
            known = self._table(path)
            known.versions = {**known.versions, **versions} if keep_others else versions
            self._size -= known.size
            known.size = _size(known.versions.values())
            self._size += known.size
            while self._size > self._max_size and len(self._tables) > 1:
                self._drop_oldest()

    def forget(self, path: str) -> None:
        with self._lock:
            dropped = self._tables.pop(path, None)
            self._size -= dropped.size if dropped else 0

    def _table(self, path: str) -> Known:
        known = self._tables.setdefault(path, Known())
        self._tables.move_to_end(path)
        if len(self._tables) > self._max_tables:
            self._drop_oldest()
        return known

    def _drop_oldest(self) -> None:
        _, dropped = self._tables.popitem(last=False)
        self._size -= dropped.size


def _size(versions: Iterable[TableVersion]) -> int:
    versions = list(versions)
    columns = {id(version.schema): len(version.schema) for version in versions}
    return len(versions) + sum(columns.values())
