from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import lance
import pyarrow as pa

from irc_bridge.backends.directory import open_directory
from irc_bridge.catalog.models import Commit, History, Levels, NewTable, TableInfo
from irc_bridge.catalog.ports import (
    CanChangeNamespaces,
    CanCommit,
    CanCreateTables,
    CanDropTables,
    CanKeepVersions,
    CanRegisterTables,
    CanRenameTables,
    CanVendCredentials,
    Catalog,
)

MODES: Mapping[str, Any] = {
    "compat": {"manifest_enabled": True, "dir_listing_enabled": True},
    "v1": {"manifest_enabled": False, "dir_listing_enabled": True},
    "v2": {"manifest_enabled": True, "dir_listing_enabled": False},
}

VERSIONED = sorted(MODES)
"""The modes whose catalogs keep versions."""

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])


class Folder(
    Catalog,
    CanCreateTables,
    CanDropTables,
    CanRegisterTables,
    CanCommit,
    CanKeepVersions,
    CanVendCredentials,
    Protocol,
):
    """What every mode can do."""


class Directory(Folder, CanChangeNamespaces, CanRenameTables, Protocol):
    """What the modes with a manifest can do. A test that takes every mode uses only what all can."""


def open_in(mode: str, root: Path | str, **options: str) -> Directory:
    return open_directory(str(root), **MODES[mode], storage_options=options)  # type: ignore[return-value]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"row {each}" for each in ids]}, schema=SCHEMA)


def new_table(**properties: str) -> NewTable:
    return NewTable(properties, schema=SCHEMA)


def declared(**properties: str) -> NewTable:
    return NewTable(properties)


def load(catalog: Catalog, table: Levels, history: History = History.ALL) -> TableInfo:
    info = catalog.load_table(table, history)
    assert isinstance(info, TableInfo)
    return info


def names(catalog: Catalog, namespace: Levels = ()) -> list[str]:
    return list(catalog.list_tables(namespace).items)


def path_of(info: TableInfo) -> str:
    """Of a table whose path has nothing to decode."""
    return info.location.removeprefix("file://")


def append(info: TableInfo, *ids: int) -> lance.LanceDataset:
    return lance.write_dataset(rows(*ids), path_of(info), mode="append")


def versions(info: TableInfo) -> list[int]:
    return [each.version for each in info.versions]


def set_properties(
    catalog: Catalog,
    table: Levels,
    set_properties: Mapping[str, str] | None = None,
    remove_properties: frozenset[str] = frozenset(),
) -> TableInfo:
    assert isinstance(catalog, CanCommit)
    commit = Commit(set_properties=set_properties or {}, remove_properties=remove_properties)
    catalog.commit(table, lambda info: commit)
    return load(catalog, table)
