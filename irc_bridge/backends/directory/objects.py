"""The rows of `__manifest` in memory, sorted, so that a page costs what is on it."""

import json
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import merge

from irc_bridge.backends.directory.folders import json_object, properties_of
from irc_bridge.backends.directory.layout import is_plain, parts_above
from irc_bridge.backends.directory.names import DELIMITER
from irc_bridge.catalog.models import managed_by
from irc_bridge.errors import BrokenTable
from irc_bridge.lance_store.rows import NEW

NAMESPACE = "namespace"
TABLE = "table"
TABLE_VERSION = "table_version"
CREATED_AT = "created_at"
MOVED_FROM = "irc-bridge.moved-from"
"""In the row of a renamed table: the folder that it left, until that is gone."""
_OURS = (CREATED_AT, MOVED_FROM)
_AFTER_DELIMITER = chr(ord(DELIMITER) + 1)


@dataclass(frozen=True, slots=True)
class Row:
    object_id: str
    object_type: str
    location: str | None = None
    metadata: str | None = None
    address: int = NEW

    @property
    def properties(self) -> dict[str, str]:
        return {key: value for key, value in properties_of(self.metadata).items() if key not in _OURS}

    @property
    def moved_from(self) -> str | None:
        if self.metadata is None or MOVED_FROM not in self.metadata:
            return None
        return properties_of(self.metadata).get(MOVED_FROM)

    @property
    def folders(self) -> tuple[str, ...]:
        """All that belong to the table."""
        return tuple(folder for folder in (self.location, self.moved_from) if folder)

    @property
    def folder(self) -> str:
        if self.location is None or not is_plain(self.location):
            raise BrokenTable(
                f"The manifest row of {self.object_id} names no folder inside the root: {self.location}. "
                f"Only this table is affected; drop it or correct the row."
            )
        return self.location


