"""The work on one fragment: its rows as a Parquet file, its deletions as files of positions. It can be repeated:
each time it makes new files, and only a manifest list that names them makes them count. Runs in executors."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa

from irc_bridge.catalog.models import Levels, TableInfo
from irc_bridge.catalog.ports import CanAllowLocations, CanVendCredentials, Catalog
from irc_bridge.lance_store.failures import Missing
from irc_bridge.lance_store.fragments import Dataset, count_of, deleted_of, open_version, rows_of
from irc_bridge.lance_store.mirror_layout import DATA
from irc_bridge.lance_store.uploads import NewFiles
from irc_bridge.mirror.conform import conform
from irc_bridge.mirror.parquet import ROWS_ONLY, write_parquet
from irc_bridge.mirror.statistics import FIELD_ID, Statistics
from irc_bridge.storage.locations import place_of

_BATCH_BYTES = 16 * 1024 * 1024
PATH_ID, POSITION_ID = 2147483546, 2147483545
"""The field ids that Iceberg reserves in files of deleted positions."""
_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={FIELD_ID: str(PATH_ID).encode()}),
        pa.field("pos", pa.int64(), nullable=False, metadata={FIELD_ID: str(POSITION_ID).encode()}),
    ]
)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a table lies."""

    location: str
    options: Mapping[str, str] = field(repr=False)


def source_of(catalog: Catalog, table: Levels, info: TableInfo) -> Source:
    options = catalog.storage_options(table) if isinstance(catalog, CanVendCredentials) else {}
    return Source(info.location, options)


def allowed_locations_of(catalog: Catalog) -> Sequence[str]:
    return catalog.allowed_locations() if isinstance(catalog, CanAllowLocations) else ()


@dataclass(frozen=True, slots=True)
class Deletions:
    """The rows that a fragment has lost at a version."""

    key: str
    version: int


@dataclass(frozen=True, slots=True)
class Piece:
    key: str
    """Names the rows: fragments with the same key have the same Parquet file."""
    run: str
    """Whose new files these are."""
    fragment: int
    version: int
    """One at which the fragment can be read."""
    schema: pa.Schema
    columns: frozenset[int]
    size: int
    data: str | None = None
    """The Parquet file, where there is one already."""
    deletions: tuple[Deletions, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A new file."""

    key: str
    path: str
    size: int
    statistics: Statistics
    data: str | None = None
    """The Parquet file whose rows it deletes."""


class Writer:
    """Writes pieces one after the other. It keeps open what it has read: pieces of one version come together, and
    to open it again for each costs more than a small fragment."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._files = NewFiles(source.location, source.options)
        self._opened: Dataset | None = None

    def __call__(self, piece: Piece) -> list[Written]:
        """Less than it asks for where Lance has cleaned up what it needs."""
        written: list[Written] = []
        with suppress(Missing):
            if piece.data is None:
                written.append(self._write_rows(piece))
            data = piece.data or written[0].path
            for each in piece.deletions:
                written.append(self._write_deletions(piece, each, data))
        return written

    def _write_rows(self, piece: Piece) -> Written:
        dataset = self._open(piece.version)
        name = _new_name(piece.key, piece.run, "parquet")
        with self._files.make(name) as file:
            statistics = write_parquet(file.path, piece.schema, _rows(dataset, piece))
        return Written(piece.key, place_of(self._source.location, name), file.size, statistics)

    def _write_deletions(self, piece: Piece, deletions: Deletions, data: str) -> Written:
        positions = deleted_of(self._open(deletions.version), piece.fragment)
        paths = pa.array([data] * len(positions), pa.string())
        rows = pa.RecordBatch.from_arrays([paths, positions], schema=_DELETES)
        name = _new_name(deletions.key, piece.run, "deletes.parquet")
        with self._files.make(name) as file:
            statistics = write_parquet(file.path, _DELETES, [rows])
        statistics.lower_bounds[PATH_ID] = statistics.upper_bounds[PATH_ID] = data.encode()
        return Written(deletions.key, place_of(self._source.location, name), file.size, statistics, data)

    def _open(self, version: int) -> Dataset:
        if self._opened is None or self._opened.version != version:
            self._opened = open_version(self._source.location, self._source.options, version)
        return self._opened


def _rows(dataset: Dataset, piece: Piece) -> Iterator[pa.RecordBatch]:
    if piece.schema == ROWS_ONLY:
        nothing = pa.nulls(count_of(dataset, piece.fragment), pa.bool_())
        return iter([pa.RecordBatch.from_arrays([nothing], schema=ROWS_ONLY)])
    batches = rows_of(dataset, piece.fragment, piece.schema.names, _BATCH_BYTES)
    return (conform(each, piece.schema) for each in batches)


def _new_name(key: str, run: str, kind: str) -> str:
    return f"{DATA}/{key}-{run}-{uuid4().hex}.{kind}"
