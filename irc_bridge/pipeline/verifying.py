"""Lance's rows against those that an Iceberg reader finds in the mirror."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from irc_bridge.catalog.models import IcebergView, Levels, TableInfo, TableVersion
from irc_bridge.catalog.ports import Catalog
from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.fragments import fragments_of, live_rows_of, open_version
from irc_bridge.mirror.checksums import Checksums
from irc_bridge.mirror.conform import conform
from irc_bridge.mirror.pieces import Source, source_of
from irc_bridge.mirror.shapes import arrow_schema
from irc_bridge.pipeline.work import run

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.metadata import TableMetadata
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Compared:
    """A column, or the number of rows."""

    table: str
    version: int
    what: str
    lance: str
    iceberg: str

    @property
    def equal(self) -> bool:
        return self.lance == self.iceberg


def verify(
    name: str, catalog: Catalog, table: Levels, number: int | None, spark: "SparkSession"
) -> list[Compared]:
    """The newest version that engines can read, unless one is named."""
    info = catalog.load_table(table)
    assert isinstance(info, TableInfo)
    version = _version(name, info, number)
    source = source_of(catalog, table, info)
    schema = _schema(version)
    sides = [_of_lance(spark, source, version, schema), _of_iceberg(spark, source, info, version, schema)]
    lance, iceberg = (_lines(each) for each in sides)
    return [Compared(name, version.version, what, lance[what], iceberg[what]) for what in lance]


def _version(name: str, info: TableInfo, number: int | None) -> TableVersion:
    if number is None:
        number = max(info.mirrored, default=None)
        if number is None:
            raise InvalidInput(f"{name} has no Parquet copy yet: make one with irc-bridge mirror {name}")
    version = next((each for each in info.versions if each.version == number), None)
    if version is None:
        raise InvalidInput(f"{name} has no version {number}")
    if number not in info.mirrored:
        raise InvalidInput(
            f"Version {number} of {name} has no Parquet copy: make one with irc-bridge mirror {name} "
            f"--versions {number}..{number}"
        )
    return version


def _schema(version: TableVersion) -> pa.Schema:
    from irc_bridge.translation.schema import to_iceberg

    return arrow_schema(to_iceberg(version.schema, 1).schema.as_struct())


def _of_lance(spark: "SparkSession", source: Source, version: TableVersion, schema: pa.Schema) -> Checksums:
    dataset = open_version(source.location, source.options, version.version)
    fragments = [(each.number, each.size) for each in fragments_of(dataset)]
    work = partial(_sum_lance, source, version.version, schema)
    return _sum(schema, run(spark, work, fragments, _size, "Reading Lance"))


def _of_iceberg(
    spark: "SparkSession", source: Source, info: TableInfo, version: TableVersion, schema: pa.Schema
) -> Checksums:
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.io import load_file_io
    from pyiceberg.table import Table

    from irc_bridge.translation.metadata import table_metadata
    from irc_bridge.translation.storage_options import iceberg_options

    io = load_file_io(dict(iceberg_options(source.options)), info.location)
    metadata = table_metadata(info, IcebergView())
    table = Table(("verified",), metadata, "", io, NoopCatalog("irc-bridge"))
    tasks = [(task, task.file.file_size_in_bytes) for task in table.scan(snapshot_id=version.version).plan_files()]
    work = partial(_sum_iceberg, metadata, io, version.version, schema)
    return _sum(schema, run(spark, work, tasks, _size, "Reading Parquet"))


def _size(task: tuple[Any, int]) -> int:
    return task[1]


def _sum_lance(source: Source, version: int, schema: pa.Schema, task: tuple[int, int]) -> Checksums:
    dataset = open_version(source.location, source.options, version)
    return _of_batches(live_rows_of(dataset, task[0], schema.names), schema)


def _sum_iceberg(
    metadata: "TableMetadata", io: "FileIO", version: int, schema: pa.Schema, task: "tuple[FileScanTask, int]"
) -> Checksums:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    snapshot = metadata.snapshot_by_id(version)
    assert snapshot is not None
    projected = next(each for each in metadata.schemas if each.schema_id == snapshot.schema_id)
    scan = ArrowScan(metadata, io, projected, AlwaysTrue())
    return _of_batches(scan.to_record_batches([task[0]]), schema)


def _of_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Checksums:
    found = Checksums()
    for batch in batches:
        found.add(conform(batch, schema))
    return found


def _sum(schema: pa.Schema, parts: Sequence[Checksums]) -> Checksums:
    none = Checksums()
    none.add(pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema))
    return none.merge(parts)


def _lines(found: Checksums) -> dict[str, str]:
    return {"number of rows": str(found.rows), **{name: f"{each:016x}" for name, each in found.columns.items()}}
