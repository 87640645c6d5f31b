"""Iceberg's manifests and manifest lists, format version 2, from and to bytes."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestWriterV2,
    read_manifest_list,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from irc_bridge.errors import BrokenTable
from irc_bridge.mirror.pieces import Written

_CODEC: Final = "deflate"
_PARSE_ERRORS = (
    *(AttributeError, EOFError, IndexError, KeyError, MemoryError, OverflowError, SystemError, TypeError),
    *(ValueError, zlib.error),
)
"""What pyiceberg raises, depending on which byte of an Avro file is wrong."""


@dataclass(frozen=True, slots=True)
class Manifest:
    file: ManifestFile
    entries: tuple[ManifestEntry, ...]

    @property
    def deletes(self) -> bool:
        return self.file.content == ManifestContent.DELETES


def data_file(written: Written) -> DataFile:
    statistics = written.statistics
    return DataFile.from_args(
        content=DataFileContent.DATA if written.data is None else DataFileContent.POSITION_DELETES,
        file_path=written.path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=statistics.rows,
        file_size_in_bytes=written.size,
        column_sizes=statistics.column_sizes,
        value_counts=statistics.value_counts,
        null_value_counts=statistics.null_value_counts,
        nan_value_counts={},
        lower_bounds=statistics.lower_bounds,
        upper_bounds=statistics.upper_bounds,
        key_metadata=None,
        split_offsets=statistics.split_offsets or None,
        equality_ids=None,
        sort_order_id=0,
        spec_id=0,
    )


def new_manifest(
    path: str,
    version: int,
    schema: Schema,
    kept: Sequence[ManifestEntry],
    added: Sequence[DataFile],
    deletes: bool,
) -> tuple[Manifest, bytes]:
    """`kept` are entries of manifests that it replaces."""
    output = _Memory(path)
    writer = (_DeletesWriter if deletes else ManifestWriterV2)(
        UNPARTITIONED_PARTITION_SPEC, schema, output, version, _CODEC
    )
    with writer:
        for entry in kept:
            writer.existing(entry)
        for file in added:
            writer.add(ManifestEntry.from_args(data_file=file))
    found, data = writer.to_manifest_file(), output.getvalue()
    # as a reader of the list sees it
    found.sequence_number = version
    found.min_sequence_number = min([version, *(entry.sequence_number or version for entry in kept)])
    return read_manifest(found, data), data


def read_manifest(file: ManifestFile, data: bytes) -> Manifest:
    """The manifest with its entries. BrokenTable when `data` is no Iceberg manifest."""
    with _broken_when_unreadable(file.manifest_path, "manifest"):
        return Manifest(file, tuple(file.fetch_manifest_entry(_OneFile(file.manifest_path, data))))


def list_of(manifests: Iterable[ManifestFile], version: int, parent: int | None) -> bytes:
    output = _Memory("")
    with write_manifest_list(2, output, version, parent, version, _CODEC) as writer:
        if manifests := [*manifests]:
            writer.add_manifests(manifests)
    return output.getvalue()


def empty_list() -> bytes:
    """The manifest list of a version without rows."""
    return list_of((), 0, None)


def read_list(location: str, data: bytes) -> list[ManifestFile]:
    """The manifests that a manifest list names. BrokenTable when `data` is no Iceberg manifest list."""
    with _broken_when_unreadable(location, "manifest list"):
        return [*read_manifest_list(_Memory(location, data))]


@contextmanager
def _broken_when_unreadable(location: str, kind: str) -> Iterator[None]:
    try:
        yield
    except _PARSE_ERRORS as error:
        raise BrokenTable(
            f"{location} is no Iceberg {kind}: the Parquet copy of this table is damaged. Remove the folder "
            f"_iceberg of the table and run irc-bridge mirror again"
        ) from error


class _DeletesWriter(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _Memory(OutputFile, InputFile):
    def __init__(self, location: str, data: bytes = b"") -> None:
        super().__init__(location)
        self._stream = _Stream(data)

    def __len__(self) -> int:
        return len(self.getvalue())

    def getvalue(self) -> bytes:
        return self._stream.getvalue()

    def exists(self) -> bool:
        return True

    def to_input_file(self) -> InputFile:
        return self

    def create(self, overwrite: bool = False) -> OutputStream:
        return self._stream

    def open(self, seekable: bool = True) -> InputStream:
        return BytesIO(self.getvalue())


class _Stream(BytesIO):
    def close(self) -> None:
        """Keeps the written bytes, which a closed BytesIO would drop."""


class _OneFile(FileIO):
    def __init__(self, location: str, data: bytes) -> None:
        super().__init__({})
        self._file = _Memory(location, data)

    def new_input(self, location: str) -> InputFile:
        return self._file

    def new_output(self, location: str) -> OutputFile:
        return self._file

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """There is nothing to delete."""
