from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq

T = "main.default.t"
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])


def rows(ids: Sequence[int], name: str = "n") -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"{name}{each}" for each in ids]}, schema=SCHEMA)


def parquet(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


def at(root: Path, version: int | None = None, name: str = "t") -> lance.LanceDataset:
    return lance.dataset(str(root / f"{name}.lance"), version=version)


def contents(dataset: lance.LanceDataset) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = dataset.to_table().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def files(root: Path, name: str = "t") -> set[str]:
    folder = root / f"{name}.lance"
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}
