"""Sums over the rows of a table that do not depend on their order. Runs in executors, so it knows pyarrow only."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]

_NULL = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0x100000001B3)
ROWS = "whole rows"
"""Stands among the columns: equal only if the values of a row belong together too."""


@dataclass(slots=True)
class Checksums:
    rows: int = 0
    columns: dict[str, int] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += len(batch)
        whole = np.zeros(len(batch), np.uint64)
        for number, name in enumerate(batch.schema.names):
            hashes = _hashes(batch.column(number))
            self._add(name, hashes)
            whole = _mixed(whole * _FACTOR + hashes)
        self._add(ROWS, whole)

    def merge(self, others: Iterable["Checksums"]) -> "Checksums":
        for other in others:
            self.rows += other.rows
            for name, value in other.columns.items():
                self.columns[name] = (self.columns.get(name, 0) + value) % 2**64
        return self

    def _add(self, name: str, hashes: Hashes) -> None:
        self.columns[name] = (self.columns.get(name, 0) + int(hashes.sum(dtype=np.uint64))) % 2**64


def _hashes(array: pa.Array) -> Hashes:
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if array.offset:
        array = array.take(pa.array(np.arange(len(array))))
    hashes = _of_values(array)
    if array.null_count:
        hashes = np.where(array.is_null().to_numpy(zero_copy_only=False), _NULL, hashes)
    return hashes


def _of_values(array: pa.Array) -> Hashes:
    type_ = array.type
    if pa.types.is_struct(type_):
        whole = np.ones(len(array), np.uint64)
        for number in range(type_.num_fields):
            whole = _mixed(whole * _FACTOR + _hashes(array.field(number)))
        return whole
    if pa.types.is_map(type_):
        entries = _mixed(_hashes(array.keys) * _FACTOR + _hashes(array.items))
        return _of_sequences(array.offsets.to_numpy(), entries)
    if pa.types.is_list(type_):
        return _of_sequences(array.offsets.to_numpy(), _hashes(array.values))
    if pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return _of_bytes(array.cast(pa.large_binary()))
    if pa.types.is_decimal(type_):
        halves = np.frombuffer(array.buffers()[1], np.uint64, 2 * len(array))
        return _mixed(_mixed(halves[::2]) * _FACTOR + halves[1::2])
    return _mixed(_bits(array))


def _bits(array: pa.Array) -> Hashes:
    if pa.types.is_floating(array.type):
        values = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    whole = array.cast(pa.int32()) if pa.types.is_date32(array.type) or pa.types.is_boolean(array.type) else array
    numbers: npt.NDArray[np.int64] = whole.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return numbers.view(np.uint64)


def _of_bytes(array: pa.Array) -> Hashes:
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1)
    data = array.buffers()[2]
    values = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return _of_sequences(offsets, values.astype(np.uint64))


def _of_sequences(offsets: npt.NDArray[np.integer], items: Hashes) -> Hashes:
    """Of the items between offsets, each with its place."""
    lengths = np.diff(offsets)
    starts = np.repeat(offsets[:-1], lengths)
    positions = np.arange(offsets[0], offsets[-1]) - starts
    placed = _mixed(items[offsets[0] : offsets[-1]] + positions.astype(np.uint64) * _FACTOR + np.uint64(1))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(placed, dtype=np.uint64)])
    ends = offsets - offsets[0]
    return _mixed(sums[ends[1:]] - sums[ends[:-1]] + lengths.astype(np.uint64))


def _mixed(values: Hashes) -> Hashes:
    """splitmix64's last steps."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed
