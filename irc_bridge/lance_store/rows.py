"""A Lance table whose rows have a key: the storage of `__manifest`. Every change is one commit, and of two
changes to one key that start from the same state the second raises Lost."""

from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc

from irc_bridge.errors import BridgeError
from irc_bridge.lance_store.failures import Lost, Missing, broken, lance_errors
from irc_bridge.lance_store.manifests import version_of
from irc_bridge.lance_store.storage import Storage
from irc_bridge.lance_store.tables import LanceTables

_COMPACTED_FRAGMENTS = 32
_KEPT = timedelta(days=1)

Values = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class State:
    """The table at one version, its rows in the order of their keys."""

    identity: Hashable
    rows: pa.Table
    dataset: lance.LanceDataset


class KeyedTable:
    def __init__(self, storage: Storage, tables: LanceTables, path: str, schema: pa.Schema, key: str) -> None:
        self._storage = storage
        self._tables = tables
        self._path = path
        self._schema = schema
        self._key = key
        self._location = storage.location(path)

    def identity(self) -> Hashable | None:
        """That of the latest version, None when there is no table. Opens nothing."""
        return self._tables.newest(self._path)

    def read(self) -> State | None:
        for _ in range(3):
            newest = self._tables.newest(self._path)
            if newest is None:
                return None
            try:
                with lance_errors(self._location):
                    dataset = self._tables.open(self._path, version_of(newest.name))
                    rows = dataset.to_table()
                    return State(newest, rows.take(pc.sort_indices(rows[self._key])), dataset)
            except Missing:
                self._tables.forget(self._path)
        raise broken(self._location, "its versions come and go")

    def create(self) -> None:
        """Does nothing when there is one."""
        self._tables.first_version(self._path, self._schema, {}, data_storage_version="2.2").put()

    def insert(self, state: State, values: Values) -> None:
        self._merge(state, self._row(state, None, values), "when_not_matched_insert_all")

    def update(self, state: State, key: str, values: Values) -> None:
        self._merge(state, self._row(state, key, values), "when_matched_update_all")

    def rename(self, state: State, key: str, values: Values) -> None:
        """The row of `key` gets `values`, a new key among them."""
        gone = f"{self._key} = {_literal(key)}"
        self._merge(state, self._row(state, key, values), "when_not_matched_insert_all", gone)

    def delete(self, state: State, key: str) -> None:
        with lance_errors(self._location):
            deleted = state.dataset.delete(f"{self._key} = {_literal(key)}")
        if deleted["num_deleted_rows"] == 0:
            raise Lost(f"{key} was deleted by another writer")
        self._tidy(state.dataset)

    def _merge(self, state: State, row: pa.Table, action: str, gone: str | None = None) -> None:
        with lance_errors(self._location):
            merge = getattr(state.dataset.merge_insert(self._key), action)()
            if gone is not None:
                merge = merge.when_not_matched_by_source_delete(gone)
            counts: dict[str, Any] = merge.conflict_retries(0).execute(row)
        if counts["num_inserted_rows"] + counts["num_updated_rows"] != 1:
            raise Lost(f"{self._location} was changed by another writer")
        self._tidy(state.dataset)

    def _row(self, state: State, key: str | None, values: Values) -> pa.Table:
        """One row; the columns that `values` does not name keep what they hold under `key`."""
        old: dict[str, Any] = {}
        if key is not None:
            old = state.rows.filter(pc.equal(state.rows[self._key], key)).slice(0, 1).to_pylist()[0]
        schema = state.dataset.schema
        return pa.table({name: [values.get(name, old.get(name))] for name in schema.names}, schema=schema)

    def _tidy(self, dataset: lance.LanceDataset) -> None:
        """Keeps reading fast. Whoever loses this race to another writer leaves it to the next change."""
        with suppress(BridgeError, Missing, Lost), lance_errors(self._location):
            if len(dataset.get_fragments()) > _COMPACTED_FRAGMENTS:
                dataset.optimize.compact_files()
                dataset.cleanup_old_versions(older_than=_KEPT)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
