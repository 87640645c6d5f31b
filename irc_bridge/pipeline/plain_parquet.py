"""Parquet files that executors read by themselves. On the way through Spark each value would become one of Java's
and an Arrow one again, which takes most of the time of an import. What is not plain is left to Spark."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from irc_bridge.errors import InvalidInput
from irc_bridge.mirror.statistics import starts_at
from irc_bridge.pipeline.columns import is_list

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LARGEST_SHARE, _SMALLEST_SHARE = 128 * 1024 * 1024, 4 * 1024 * 1024
"""Bytes of files that are a Spark task, as Spark itself shares them."""
_GROUP_BYTES = 256 * 1024 * 1024
"""A row group that is larger is read in pieces."""
_BATCH_ROWS = 64 * 1024
NOT_PLAIN = "not plain Parquet"
_OTHER_CALENDAR = {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"}
_WRITER, _FIRST_SPARK_OF_THIS_ONE = b"org.apache.spark.version", b"3"


class NotPlain(InvalidInput):
    """A file holds something that Spark reads in its own way."""

    def __init__(self) -> None:
        super().__init__(NOT_PLAIN)


@dataclass(frozen=True, slots=True)
class Piece:
    """The row groups of a file that begin between two positions."""

    path: str
    start: int
    end: int


def shares(frame: "DataFrame", schema: pa.Schema) -> list[list[Piece]]:
    """The pieces of Parquet files that `frame` reads, shared between Spark tasks; `schema` is the frame's schema
    in Arrow. Empty where Spark shall read the files itself. A task checks each file again when it reads it."""
    given = sorted(frame.inputFiles())
    paths = [path for each in given if (path := _local_path(each)) is not None]
    if len(paths) < len(given) or any(map(_names_values, paths)):
        return []
    try:
        with pq.ParquetFile(paths[0]) as first:
            _require_plain(first, schema)
        sizes = {path: Path(path).stat().st_size for path in paths}
    except (NotPlain, IndexError, OSError, pa.ArrowException):
        return []
    whole = sum(sizes.values())
    share = whole // frame.sparkSession.sparkContext.defaultParallelism
    share = min(_LARGEST_SHARE, max(_SMALLEST_SHARE, share))
    pieces = [Piece(path, start, start + share) for path, size in sizes.items() for start in range(0, size, share)]
    return _shared(pieces, [min(share, sizes[each.path] - each.start) for each in pieces], whole // share)


def _shared(pieces: Sequence[Piece], weights: Sequence[int], count: int) -> list[list[Piece]]:
    """The heaviest first, each to who has least."""
    found: list[list[Piece]] = [[] for _ in range(max(1, min(count, len(pieces))))]
    loads = [(0, number) for number in range(len(found))]
    for weight, piece in sorted(zip(weights, pieces, strict=True), key=lambda each: -each[0]):
        load, number = heappop(loads)
        found[number].append(piece)
        heappush(loads, (load + weight, number))
    return found


def rows_in(piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """NotPlain."""
    try:
        file = pq.ParquetFile(piece.path, memory_map=True)
    except (OSError, pa.ArrowException) as error:
        raise NotPlain from error
    with file:
        _require_plain(file, schema)
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            if piece.start <= starts_at(group.column(0)) < piece.end:
                yield from _rows_of(file, number, group.total_byte_size)


def _require_plain(file: pq.ParquetFile, schema: pa.Schema) -> None:
    """NotPlain where Spark would not read these columns of the file as Arrow does."""
    found, noted = file.schema_arrow, file.metadata.metadata or {}
    if _OTHER_CALENDAR & noted.keys() or noted.get(_WRITER, _FIRST_SPARK_OF_THIS_ONE) < _FIRST_SPARK_OF_THIS_ONE:
        raise NotPlain
    if sorted(found.names) != sorted(schema.names):
        raise NotPlain
    for field in schema:
        if not _is_same(found.field(field.name).type, field.type):
            raise NotPlain


def _is_same(found: pa.DataType, by_spark: pa.DataType) -> bool:
    if isinstance(found, pa.DictionaryType):
        return _is_same(found.value_type, by_spark)
    if pa.types.is_struct(found) and pa.types.is_struct(by_spark):
        pairs = zip(found, by_spark, strict=False)
        same = all(one.name == other.name and _is_same(one.type, other.type) for one, other in pairs)
        return same and found.num_fields == by_spark.num_fields
    if pa.types.is_map(found) and pa.types.is_map(by_spark):
        same_keys = _is_same(found.key_type, by_spark.key_type)
        return same_keys and _is_same(found.item_type, by_spark.item_type)
    if is_list(found) and is_list(by_spark):
        return _is_same(found.value_type, by_spark.value_type)
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(by_spark):
        # Spark reads nanoseconds, which may be its older form of times, as it is told to
        return found.unit in ("ms", "us") and (found.tz is None) == (by_spark.tz is None)
    return bool(_WITHOUT_LARGE.get(found, found) == by_spark)


_WITHOUT_LARGE = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def _rows_of(file: pq.ParquetFile, group: int, size: int) -> Iterable[pa.RecordBatch]:
    if size > _GROUP_BYTES:
        return file.iter_batches(_BATCH_ROWS, row_groups=[group], use_threads=False)  # type: ignore[no-any-return]
    return file.read_row_group(group, use_threads=False).to_batches()  # type: ignore[no-any-return]


def _names_values(path: str) -> bool:
    """Whether a folder may say what is in a column."""
    return any("=" in folder for folder in path.split("/")[:-1])


def _local_path(uri: str) -> str | None:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" and parts.netloc == "" else None
