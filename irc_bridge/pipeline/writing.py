"""The rows of a source as parts of a table, written by the executors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.parts import Part, Place, write_parts
from irc_bridge.pipeline.archives import keep_archives_read
from irc_bridge.pipeline.columns import fitted
from irc_bridge.pipeline.failures import in_executor
from irc_bridge.pipeline.plain_parquet import NOT_PLAIN, NotPlain, Piece, rows_in, shares
from irc_bridge.pipeline.work import watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Discard = Callable[[list[Part]], object]
Said = tuple[Part | None, str | None]
"""A part, or why there is none."""
_OUT = pa.schema([pa.field("part", pa.string()), pa.field("refused", pa.string())])


@dataclass(frozen=True, slots=True)
class _Writer:
    place: Place
    note: Callable[[list[Part]], object]

    def write(self, batches: Iterable[pa.RecordBatch]) -> list[Said]:
        """An error in the data is an answer: the driver waits for all, so that it can remove what they wrote."""
        keep_archives_read()
        with in_executor():
            try:
                parts = self._written(iter(batches))
            except InvalidInput as error:
                return [(None, error.message)]
            self.note(parts)
            return [(part, None) for part in parts]

    def _written(self, batches: Iterator[pa.RecordBatch]) -> list[Part]:
        rows = (fitted(batch, self.place.schema) for batch in batches if batch.num_rows)
        first = next(rows, None)
        return [] if first is None else write_parts(self.place, _with_first(first, rows))


@dataclass(frozen=True, slots=True)
class _Rows:
    writer: _Writer

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        said = self.writer.write(batches)
        yield pa.record_batch([[part for part, _ in said], [refused for _, refused in said]], schema=_OUT)


@dataclass(frozen=True, slots=True)
class _Files:
    writer: _Writer
    schema: pa.Schema

    def __call__(self, share: Sequence[Piece]) -> list[Said]:
        return self.writer.write(batch for piece in share for batch in rows_in(piece, self.schema))


def write(frame: "DataFrame", place: Place, discard: Discard) -> list[Part]:
    """None of them is left, as far as it is known, when this raises."""

    def job(note: Callable[[list[Part]], object]) -> Sequence[Said]:
        rows = frame.mapInArrow(_Rows(_Writer(place, note)), "part string, refused string").collect()
        return [(row["part"], row["refused"]) for row in rows]

    return _written(frame.sparkSession, job, discard)


def write_files(frame: "DataFrame", schema: pa.Schema, place: Place, discard: Discard) -> list[Part]:
    """As `write`, for a frame of Parquet files with this schema in Arrow."""
    shared = shares(frame, schema)
    context: Any = frame.sparkSession.sparkContext

    def job(note: Callable[[list[Part]], object]) -> Sequence[Said]:
        # a frame of numbers would be planned, and take longer
        spread = context.parallelize(shared, len(shared)).flatMap(_Files(_Writer(place, note), schema))
        said: list[Said] = spread.collect()
        return said

    if shared:
        with suppress(NotPlain):
            return _written(frame.sparkSession, job, discard)
    return write(frame, place, discard)


def _written(
    spark: "SparkSession", job: Callable[[Callable[[list[Part]], object]], Sequence[Said]], discard: Discard
) -> list[Part]:
    noted = spark.sparkContext.accumulator([], _Lists())
    try:
        said = watched(spark, lambda: job(noted.add), "Writing")
        refused = [why for _, why in said if why is not None]
        if NOT_PLAIN in refused:
            raise NotPlain
        if refused:
            raise InvalidInput(f"{refused[0]}. Nothing was imported")
    except BaseException:
        discard(noted.value)
        raise
    parts = [part for part, _ in said if part is not None]
    discard(sorted(set(noted.value) - set(parts)))
    return parts


def _with_first(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


def _Lists() -> Any:
    from pyspark.accumulators import AccumulatorParam

    class Lists(AccumulatorParam[list[Part]]):
        def zero(self, value: list[Part]) -> list[Part]:
            return []

        def addInPlace(self, value1: list[Part], value2: list[Part]) -> list[Part]:
            return value1 + value2

    return Lists()
