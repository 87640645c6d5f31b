"""Parts of a table that are written side by side, before one commit makes them count. Runs in executors, which
have pylance and pyarrow and nothing else of what a server needs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import lance
import pyarrow as pa
from lance.file import LanceFileReader
from lance.fragment import write_fragments

from irc_bridge.errors import BridgeError
from irc_bridge.lance_store.failures import lance_errors
from irc_bridge.storage.layout import DATA

ADDRESS = "_rowaddr"
Part = str
"""What Lance says of a fragment, as JSON."""


@dataclass(frozen=True, slots=True)
class Place:
    location: str
    options: Mapping[str, str]
    version: int | None
    """The one that parts are written for; None where the table is still to be made."""
    schema: pa.Schema


def write_parts(place: Place, batches: Iterator[pa.RecordBatch]) -> list[Part]:
    """Files that no version names. Where that fails Lance removes what it wrote."""
    watched = _Watched(batches)
    reader = pa.RecordBatchReader.from_batches(place.schema, watched)
    try:
        with lance_errors(place.location):
            new = place.version is None
            written = write_fragments(
                reader,
                place.location if new else _open(place),
                schema=place.schema,
                mode="create" if new else "append",
                data_storage_version="stable" if new else None,
                storage_options=dict(place.options) or None,
            )
    except BridgeError:
        if watched.failed is not None:
            raise watched.failed from None
        raise
    return [json.dumps(each.to_json()) for each in written]


def keys_in(place: Place, fragments: Sequence[int], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The columns of all rows, and where each row lies."""
    with lance_errors(place.location):
        dataset = _open(place)
        for number in fragments:
            scanner = _fragment(dataset, number).scanner(columns=list(columns), with_row_address=True)
            yield from scanner.to_batches()


def keys_of(place: Place, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The columns of a part that no version names yet."""
    with lance_errors(place.location):
        for file in json.loads(part)["files"]:
            where = f"{place.location}/{DATA}/{file['path']}"
            reader = LanceFileReader(where, storage_options=dict(place.options) or None, columns=list(columns))
            yield from reader.read_all().to_batches()


def without_rows(place: Place, fragment: int, offsets: Sequence[int]) -> Part | None:
    """The fragment without these rows, None where none is left."""
    with lance_errors(place.location):
        left = _fragment(_open(place), fragment).delete_rows(offsets)
    return None if left is None else json.dumps(left.to_json())


def _open(place: Place) -> lance.LanceDataset:
    return lance.dataset(place.location, version=place.version, storage_options=dict(place.options) or None)


def _fragment(dataset: lance.LanceDataset, number: int) -> lance.LanceFragment:
    found = dataset.get_fragment(number)
    assert found is not None  # a version never changes
    return found


class _Watched:
    """Of an error in Python that goes through Arrow and Lance only a text comes back."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.failed: BridgeError | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches
        except BridgeError as error:
            self.failed = error
            raise
