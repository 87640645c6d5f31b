"""Real Lance tables for the tests: written by pylance, read as the bridge reads them."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from irc_bridge.catalog.models import Field, History, Schema, TableInfo
from irc_bridge.lance_store.schemas import read_schema
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.storage.local import LocalStorage


def write(schema: pa.Schema, folder: Path) -> lance.LanceDataset:
    empty = pa.RecordBatchReader.from_batches(schema, [])
    lance.write_dataset(empty, folder, schema=schema, data_storage_version="2.2")
    return lance.dataset(folder)


def alter(dataset: lance.LanceDataset, **change: Any) -> None:
    alteration: Any = change  # pylance's own annotation does not fit what it takes
    dataset.alter_columns(alteration)


def schema_of(dataset: lance.LanceDataset) -> Schema:
    return read_schema(dataset.lance_schema.fields(), dataset.schema)


def stored(column: pa.Field, folder: Path) -> Field:
    """What the bridge reads after pylance wrote a table with this one column."""
    (field,) = schema_of(write(pa.schema([column]), folder))
    return field


def table_info(folder: Path) -> TableInfo:
    storage = LocalStorage(str(folder.parent), {})
    content = LanceTables(storage).read(folder.name, History.ALL)
    assert content is not None
    return TableInfo(
        location=storage.location(folder.name),
        properties=content.metadata,
        versions=content.versions,
        tags=content.tags,
        updated_ms=content.versions[-1].timestamp_ms,
        token=None,
    )
