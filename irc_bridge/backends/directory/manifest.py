"""The `__manifest` table in the released on-disk format: one row per namespace and per table."""

import json
import random
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from irc_bridge.backends.directory.folders import json_object, properties_of
from irc_bridge.backends.directory.layout import MANIFEST, is_plain
from irc_bridge.backends.directory.names import DELIMITER
from irc_bridge.errors import BrokenTable, ConcurrentModification
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.manifests import VERSIONS
from irc_bridge.lance_store.rows import KeyedTable, State, Values
from irc_bridge.lance_store.storage import Storage
from irc_bridge.lance_store.tables import LanceTables

T = TypeVar("T")

NAMESPACE = "namespace"
TABLE = "table"
CREATED_AT = "created_at"
_AFTER_DELIMITER = chr(ord(DELIMITER) + 1)
_ATTEMPTS = 200

SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), False, metadata={"lance-schema:unenforced-primary-key:position": "0"}),
        pa.field("object_type", pa.string(), False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    ]
)


@dataclass(frozen=True, slots=True)
class Row:
    object_id: str
    object_type: str
    location: str | None
    metadata: str | None

    @property
    def properties(self) -> dict[str, str]:
        properties = properties_of(self.metadata)
        properties.pop(CREATED_AT, None)
        return properties


@dataclass(frozen=True)
class Snapshot:
    """The manifest at one version. Sorted, so that a page costs what is on it."""

    stamp: Hashable | None
    state: State | None
    ids: list[str]
    tables: list[str]
    namespaces: list[str]

    def row(self, object_id: str) -> Row | None:
        index = bisect_left(self.ids, object_id)
        if self.state is None or index == len(self.ids) or self.ids[index] != object_id:
            return None
        rows = self.state.rows
        kind, location, metadata = (rows[name][index].as_py() for name in ("object_type", "location", "metadata"))
        return Row(object_id, kind, location, metadata)

    def table(self, object_id: str) -> Row | None:
        row = self.row(object_id)
        return row if row and row.object_type == TABLE else None

    def namespace(self, object_id: str) -> Row | None:
        row = self.row(object_id)
        return row if row and row.object_type == NAMESPACE else None

    def locations(self) -> list[str]:
        return [] if self.state is None else [each for each in self.state.rows["location"].to_pylist() if each]

    def at(self, location: str) -> str | None:
        """The id of the table in that folder."""
        if self.state is None:
            return None
        index = pc.index(self.state.rows["location"], location).as_py()
        return None if index < 0 else self.ids[index]

    def holders(self, location: str) -> list[str]:
        """The ids of all rows with that folder: more than one only until one of two creators gives way."""
        if self.state is None:
            return []
        rows = self.state.rows
        return list(rows.filter(pc.equal(rows["location"], location))["object_id"].to_pylist())

    def below(self, prefix: str) -> Iterator[str]:
        for index in range(bisect_left(self.ids, prefix), len(self.ids)):
            if not self.ids[index].startswith(prefix):
                return
            yield self.ids[index]


NOTHING = Snapshot(None, None, [], [], [])


def children(ids: list[str], prefix: str, after: str | None) -> Iterator[str]:
    """The names directly below a prefix, jumping over what lies deeper."""
    index = bisect_left(ids, prefix) if after is None else bisect_right(ids, prefix + after)
    while index < len(ids) and ids[index].startswith(prefix):
        name, deeper, _ = ids[index][len(prefix) :].partition(DELIMITER)
        if deeper:
            index = bisect_left(ids, prefix + name + _AFTER_DELIMITER, index)
        else:
            yield name
            index += 1


class Manifest:
    def __init__(self, storage: Storage, tables: LanceTables) -> None:
        self._storage = storage
        self._table = KeyedTable(storage, tables, MANIFEST, SCHEMA, "object_id")
        self._snapshot = NOTHING
        self._changing = threading.Lock()

    def is_current(self, stamp: Hashable | None) -> bool:
        return self._storage.same_folder_stamp(f"{MANIFEST}/{VERSIONS}", stamp)

    def snapshot(self) -> Snapshot:
        snapshot = self._snapshot
        return snapshot if self.is_current(snapshot.stamp) else self._fresh()

    def change(self, decide: Callable[[Snapshot, KeyedTable], T]) -> T:
        """Calls `decide` with the latest rows until no other writer comes between."""
        with self._changing:
            if self._table.identity() is None:
                self._table.create()
            for _ in range(_ATTEMPTS):
                try:
                    return decide(self._fresh(), self._table)
                except Lost:
                    time.sleep(random.uniform(0, 0.02))
        raise ConcurrentModification(f"Other writers kept changing {self._storage.location(MANIFEST)}: try again")

    def _fresh(self) -> Snapshot:
        old = self._snapshot
        stamp = self._storage.folder_stamp(f"{MANIFEST}/{VERSIONS}")
        identity = self._table.identity()
        if old.state is not None and old.state.identity == identity:
            new = replace(old, stamp=stamp)
        else:
            new = _snapshot(stamp, self._table.read() if identity is not None else None)
        self._snapshot = new
        return new


def _snapshot(stamp: Hashable | None, state: State | None) -> Snapshot:
    if state is None:
        return replace(NOTHING, stamp=stamp)
    ids = state.rows["object_id"].to_pylist()
    kinds = state.rows["object_type"].to_pylist()
    return Snapshot(
        stamp=stamp,
        state=state,
        ids=ids,
        tables=[each for each, kind in zip(ids, kinds, strict=True) if kind == TABLE],
        namespaces=[each for each, kind in zip(ids, kinds, strict=True) if kind == NAMESPACE],
    )


def values(object_id: str, kind: str, location: str | None, properties: Mapping[str, str]) -> Values:
    return {
        "object_id": object_id,
        "object_type": kind,
        "location": location,
        "metadata": metadata_text(None, properties),
    }


def metadata_text(old: str | None, properties: Mapping[str, str]) -> str | None:
    """The JSON of a row with these properties; what others keep there beside properties stays."""
    kept = {
        key: value for key, value in json_object(old).items() if key == CREATED_AT or not isinstance(value, str)
    }
    return json.dumps({**kept, **properties}, ensure_ascii=False) if kept or properties else None


def folder_of(row: Row) -> str:
    if row.location is None or not is_plain(row.location):
        raise BrokenTable(
            f"The manifest row of {row.object_id} names no folder inside the root: {row.location}. "
            f"Only this table is affected; drop it or correct the row."
        )
    return row.location
