"""The `__manifest` table in the released on-disk format: one row per namespace and per table. A change is decided
on the latest rows and is one commit right after them; changes that wait together become one commit together."""

import random
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pyarrow as pa

from irc_bridge.backends.directory import flags
from irc_bridge.backends.directory.objects import Objects, Row
from irc_bridge.errors import ConcurrentModification
from irc_bridge.lance_store.failures import Lost, Missing
from irc_bridge.lance_store.rows import ADDRESS, Put, RowTable, State, fragment_of
from irc_bridge.lance_store.table_folders import MANIFEST
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.lance_store.upkeep import Indexes, Upkeep
from irc_bridge.storage.base import Storage, first_line
from irc_bridge.storage.layout import VERSIONS

T = TypeVar("T")

_ATTEMPTS = 200
_LOOKS = 3

SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), False, metadata={"lance-schema:unenforced-primary-key:position": "0"}),
        pa.field("object_type", pa.string(), False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    ]
)
INDEXES: Indexes = {
    "object_id": ("object_id_btree", "BTREE"),
    "object_type": ("object_type_bitmap", "BITMAP"),
    "base_objects": ("base_objects_label_list", "LABEL_LIST"),
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The manifest at one version."""

    stamp: Hashable | None
    state: State | None
    objects: Objects
    manages_versions: bool = False


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """The rows that one caller puts and drops. A row that was there before keeps its address, also under a new
    id."""

    result: T
    put: tuple[Row, ...] = ()
    drop: tuple[str, ...] = ()
    fold: bool = False
    """Store the rows of many small fragments together."""
    ordered: bool = False
    """Commit even without rows: who decided on older rows has to decide again, and sees what the caller did before
    this change."""


Decide = Callable[[Objects], Change[T]]


@dataclass(slots=True)
class _Waiting:
    decide: Decide[Any]
    result: Any = None
    error: Exception | None = None
    done: bool = False


class Manifest:
    def __init__(self, storage: Storage, tables: LanceTables, manage_versions: bool) -> None:
        self._manage_versions = manage_versions
        self._storage = storage
        self._location = storage.location(MANIFEST)
        self._table = RowTable(storage, tables, MANIFEST, SCHEMA)
        self._upkeep = Upkeep(tables, MANIFEST, self._location, INDEXES, self._fold)
        self._snapshot = Snapshot(None, None, Objects())
        self._reading = threading.Lock()
        self._changing = threading.Lock()
        self._queue = threading.Lock()
        self._completed = False
        self._waiting: list[_Waiting] = []

    def manages_versions(self) -> bool:
        """Turns that on where it is asked for."""
        if self._manage_versions and not self.snapshot().manages_versions:
            self.change(lambda _: Change(None))
        return self.snapshot().manages_versions

    def is_current(self, stamp: Hashable | None) -> bool:
        if self._storage.local:
            return self._storage.same_folder_stamp(f"{MANIFEST}/{VERSIONS}", stamp)
        return stamp is not None and self.snapshot().stamp == stamp

    def objects(self) -> Objects:
        return self.snapshot().objects

    def snapshot(self) -> Snapshot:
        snapshot = self._snapshot
        if self._storage.local and self.is_current(snapshot.stamp):
            return snapshot
        return self._fresh()

    def change(self, decide: Decide[T]) -> T:
        """Calls `decide` with the latest rows until no other writer comes between."""
        mine = _Waiting(decide)
        with self._queue:
            self._waiting.append(mine)
        with self._changing:
            # whoever was here first has done the work of those who waited
            if not mine.done:
                with self._queue:
                    waiting, self._waiting = self._waiting, []
                self._change_all(waiting)
        if mine.error is not None:
            raise mine.error
        return mine.result  # type: ignore[no-any-return]

    def _change_all(self, waiting: list[_Waiting]) -> None:
        try:
            for attempt in range(_ATTEMPTS):
                try:
                    self._try(waiting)
                    return
                except Lost:
                    time.sleep(random.uniform(0, min(0.02, 0.002 * attempt)))
            raise ConcurrentModification(f"Other writers kept changing {self._location}: try again")
        except Exception as error:  # noqa: BLE001  every caller gets it
            for each in waiting:
                each.error = error
        finally:
            for each in waiting:
                each.done = True

    def _try(self, waiting: list[_Waiting]) -> None:
        before = self._prepared()
        draft = before.objects.copy()
        touched: set[str] = set()
        fold = ordered = False
        for each in waiting:
            each.result = each.error = None
            try:
                change = each.decide(draft)
            except Exception as error:  # noqa: BLE001  the caller's own
                each.error = error
                continue
            each.result = change.result
            touched.update(_apply(draft, change))
            fold, ordered = fold or change.fold, ordered or change.ordered
        if touched or fold or ordered:
            self._commit(before, draft, sorted(touched), fold)

    def _prepared(self) -> Snapshot:
        snapshot = self.snapshot()
        if snapshot.state is None:
            if self._table.create():
                self._upkeep.index()
            snapshot = self.snapshot()
        assert snapshot.state is not None
        flags.require_writable(snapshot.state.metadata, self._location)
        changed = not self._completed and self._table.complete(snapshot.state)
        self._completed = True
        if self._manage_versions and not snapshot.manages_versions:
            self._turn_on_management()
            changed = True
        if changed:
            raise Lost("prepared")
        return snapshot

    def _turn_on_management(self) -> None:
        state = self.snapshot().state
        assert state is not None
        self._table.update_metadata(state, flags.managing(state.metadata, self._location))

    def _fold(self) -> None:
        self.change(lambda _: Change(None, fold=True))

    def _commit(self, before: Snapshot, draft: Objects, touched: list[str], fold: bool) -> None:
        assert before.state is not None
        gone = {row.address for each in touched if (row := before.objects.row(each))}
        put = [row for each in touched if (row := draft.row(each))]
        stored = [Put(_values(row), row.address) for row in put]
        done = self._table.commit(before.state, gone, stored, fold)
        if done.moved:
            draft.move(done.moved)
        for row, address in zip(put, done.put, strict=True):
            draft.put(replace(row, address=address))
        self._snapshot = Snapshot(self._stamp(None, done.state), done.state, draft, before.manages_versions)
        self._upkeep.after_change(done.state.dataset.version, done.to_fold)

    def _fresh(self) -> Snapshot:
        for _ in range(_LOOKS):
            try:
                return self._look()
            except Missing as error:
                # another process removed the version while it was read
                missing = error
                self._snapshot = Snapshot(None, None, Objects())
                self._table.forget()
        raise self._table.damaged(first_line(missing)) from missing

    def _look(self) -> Snapshot:
        old = self._snapshot
        stamp = self._storage.folder_stamp(f"{MANIFEST}/{VERSIONS}") if self._storage.local else None
        state = self._table.latest(old.state)
        if old.state is not None and state is old.state:
            new = replace(old, stamp=self._stamp(stamp, state))
        else:
            manages = state is not None and flags.manages_versions(state.metadata, self._location)
            new = Snapshot(self._stamp(stamp, state), state, self._objects(old, state), manages)
        if self._snapshot is old:
            self._snapshot = new
        return new

    def _objects(self, old: Snapshot, state: State | None) -> Objects:
        if state is None:
            return Objects()
        with self._reading:
            for known in (old, self._snapshot):
                if known.state is not None and known.state.manifest == state.manifest:
                    return known.objects
            return self._read(old, state)

    def _stamp(self, stamp: Hashable | None, state: State | None) -> Hashable | None:
        return stamp if self._storage.local or state is None else state.manifest

    def _read(self, old: Snapshot, state: State) -> Objects:
        if old.state is None or old.state.dataset.version > state.dataset.version:
            return Objects(_rows(self._table.rows(state)))
        gone, come = self._table.changed_fragments(old.state, state)
        kept = (row for row in old.objects.rows() if fragment_of(row.address) not in gone)
        new = list(_rows(self._table.rows(state, come)))
        if len(new) > 100 or gone:
            return Objects([*kept, *new])
        objects = old.objects.copy()
        for row in new:
            objects.put(row)
        return objects


def _apply(draft: Objects, change: Change[Any]) -> Iterator[str]:
    for object_id in change.drop:
        draft.drop(object_id)
        yield object_id
    for row in change.put:
        draft.put(row)
        yield row.object_id


def _rows(table: pa.Table) -> Iterator[Row]:
    columns = ("object_id", "object_type", "location", "metadata", ADDRESS)
    return map(Row, *(table[name].to_pylist() for name in columns))


def _values(row: Row) -> dict[str, str | None]:
    return {
        "object_id": row.object_id,
        "object_type": row.object_type,
        "location": row.location,
        "metadata": row.metadata,
    }
