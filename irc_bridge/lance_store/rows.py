"""A Lance table that is read as a whole and changed by rows: the storage of `__manifest`. A change is one commit
that becomes the next version of the state it was decided on, or raises Lost."""

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import write_fragments

from irc_bridge.errors import BrokenTable, Internal
from irc_bridge.lance_store.failures import Lost, Missing, lance_errors
from irc_bridge.lance_store.next_version import commit_next
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.storage.base import FileEntry, Storage, first_line
from irc_bridge.storage.layout import VERSIONS, name_of, version_of

ADDRESS = "_rowaddr"
NEW = -1
"""The address of a row that is not stored yet."""
_FRAGMENT_BITS = 32
_STEPS = 64
_SMALL_ROWS = 1024
_LARGE_ROWS = 1024 * 1024
_TOO_MANY_FRAGMENTS = 256
_FEW = 16
_LISTED_S = 300
"""How long versions are followed one by one. Far less than the age at which versions are removed, because a gap
would look like the end."""
_SURE_S = 1

Values = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class State:
    """The table at one version."""

    manifest: FileEntry
    dataset: lance.LanceDataset
    listed: float
    """When the folder of versions was last listed."""
    seen: float = field(default_factory=time.monotonic)
    """When the manifest was last seen in its place."""

    @property
    def metadata(self) -> Mapping[str, str]:
        return dict(self.dataset.metadata)


@dataclass(frozen=True, slots=True)
class Put:
    """A row to be stored. The columns that `values` does not name keep what they hold at the address."""

    values: Values
    address: int = NEW


@dataclass(frozen=True, slots=True)
class Committed:
    state: State
    moved: Mapping[int, int]
    """The new addresses of rows that had others."""
    put: Sequence[int]
    """The addresses of the rows that were stored."""
    to_fold: int
    """How many fragments are small."""


