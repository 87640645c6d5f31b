"""Somebody else who writes Lance tables: this process, with pylance, past the bridge."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import lance
import pyarrow as pa


def rows(count: int, start: int = 0) -> pa.Table:
    ids = range(start, start + count)
    columns = [pa.array(ids, pa.int64()), pa.array([f"name {i}" for i in ids])]
    return pa.table(columns, names=["id", "name"])


def write(location: str | Path, data: pa.Table | None = None, mode: str = "create") -> Any:
    return lance.write_dataset(rows(3) if data is None else data, str(location), mode=mode)


def folder_of(location: str) -> Path:
    """The folder behind the URI that a client was told."""
    parts = urlsplit(location)
    assert parts.scheme == "file", location
    return Path(unquote(parts.path))


def open_table(location: str) -> Any:
    return lance.dataset(str(folder_of(location)))


def files_below(folder: Path) -> Sequence[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
