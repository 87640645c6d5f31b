"""The rows of a source as parts of a table, written by the executors."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.parts import Part, Place, write_parts
from irc_bridge.pipeline.archives import keep_archives_read
from irc_bridge.pipeline.columns import fitted
from irc_bridge.pipeline.failures import in_executor
from irc_bridge.pipeline.work import watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OUT = pa.schema([pa.field("part", pa.string()), pa.field("refused", pa.string())])


@dataclass(frozen=True, slots=True)
class _Write:
    place: Place
    note: Callable[[list[Part]], object]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """An error in the data is an answer: the driver waits for all, so that it can remove what they wrote."""
        keep_archives_read()
        with in_executor():
            try:
                parts = self._written(iter(batches))
            except InvalidInput as error:
                yield pa.record_batch([[None], [error.message]], schema=_OUT)
                return
            self.note(parts)
            yield pa.record_batch([parts, [None] * len(parts)], schema=_OUT)

    def _written(self, batches: Iterator[pa.RecordBatch]) -> list[Part]:
        rows = (fitted(batch, self.place.schema) for batch in batches if batch.num_rows)
        first = next(rows, None)
        return [] if first is None else write_parts(self.place, _with_first(first, rows))


def write(frame: "DataFrame", place: Place, discard: Callable[[list[Part]], object]) -> list[Part]:
    """None of them is left, as far as it is known, when this raises."""
    noted = frame.sparkSession.sparkContext.accumulator([], _Lists())
    out = frame.mapInArrow(_Write(place, noted.add), "part string, refused string")
    try:
        said = watched(frame.sparkSession, out.collect, "Writing")
        refused = [row["refused"] for row in said if row["refused"] is not None]
        if refused:
            raise InvalidInput(f"{refused[0]}. Nothing was imported")
    except BaseException:
        discard(noted.value)
        raise
    parts = [row["part"] for row in said]
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