class Objects:
    """Changed only while nobody else sees it."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: dict[str, Row] = {}
        self._versions: dict[str, dict[int, Row]] = {}
        self._owned: set[str] = set()
        for row in rows:
            if row.object_type == TABLE_VERSION:
                self._put_version(row)
            else:
                self._rows.setdefault(row.object_id, row)
        kept = self._rows.values()
        self._namespaces = sorted(row.object_id for row in kept if row.object_type == NAMESPACE)
        self._tables = sorted(row.object_id for row in kept if row.object_type == TABLE)
        self._folders = {folder: row.object_id for row in kept for folder in row.folders}
        self._deep = {folder for folder in self._folders if "/" in folder}

    def copy(self) -> "Objects":
        other = Objects()
        other._rows = self._rows.copy()
        other._namespaces = self._namespaces.copy()
        other._tables = self._tables.copy()
        other._folders = self._folders.copy()
        other._deep = self._deep.copy()
        other._versions = self._versions.copy()
        return other

    def put(self, row: Row) -> None:
        if row.object_type == TABLE_VERSION:
            self._put_version(row)
            return
        old = self._rows.get(row.object_id)
        if old is None or (old.object_type, old.folders) != (row.object_type, row.folders):
            self._add(row)
        self._rows[row.object_id] = row

    def move(self, addresses: Mapping[int, int]) -> None:
        """Rows that were stored again have new addresses."""
        for row in [row for row in self.rows() if row.address in addresses]:
            self.put(replace(row, address=addresses[row.address]))

    def _add(self, row: Row) -> None:
        self.drop(row.object_id)
        insort(self._ids(row), row.object_id)
        for folder in row.folders:
            self._folders[folder] = row.object_id
            if "/" in folder:
                self._deep.add(folder)

    def drop(self, object_id: str) -> None:
        row = self._rows.pop(object_id, None)
        if row is None:
            self._drop_version(object_id)
            return
        ids = self._ids(row)
        del ids[bisect_left(ids, object_id)]
        for folder in row.folders:
            if self._folders.get(folder) == object_id:
                del self._folders[folder]
                self._deep.discard(folder)

    def rows(self) -> Iterator[Row]:
        yield from self._rows.values()
        for versions in self._versions.values():
            yield from versions.values()

    def row(self, object_id: str) -> Row | None:
        return self._rows.get(object_id) or self._version(object_id)

    def versions(self, table_id: str) -> Mapping[int, Row]:
        """The version rows of a table."""
        return self._versions.get(table_id, {})

    def table(self, object_id: str) -> Row | None:
        row = self._rows.get(object_id)
        return row if row and row.object_type == TABLE else None

    def namespace(self, object_id: str) -> Row | None:
        row = self._rows.get(object_id)
        return row if row and row.object_type == NAMESPACE else None

    def tables(self, prefix: str, after: str | None = None) -> Iterator[str]:
        return _children(self._tables, prefix, after)

    def namespaces(self, prefix: str, after: str | None = None) -> Iterator[str]:
        return _children(self._namespaces, prefix, after)

    def children(self, prefix: str) -> Iterator[str]:
        return merge(self.tables(prefix), self.namespaces(prefix))

    def any_below(self, prefix: str) -> bool:
        return any(
            index < len(ids) and ids[index].startswith(prefix)
            for ids in (self._tables, self._namespaces)
            for index in [bisect_left(ids, prefix)]
        )

    def at(self, folder: str) -> str | None:
        """The id of the table in that folder."""
        return self._folders.get(folder)

    def overlapping(self, folder: str) -> str | None:
        """A claimed folder that is the same, or lies in it, or in which it lies."""
        if folder in self._folders:
            return folder
        above = next((each for each in parts_above(folder) if each in self._folders), None)
        return above or next((each for each in self._deep if each.startswith(folder + "/")), None)

    def _ids(self, row: Row) -> list[str]:
        if row.object_type == TABLE:
            return self._tables
        # kinds that newer writers may add are nothing to list
        return self._namespaces if row.object_type == NAMESPACE else [row.object_id]

    def _version(self, object_id: str) -> Row | None:
        table_id, number = version_of_id(object_id)
        row = self._versions[table_id].get(number) if table_id in self._versions else None
        return row if row is not None and row.object_id == object_id else None

    def _put_version(self, row: Row) -> None:
        table_id, number = version_of_id(row.object_id)
        self._own_versions(table_id)[number] = row

    def _drop_version(self, object_id: str) -> None:
        table_id, number = version_of_id(object_id)
        if self._version(object_id) is not None:
            del self._own_versions(table_id)[number]

    def _own_versions(self, table_id: str) -> dict[int, Row]:
        """The version rows of a table, copied first if another copy of the objects shares them."""
        if table_id not in self._owned:
            self._versions[table_id] = dict(self._versions.get(table_id, ()))
            self._owned.add(table_id)
        return self._versions[table_id]


def _children(ids: list[str], prefix: str, after: str | None) -> Iterator[str]:
    """The names directly below a prefix, jumping over what lies deeper."""
    index = bisect_left(ids, prefix) if after is None else bisect_right(ids, prefix + after)
    while index < len(ids) and ids[index].startswith(prefix):
        name, deeper, _ = ids[index][len(prefix) :].partition(DELIMITER)
        if deeper:
            index = bisect_left(ids, prefix + name + _AFTER_DELIMITER, index)
        else:
            yield name
            index += 1


def is_impl(properties: Mapping[str, str]) -> bool:
    """Whether a table is changed through its catalog only, seed 004."""
    return managed_by(properties) == "impl"


def version_id(table_id: str, version: int) -> str:
    return f"{table_id}{DELIMITER}{version}"


def version_of_id(object_id: str) -> tuple[str, int]:
    """Lance 4 to 7 padded the number with zeros. 0 for what is no version."""
    table_id, _, number = object_id.rpartition(DELIMITER)
    return table_id, int(number) if number.isascii() and number.isdigit() else 0


def metadata_text(old: str | None, properties: Mapping[str, str]) -> str | None:
    """The JSON of a row with these properties; what others keep there beside properties stays."""
    kept = {key: value for key, value in json_object(old).items() if key in _OURS or not isinstance(value, str)}
    return _text({**kept, **properties})


def with_moved_from(row: Row, folder: str | None) -> Row:
    values = {key: value for key, value in json_object(row.metadata).items() if key != MOVED_FROM}
    return replace(row, metadata=_text(values if folder is None else {**values, MOVED_FROM: folder}))


def _text(values: Mapping[str, object]) -> str | None:
    return json.dumps(values, ensure_ascii=False) if values else None
