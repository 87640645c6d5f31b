"""Writing one Parquet file. Runs in executors."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from irc_bridge.mirror.statistics import FIELD_ID, Statistics, leaves, statistics

ROWS_ONLY = pa.schema([pa.field("rows_without_columns", pa.bool_(), metadata={FIELD_ID: b"2147483446"})])
"""Of a file that only says how many rows there are. No table has a field of this id, and no file may be empty."""

_GROUP_BYTES = 64 * 1024 * 1024


def write_parquet(path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Statistics:
    columns = leaves(schema)
    footers: list[pq.FileMetaData] = []
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=[leaf.path for leaf in columns if _repeats(leaf.type)],
        write_statistics=[leaf.path for leaf in columns if not leaf.repeated],
        store_schema=False,
        metadata_collector=footers,
    ) as writer:
        for group in _row_groups(batches):
            writer.write_table(group, row_group_size=len(group))
    return statistics(footers[0], schema)


def _repeats(type_: pa.DataType) -> bool:
    """Values that a dictionary may make smaller; numbers would cost time for nothing."""
    return type_ in (pa.string(), pa.binary())


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        gathered.append(batch)
        size += batch.nbytes
        if size >= _GROUP_BYTES:
            yield pa.Table.from_batches(gathered)
            gathered, size = [], 0
    if gathered:
        yield pa.Table.from_batches(gathered)
