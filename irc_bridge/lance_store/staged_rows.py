"""Rows that a client sent. Their files are written first, where nobody sees them; then one manifest makes them the
content of a table. It is made on a copy of the table that holds nothing but its manifest."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import write_fragments

from irc_bridge.catalog.models import TableVersion
from irc_bridge.errors import BrokenTable, InvalidInput, TableAlreadyExists
from irc_bridge.lance_store.failures import Lost, Missing, lance_errors
from irc_bridge.lance_store.manifests import head_of, with_metadata
from irc_bridge.lance_store.schemas import require_readable
from irc_bridge.lance_store.table_folders import FirstFile
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.storage.base import Storage, first_line
from irc_bridge.storage.layout import DATA, FIRST, VERSIONS, newest_of, staged_name

_EXISTS = "Dataset already exists"


class SentRows:
    def __init__(self, storage: Storage, path: str, operation: Any, owns_rows: bool = True) -> None:
        """`owns_rows` says whether `discard` removes the files of the rows too."""
        self._storage = storage
        self._path = path
        self._operation = operation
        self._owns_rows = owns_rows
        self._staged: str | None = None

    def first(self, metadata: Mapping[str, str]) -> FirstFile:
        """Version 1 of a new table. Without it the files of the rows go again."""
        try:
            manifest = with_metadata(_manifest_after(self._operation), metadata)
        except BaseException:
            self.discard()
            raise
        return FirstFile(self._storage, f"{self._path}/{FIRST}", manifest, self.files)

    def stage(self, base: TableVersion | None, metadata: Mapping[str, str]) -> str:
        """Writes the manifest of the version after `base` and gives its path inside the table. Raises Lost when
        `base` is gone."""
        if base is None:
            content, staged = _manifest_after(self._operation), staged_name(1)
        else:
            name = base.manifest.rpartition("/")[2]
            before = self._storage.read(f"{self._path}/{VERSIONS}/{name}")
            if before is None or head_of(before).timestamp_ms != base.timestamp_ms:
                raise Lost(f"{self._storage.location(self._path)} was changed by another writer")
            content = _manifest_after(self._operation, name, before, base.version)
            staged = staged_name(base.version + 1, like=name)
        self._unstage()
        self._staged = f"{self._path}/{VERSIONS}/{staged}"
        self._storage.write(self._staged, with_metadata(content, metadata))
        return f"{VERSIONS}/{staged}"

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the rows; empty where they are not this object's."""
        if not self._owns_rows:
            return ()
        return tuple(
            f"{self._path}/{DATA}/{file.path}" for each in self._operation.fragments for file in each.files
        )

    def are_there(self) -> bool:
        """Whether the files of the rows and the staged manifest, if there is one, are still in the folder. A drop
        removes them with everything else in the folder, also when the table is made anew after it."""
        staged = () if self._staged is None else (self._staged,)
        return all(self._storage.identity(file) is not None for file in (*self.files, *staged))

    def discard(self) -> None:
        self._unstage()
        for file in self.files:
            self._storage.delete(file)

    def _unstage(self) -> None:
        if self._staged is not None:
            self._storage.delete(self._staged)


def write_rows(storage: Storage, tables: LanceTables, path: str, rows: pa.Table, over: bool) -> SentRows:
    """Into the folder of a table: of a new one, or over the rows of one that there is, in its storage version."""
    storage.require_writable(f"{path}/{DATA}")
    with _refusals("Lance cannot store these rows", storage.location(path)):
        version = tables.open(path).data_storage_version if over else "stable"
        transaction: Any = write_fragments(
            rows,
            storage.lance_uri(path),
            schema=rows.schema,
            mode="overwrite" if over else "create",
            data_storage_version=version,
            storage_options=dict(storage.options) or None,
            return_transaction=True,
        )
    return SentRows(storage, path, transaction.operation)


@contextmanager
def _refusals(what: str, location: str) -> Iterator[None]:
    try:
        with lance_errors(location):
            yield
    except BrokenTable as error:
        why = first_line(error.__cause__ or error)
        if why.startswith(_EXISTS):
            raise TableAlreadyExists(f"Somebody else made a table at {location} meanwhile") from error
        raise InvalidInput(f"{what}: {why}") from error
    except Missing as error:
        raise Lost(f"The folder {location} was removed while rows were written into it: try again") from error


def _manifest_after(operation: Any, name: str = "", before: bytes = b"", version: int = 0) -> bytes:
    with TemporaryDirectory(prefix="irc-bridge-") as folder:
        table = Path(folder, "table")
        versions = table / VERSIONS
        if before:
            versions.mkdir(parents=True)
            (versions / name).write_bytes(before)
        with _refusals("Lance cannot make a version of these rows", folder):
            lance.LanceDataset.commit(table, operation, read_version=version or None)
            require_readable(table)
        newest = newest_of([each.name for each in versions.iterdir()])
        assert newest is not None
        return (versions / newest).read_bytes()