class RowTable:
    def __init__(self, storage: Storage, tables: LanceTables, path: str, schema: pa.Schema) -> None:
        self._storage = storage
        self._tables = tables
        self._path = path
        self._folder = f"{path}/{VERSIONS}"
        self._schema = schema
        self._location = storage.location(path)

    def create(self) -> bool:
        """False when there is one."""
        return self._tables.first_version(self._path, self._schema, {}, data_storage_version="2.2").put()

    def complete(self, state: State) -> bool:
        """Field metadata that older writers left out is added; True when there was some."""
        with self._errors():
            stored = {field.name: field.metadata or {} for field in state.dataset.schema}
            missing = {
                field.name: {key.decode(): value.decode() for key, value in field.metadata.items()}
                for field in self._schema
                if field.metadata and not field.metadata.items() <= stored.get(field.name, {}).items()
            }
            if missing:
                self._tables.open(self._path).update_field_metadata(missing)
        return bool(missing)

    def latest(self, known: State | None) -> State | None:
        """`known` itself where it is the latest; None when there is no table."""
        if known is not None and time.monotonic() - known.listed < _LISTED_S and self._is_there(known):
            followed = self._follow(known)
            if followed is not None:
                return followed
        for _ in range(3):
            newest = self._tables.newest(self._path)
            if newest is None:
                return None
            if known is not None and newest == known.manifest:
                return replace(known, listed=time.monotonic(), seen=time.monotonic())
            try:
                return self._open(newest, time.monotonic())
            except Missing:
                self._tables.forget(self._path)
        raise self.damaged("its versions come and go")

    def forget(self) -> None:
        self._tables.forget(self._path)

    def rows(self, state: State, fragments: Set[int] | None = None) -> pa.Table:
        """All rows with their addresses, or those of some fragments."""
        with self._errors():
            chosen = state.dataset.get_fragments()
            if fragments is not None:
                chosen = [each for each in chosen if each.fragment_id in fragments]
            return _rows_of(state.dataset, chosen)

    def changed_fragments(self, old: State, new: State) -> tuple[set[int], set[int]]:
        """The ids of the fragments of `old` and of `new` that the other has not, or has with other rows."""
        with self._errors():
            before, after = _fragments(old), _fragments(new)
        return {each for each, _ in before - after}, {each for each, _ in after - before}

    def commit(self, state: State, gone: Set[int], put: Sequence[Put], fold: bool = False) -> Committed:
        """Removes the rows at the addresses `gone` and stores `put`. With `fold` the rows of small fragments move
        into one."""
        with self._errors():
            dataset = state.dataset
            folded = _to_fold(dataset) if fold else []
            kept = _rows_of(dataset, folded, gone)
            rows = pa.concat_tables([kept.drop_columns(ADDRESS).cast(dataset.schema), self._stored(dataset, put)])
            new = write_fragments(rows, dataset, mode="append") if rows.num_rows else []
            operation = _operation(dataset, gone, folded, new)
            committed = commit_next(self._storage, self._path, dataset, state.manifest.name, operation)
            fragments = [each.fragment_id for each in committed.get_fragments()]
            to_fold = len(_to_fold(committed))
        first = max(fragments, default=0) << _FRAGMENT_BITS
        return Committed(
            state=self._committed(state, committed),
            moved={old: first + offset for offset, old in enumerate(kept[ADDRESS].to_pylist())},
            put=[first + kept.num_rows + offset for offset in range(len(put))],
            to_fold=to_fold,
        )

    def update_metadata(self, state: State, values: Mapping[str, str]) -> State:
        """The table's own metadata."""
        operation = lance.LanceOperation.UpdateConfig(
            table_metadata_updates=lance.LanceOperation.UpdateMap(updates=dict(values), replace=False)
        )
        committed = commit_next(self._storage, self._path, state.dataset, state.manifest.name, operation)
        return self._committed(state, committed)

    def damaged(self, why: str) -> Internal:
        return Internal(
            f"{self._location} cannot be read or changed: {why}. Every name of the root is kept there: "
            f"restore its files if they are damaged"
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with lance_errors(self._location):
                yield
        except BrokenTable as error:
            raise self.damaged(first_line(error.__cause__ or error)) from error

    def _committed(self, state: State, dataset: lance.LanceDataset) -> State:
        name = name_of(dataset.version, like=state.manifest.name)
        identity = self._storage.identity(f"{self._folder}/{name}")
        return State(FileEntry(name, identity), dataset, state.listed)

    def _is_there(self, known: State) -> bool:
        if not self._storage.local and time.monotonic() - known.seen < _SURE_S:
            return True
        return self._storage.identity(f"{self._folder}/{known.manifest.name}") == known.manifest.identity

    def _follow(self, known: State) -> State | None:
        """From version to version; None when that takes too long."""
        newest = known.manifest
        for version in range(known.dataset.version + 1, known.dataset.version + _STEPS):
            name = name_of(version, like=newest.name)
            identity = self._storage.identity(f"{self._folder}/{name}")
            if identity is None:
                if newest is known.manifest:
                    return known
                try:
                    return self._open(newest, known.listed)
                except Missing:
                    return None
            newest = FileEntry(name, identity)
        return None

    def _open(self, manifest: FileEntry, listed: float) -> State:
        with self._errors():
            return State(manifest, self._tables.open(self._path, version_of(manifest.name)), listed)

    def _stored(self, dataset: lance.LanceDataset, put: Sequence[Put]) -> pa.Table:
        old = self._at(dataset, [each.address for each in put if each.address != NEW])
        schema = dataset.schema
        columns = {
            name: [each.values.get(name, old[each.address].get(name)) for each in put] for name in schema.names
        }
        return pa.table(columns, schema=schema)

    @staticmethod
    def _at(dataset: lance.LanceDataset, addresses: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The rows at the addresses, and none for those that are new."""
        rows: dict[int, dict[str, Any]] = {NEW: {}}
        if addresses:
            places = {fragment_of(each) for each in addresses}
            fragments = [each for each in dataset.get_fragments() if each.fragment_id in places]
            wanted = f"{ADDRESS} IN ({', '.join(map(str, addresses))})" if len(addresses) <= _FEW else None
            found = dataset.scanner(fragments=fragments, filter=wanted, with_row_address=True).to_table()
            rows |= {row[ADDRESS]: row for row in found.to_pylist()}
        if not rows.keys() >= set(addresses):
            raise Lost("Rows to be changed are gone")
        return rows


def _rows_of(dataset: lance.LanceDataset, fragments: list[Any], without: Set[int] = frozenset()) -> pa.Table:
    if not fragments:
        return pa.schema([*dataset.schema, pa.field(ADDRESS, pa.uint64())]).empty_table()
    rows = dataset.scanner(fragments=fragments, with_row_address=True).to_table()
    if without:
        rows = rows.filter(pc.invert(pc.is_in(rows[ADDRESS], pa.array(without, pa.uint64()))))
    return rows


def _to_fold(dataset: lance.LanceDataset) -> list[Any]:
    fragments = dataset.get_fragments()
    small = _SMALL_ROWS if len(fragments) < _TOO_MANY_FRAGMENTS else _LARGE_ROWS
    return [
        each for each in fragments if each.physical_rows - each.num_deletions < max(small, each.physical_rows // 2)
    ]


def _operation(dataset: lance.LanceDataset, gone: Set[int], folded: list[Any], new: list[Any]) -> Any:
    removed = [each.fragment_id for each in folded]
    elsewhere = [each for each in gone if fragment_of(each) not in removed]
    if not elsewhere and not removed:
        return lance.LanceOperation.Append(new)
    offsets: dict[int, list[int]] = {}
    for address in elsewhere:
        fragment, offset = _place(address)
        offsets.setdefault(fragment, []).append(offset)
    updated = []
    fragments = {each.fragment_id: each for each in dataset.get_fragments()}
    for fragment, rows in offsets.items():
        left = fragments[fragment].delete_rows(rows)
        if left is None:
            removed.append(fragment)
        else:
            updated.append(left)
    return lance.LanceOperation.Update(removed_fragment_ids=removed, updated_fragments=updated, new_fragments=new)


def fragment_of(address: int) -> int:
    return address >> _FRAGMENT_BITS


def _place(address: int) -> tuple[int, int]:
    return address >> _FRAGMENT_BITS, address & ((1 << _FRAGMENT_BITS) - 1)


def _fragments(state: State) -> set[tuple[int, Hashable]]:
    # an overwrite may use the ids of fragments again
    return {
        (each.fragment_id, (each.deletion_file(), *(file.path for file in each.data_files())))
        for each in state.dataset.get_fragments()
    }
