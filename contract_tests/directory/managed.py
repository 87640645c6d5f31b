"""Roots that manage table versions: how tests open them, look into them, and write to them with pylance."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import lance
import pyarrow as pa
import pytest

from contract_tests.directory.opened import MODES, Directory, load, path_of
from contract_tests.directory.staging import Options, Request, ThroughPort, stage
from irc_bridge.backends.directory import open_directory
from irc_bridge.backends.directory.manifest_names import ManifestNames
from irc_bridge.backends.directory.manifest_versions import ManifestVersions
from irc_bridge.catalog.models import Levels, TableInfo
from irc_bridge.lance_catalog.catalog import LanceCatalog
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.storage.base import open_storage

T = TypeVar("T")

MANAGED = ["compat", "v2"]
FLAG = "table_version_management"
WRITER_FLAGS = "lance.namespace.manifest.writer_feature_flags"


def open_managed(mode: str, root: Path | str, **options: str) -> Directory:
    flags = MODES[mode]
    return open_directory(  # type: ignore[return-value]
        str(root),
        manifest_enabled=flags["manifest_enabled"],
        dir_listing_enabled=flags["dir_listing_enabled"],
        table_version_management=True,
        storage_options=options,
    )


def keeper_of(mode: str, root: Path | str, **options: str) -> ManifestNames:
    """The keeper of names that `open_managed` opens a catalog over."""
    storage = open_storage(str(root), options)
    return ManifestNames(storage, LanceTables(storage, [str(root)]), MODES[mode]["dir_listing_enabled"], True)


def catalog_over(names: ManifestNames) -> Directory:
    return LanceCatalog(names, names)  # type: ignore[return-value]


def manifest(root: Path) -> lance.LanceDataset:
    return lance.dataset(root / "__manifest")


def rows_of(root: Path, kind: str) -> dict[str, dict[str, Any]]:
    """object_id -> metadata. An id that is there twice fails."""
    found = [row for row in manifest(root).to_table().to_pylist() if row["object_type"] == kind]
    rows = {row["object_id"]: json.loads(row["metadata"] or "{}") for row in found}
    assert len(rows) == len(found)
    return rows


def version_rows(root: Path) -> dict[str, dict[str, Any]]:
    return rows_of(root, "table_version")


def ids_of(table: str, numbers: range | list[int]) -> set[str]:
    return {f"{table}${number}" for number in numbers}


def staged(info: TableInfo) -> list[Path]:
    return sorted(Path(path_of(info), "_versions").glob("*.manifest-*"))


def final_file(info: TableInfo, version: int) -> Path:
    return Path(path_of(info), "_versions", f"{2**64 - 1 - version:020}.manifest")


def make(catalog: Directory, table: Levels, *ids: int) -> Request:
    """One more version, of what the catalog says is the latest."""
    info = load(catalog, table)
    asked = stage(info.location, *ids, version=info.versions[-1].version)
    catalog.create_table_versions([asked.entry(table)])
    return asked


class Namespace(ThroughPort):
    """Each call in a thread of its own: Lance is not called by one that it waits for."""

    def _call(self, call: Callable[[Any], T], request: Any) -> T:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(call, dict(request)).result()

    def describe_table(self, request: Any) -> Any:
        return self._call(super().describe_table, request)

    def list_table_versions(self, request: Any) -> Any:
        return self._call(super().list_table_versions, request)

    def describe_table_version(self, request: Any) -> Any:
        return self._call(super().describe_table_version, request)

    def create_table_version(self, request: Any) -> Any:
        return self._call(super().create_table_version, request)


def append_managed(
    catalog: Directory, table: Levels, data: pa.Table, options: Options = None
) -> lance.LanceDataset:
    return lance.write_dataset(
        data,
        namespace_client=Namespace(catalog, options),
        table_id=list(table),
        mode="append",
        storage_options=dict(options or {}) or None,
    )


def numbers(catalog: Directory, table: Levels, **asked: object) -> list[int]:
    return [each.version for each in catalog.list_table_versions(table, **asked).items]  # type: ignore[arg-type]


def half_made(catalog: Directory, table: Levels, asked: Request) -> None:
    """As a process leaves it that dies right after the row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ManifestVersions, "finish_pending", lambda *_: False)
        patch.setattr(ManifestVersions, "finish_latest", lambda *_: None)
        catalog.create_table_versions([asked.entry(table)])
