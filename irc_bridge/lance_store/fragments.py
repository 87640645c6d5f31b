"""The fragments of a version, and their rows. Runs in a server, in a command and in Spark's executors."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import lance
import pyarrow as pa

from irc_bridge.lance_store.failures import broken, lance_errors

_ROWS = 1024 * 1024

Dataset = lance.LanceDataset

Storage = Mapping[str, str]
"""Lance's storage options."""


@dataclass(frozen=True, slots=True)
class Fragment:
    number: int
    files: str
    """What identifies its rows as they were written: two fragments with the same have the same."""
    fields: frozenset[int]
    """The ids of those fields of which there are values."""
    deletions: str | None
    """What identifies the set of its deleted rows."""
    rows: int
    """Deleted ones included."""
    size: int
    """In bytes."""


def open_version(location: str, options: Storage, version: int) -> Dataset:
    """Missing, BrokenTable."""
    with lance_errors(location):
        return lance.dataset(location, version=version, storage_options=dict(options) or None)


def fragments_of(dataset: Dataset) -> list[Fragment]:
    with lance_errors(dataset.uri):
        return [_fragment(each.metadata.to_json()) for each in dataset.get_fragments()]


def rows_of(dataset: Dataset, number: int, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
    """All rows of a fragment in the order in which they lie, deleted ones too. Batches have about `size` bytes."""
    with lance_errors(dataset.uri):
        fragment = _found(dataset, number)
        yield from fragment.scanner(
            columns=list(columns),
            include_deleted_rows=fragment.num_deletions > 0,
            with_row_id=fragment.num_deletions > 0,
            batch_size=max(1, min(_ROWS, fragment.physical_rows * size // max(1, _size_of(fragment)))),
        ).to_batches()


def count_of(dataset: Dataset, number: int) -> int:
    """Deleted rows included."""
    with lance_errors(dataset.uri):
        return _found(dataset, number).physical_rows


def live_rows_of(dataset: Dataset, number: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    with lance_errors(dataset.uri):
        yield from _found(dataset, number).scanner(columns=list(columns)).to_batches()


def deleted_of(dataset: Dataset, number: int) -> pa.Array:
    """The offsets of a fragment's deleted rows, in rising order."""
    import numpy as np

    with lance_errors(dataset.uri):
        fragment = _found(dataset, number)
        live = np.zeros(fragment.physical_rows, dtype=bool)
        for batch in fragment.scanner(columns=[], with_row_address=True).to_batches():
            live[batch.column("_rowaddr").to_numpy() & 0xFFFFFFFF] = True
    return pa.array(np.flatnonzero(~live), pa.int64())


def _fragment(found: dict[str, object]) -> Fragment:
    files = found["files"]
    assert isinstance(files, list)
    deletions = found["deletion_file"]
    return Fragment(
        number=int(str(found["id"])),
        files=json.dumps([found["id"], files, found["overlays"]], sort_keys=True),
        fields=frozenset(field for file in files for field in file["fields"] if field >= 0),
        deletions=None if deletions is None else json.dumps(deletions, sort_keys=True),
        rows=int(str(found["physical_rows"])),
        size=sum(file["file_size_bytes"] or 0 for file in files),
    )


def _found(dataset: Dataset, number: int) -> lance.LanceFragment:
    fragment = dataset.get_fragment(number)
    if fragment is None:
        raise broken(dataset.uri, f"version {dataset.version} has no fragment {number}")
    return fragment


def _size_of(fragment: lance.LanceFragment) -> int:
    return sum(file.file_size_bytes or 0 for file in fragment.metadata.files)
