"""Mirrors made in this process, and read by pyiceberg."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import load_file_io
from pyiceberg.table import Table

from contract_tests.directory.opened import load, open_in
from contract_tests.translation.lance_tables import alter
from irc_bridge.catalog.models import IcebergView, TableInfo
from irc_bridge.mirror.mirrors import Brought, Mirror
from irc_bridge.mirror.pieces import Piece, Source, Writer, Written
from irc_bridge.storage.locations import encoded
from irc_bridge.translation.metadata import table_metadata

ALL = range(1, 10_000)
Options = Mapping[str, str]


class Lake:
    """A folder, local or in a bucket, with one table."""

    def __init__(self, root: str, options: Options = {}, name: str = "t") -> None:  # noqa: B006
        self.root = root
        self.options = dict(options)
        self.name = name
        # of a URI Lance decodes what looks encoded
        self.uri = f"{root}/{encoded(name) if '://' in root else name}.lance"

    def write(self, rows: pa.Table, **how: Any) -> lance.LanceDataset:
        return lance.write_dataset(rows, self.uri, storage_options=self.options or None, **how)

    def open(self, version: int | None = None) -> lance.LanceDataset:
        return lance.dataset(self.uri, version=version, storage_options=self.options or None)

    def rename(self, column: str, name: str) -> None:
        alter(self.open(), path=column, name=name)

    def info(self) -> TableInfo:
        return load(open_in("v1", self.root, **self.options), (self.name,))

    def mirror(self) -> Mirror:
        info = self.info()
        return Mirror(Source(info.location, self.options), info)

    def bring(self, versions: Iterable[int] = ALL) -> list[Brought]:
        return [*self.mirror().bring(versions, in_turn)]

    def seen(self, version: int) -> pa.Table:
        """By pyiceberg."""
        s3 = {
            "s3.endpoint": self.options.get("aws_endpoint", ""),
            "s3.access-key-id": self.options.get("aws_access_key_id", ""),
            "s3.secret-access-key": self.options.get("aws_secret_access_key", ""),
        }
        metadata = table_metadata(self.info(), IcebergView(guard_snapshot=False))
        table = Table(
            ("default", self.name), metadata, "", load_file_io(s3 if self.options else {}), NoopCatalog("c")
        )
        return table.scan(snapshot_id=version).to_arrow()

    def files(self, folder: str = "") -> set[str]:
        """Of the mirror, on a local disk."""
        top = Path(self.uri, "_iceberg", folder)
        return {str(each.relative_to(top)) for each in top.rglob("*") if each.is_file()}

    def parquet(self, version: int) -> set[str]:
        """The files that make a version, below the folder of the mirror."""
        manifests = self.mirror()._read(version)
        paths = {entry.data_file.file_path for manifest in manifests for entry in manifest.entries}
        return {path.partition("_iceberg/")[2] for path in paths}


def in_turn(source: Source, pieces: Sequence[Piece]) -> Iterator[list[Written]]:
    return map(Writer(source), pieces)


def same_rows(found: pa.Table, expected: pa.Table, key: str = "id") -> bool:
    assert found.column_names == expected.column_names
    return in_order(found, key) == in_order(expected, key)


def in_order(table: pa.Table, key: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return sorted(rows, key=lambda row: (row[key] is None, row[key]))
