"""The rows of a table that an upsert replaces: found by their keys in the executors, and taken out of their
fragments there. Deletions are files that no version names until the commit."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.imports import fragments_at
from irc_bridge.lance_store.parts import ADDRESS, Part, Place, keys_in, keys_of, without_rows
from irc_bridge.pipeline.archives import keep_archives_read
from irc_bridge.pipeline.failures import in_executor
from irc_bridge.pipeline.work import grouped, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS_AT_ONCE = 1024 * 1024
"""A Spark task is not worth less."""


@dataclass(frozen=True, slots=True)
class Replaced:
    rows: int
    left: tuple[Part, ...]
    gone: tuple[int, ...]


def require_keys(columns: Sequence[str], keys: Sequence[str], table: pa.Schema) -> None:
    """InvalidInput for columns that no rows can be found by."""
    for key in keys:
        if key not in columns:
            raise InvalidInput(f"--key {key}: the source has no such column, it has {', '.join(columns)}")
        _comparable(key, table.field(key).type)


@contextmanager
def keys_of_parts(
    spark: "SparkSession", keys: Sequence[str], place: Place, parts: Sequence[Part]
) -> "Iterator[DataFrame]":
    """The keys of the written rows. They are read from the written files, because a source may give other rows
    when it is read again. InvalidInput for a key that is null or that several rows have."""
    found = _looked_up(spark, _OfParts(place, tuple(keys), tuple(parts)), len(parts)).persist()
    try:
        empty = found.filter(" OR ".join(f"k{number} IS NULL" for number in range(len(keys)))).limit(1)
        columns = [f"k{number}" for number in range(len(keys))]
        twice = found.groupBy(*columns).count().filter("count > 1").limit(1)
        if watched(spark, empty.collect, "Looking at keys"):
            raise InvalidInput(f"--key {', '.join(keys)}: the source has a row whose key is null")
        if told := watched(spark, twice.collect, "Looking at keys"):
            values = ", ".join(str(told[0][column]) for column in columns)
            raise InvalidInput(f"--key {', '.join(keys)}: the source has several rows with the key {values}")
        yield found
    finally:
        found.unpersist()


def replace(spark: "SparkSession", wanted: "DataFrame", keys: Sequence[str], place: Place) -> Replaced:
    """The rows with the `wanted` keys in the version that `place` names."""
    sizes = fragments_at(place)
    if not sizes:
        return Replaced(0, (), ())
    numbers = list(sizes)
    pieces = tuple(tuple(numbers[each] for each in group) for group in grouped([*sizes.values()], _ROWS_AT_ONCE))
    columns = [f"k{number}" for number in range(len(keys))]
    looked_up = _looked_up(spark, _OfFragments(place, tuple(keys), pieces), len(pieces))
    matched = looked_up.join(wanted.select(*columns), columns, "left_semi")
    split = matched.selectExpr("shiftright(address, 32) AS fragment", "address & 4294967295L AS offset")
    removed = split.groupBy("fragment").applyInArrow(_remover(place), "fragment long, part string, rows long")
    found = watched(spark, removed.collect, "Matching")
    return Replaced(
        rows=sum(row["rows"] for row in found),
        left=tuple(row["part"] for row in found if row["part"] is not None),
        gone=tuple(row["fragment"] for row in found if row["part"] is None),
    )


def _looked_up(spark: "SparkSession", look: "_Look", pieces: int) -> "DataFrame":
    """The keys, in columns k0, k1 ..., and an address."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import LongType, StructType

    schema = StructType()
    for number, each in enumerate(look.types):
        schema.add(f"k{number}", from_arrow_type(each))
    schema.add("address", LongType())
    return spark.range(0, pieces, 1, max(1, pieces)).mapInArrow(look, schema)


@dataclass(frozen=True, slots=True)
class _Look(ABC):
    place: Place
    keys: tuple[str, ...]

    @property
    def types(self) -> list[pa.DataType]:
        return [_comparable(key, self.place.schema.field(key).type) for key in self.keys]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_archives_read()
        with in_executor():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from map(self._renamed, self._rows(number))

    @abstractmethod
    def _rows(self, number: int) -> Iterable[pa.RecordBatch]:
        """Of a piece."""

    def _renamed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [rows.column(key).cast(each) for key, each in zip(self.keys, self.types, strict=True)]
        has_address = ADDRESS in rows.schema.names
        address = rows.column(ADDRESS).cast(pa.int64()) if has_address else pa.nulls(rows.num_rows, pa.int64())
        names = [f"k{number}" for number in range(len(columns))]
        return pa.RecordBatch.from_arrays([*columns, address], [*names, "address"])


@dataclass(frozen=True, slots=True)
class _OfFragments(_Look):
    pieces: tuple[tuple[int, ...], ...]

    def _rows(self, number: int) -> Iterable[pa.RecordBatch]:
        return keys_in(self.place, self.pieces[number], self.keys)


@dataclass(frozen=True, slots=True)
class _OfParts(_Look):
    parts: tuple[Part, ...]

    def _rows(self, number: int) -> Iterable[pa.RecordBatch]:
        return keys_of(self.place, self.parts[number], self.keys)


def _remover(place: Place) -> Callable[[pa.Table], pa.Table]:
    # a function, because Spark counts the arguments of what it is given
    def remove(rows: pa.Table) -> pa.Table:
        keep_archives_read()
        with in_executor():
            fragment = rows["fragment"][0].as_py()
            left = without_rows(place, fragment, rows["offset"].to_pylist())
        return pa.table(
            {
                "fragment": pa.array([fragment], pa.int64()),
                "part": pa.array([left], pa.string()),
                "rows": pa.array([rows.num_rows], pa.int64()),
            }
        )

    return remove


def _comparable(key: str, each: pa.DataType) -> pa.DataType:
    """The type in which Spark compares values of a column."""
    if pa.types.is_dictionary(each):
        each = each.value_type
    if pa.types.is_uint64(each):
        return pa.decimal128(20, 0)
    if pa.types.is_integer(each):
        return pa.int64()
    if pa.types.is_string(each) or pa.types.is_large_string(each):
        return pa.string()
    if pa.types.is_binary(each) or pa.types.is_large_binary(each) or pa.types.is_fixed_size_binary(each):
        return pa.binary()
    if pa.types.is_timestamp(each) and each.unit != "ns":
        return pa.timestamp("us", each.tz)
    if pa.types.is_date32(each) or pa.types.is_boolean(each) or pa.types.is_decimal128(each):
        return each
    raise InvalidInput(f"--key {key}: {each} is no type to find rows by")
