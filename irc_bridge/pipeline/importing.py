"""A source that Spark reads becomes rows of a Lance table: parts by the executors, then one commit.

step                                  a crash after it leaves
1 the executors write parts           files that no version names, which Lance's cleanup removes
2 a table that is new is declared     the same, and a declared table, which the same import fills
3 the manifest is staged              the same, and a staged file that goes after a day
4 it becomes a version                the version, made
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from irc_bridge.catalog.models import Commit, History, Levels, NewTable, NewVersion, TableInfo, TableVersion
from irc_bridge.catalog.ports import CanCommit, CanCreateTables, CanDropTables, Catalog, Decide
from irc_bridge.errors import CommitFailed, CommitStateUnknown, InvalidInput, Unsupported
from irc_bridge.lance_store.imports import Import, schema_of, sizes_of
from irc_bridge.lance_store.parts import Part, Place
from irc_bridge.lance_store.tables import first_manifest
from irc_bridge.names import dotted
from irc_bridge.pipeline import upserts
from irc_bridge.pipeline.columns import require_fitting, storable
from irc_bridge.pipeline.failures import spark_errors
from irc_bridge.pipeline.sources import Source
from irc_bridge.pipeline.writing import write, write_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Mode = Literal["append", "overwrite", "upsert"]
Find = Callable[[Place], upserts.Replaced]
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Imported:
    version: int
    rows: int
    replaced: int
    """How many rows of the table others took the place of."""
    fragments: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Target:
    catalog: Catalog
    table: Levels
    options: Mapping[str, str]
    """Lance's storage options."""
    properties: Mapping[str, str]
    """Of a table that is made."""


class _Moved(Exception):
    """The table has another version than the one that rows were found in."""


def import_rows(source: Source, target: Target, mode: Mode, keys: Sequence[str]) -> Imported:
    began = time.monotonic()
    frame = source.frame
    info = _info(target)
    schema = _schema(frame)
    place = _place(target, info, schema)
    if place.version is not None:
        require_fitting(schema, place.schema, dotted(target.table))
    if mode == "upsert":
        upserts.require_keys(frame.columns, keys, place.schema)
    files = Import(place)
    if source.is_parquet:
        parts = write_files(frame, schema, place, files.discard)
    else:
        parts = write(frame, place, files.discard)
    try:
        committing = _Committing(target, place, files, parts)
        if mode == "upsert":
            with upserts.keys_of_parts(frame.sparkSession, keys, place, parts) as wanted:
                find = partial(upserts.replace, frame.sparkSession, wanted, keys)
                version, replaced = committing.commit(info, mode, find)
        else:
            version, replaced = committing.commit(info, mode)
    except CommitStateUnknown:
        raise
    except BaseException:
        files.unstage()
        files.discard(parts)
        raise
    rows, size = sizes_of(parts)
    return Imported(version, rows, replaced, len(parts), size, time.monotonic() - began)


class _Committing:
    def __init__(self, target: Target, place: Place, files: Import, parts: list[Part]) -> None:
        self._target = target
        self._place = place
        self._files = files
        self._parts = parts
        self._made = 0

    def commit(self, info: TableInfo | None, mode: Mode, find: Find | None = None) -> tuple[int, int]:
        """The version, and how many rows were replaced: those that `find` takes out."""
        if info is not None and info.latest is not None:
            if find is not None:
                return self._upsert(info.latest, find)
            if mode == "append" and not self._parts:
                return info.latest.version, 0
            self._decide(info.latest, replace_all=mode == "overwrite")
            return self._made, 0
        if info is None:
            self._declare()
        try:
            self._decide(None, replace_all=True)
        except BaseException:
            if info is None:
                self._take_back()
            raise
        return self._made, 0

    def _declare(self) -> None:
        catalog = self._target.catalog
        assert isinstance(catalog, CanCreateTables)
        catalog.create_table(self._target.table, NewTable(self._target.properties, self._place.location))

    def _take_back(self) -> None:
        """Of a table that was declared here and got no version."""
        catalog, info = self._target.catalog, _info(self._target)
        if info is not None and info.latest is None and isinstance(catalog, CanDropTables):
            catalog.drop_table(self._target.table)

    def _decide(self, base: TableVersion | None, replace_all: bool) -> None:
        def decide(info: TableInfo) -> Commit:
            self._require_alike(info, base)
            if replace_all:
                staged = self._files.stage_all(info.latest, self._parts)
            else:
                assert info.latest is not None
                staged = self._files.stage_append(info.latest, self._parts)
            return self._next(info, staged)

        self._commit(decide)

    def _upsert(self, base: TableVersion, find: Find) -> tuple[int, int]:
        for _ in range(_ATTEMPTS):
            found = find(self._at(base.version))
            try:
                if self._parts or found.rows:
                    self._replace(base, found)
                return self._made or base.version, found.rows
            except _Moved:
                info = _info(self._target)
                if info is None or info.latest is None:
                    raise CommitFailed(f"{self} is gone") from None
                base = info.latest
            except CommitStateUnknown:
                raise
            except BaseException:
                self._files.discard_deletions(found.left)
                raise
            self._files.discard_deletions(found.left)
        raise CommitFailed(f"Other writers kept committing to {self}: nothing was changed, try again")

    def _replace(self, base: TableVersion, found: upserts.Replaced) -> None:
        def decide(info: TableInfo) -> Commit:
            self._require_alike(info, base)
            if info.latest != base:
                raise _Moved
            staged = self._files.stage_upsert(base, self._parts, found.left, found.gone)
            return self._next(info, staged)

        self._commit(decide)

    def _commit(self, decide: Decide) -> None:
        catalog = self._target.catalog
        assert isinstance(catalog, CanCommit)
        catalog.commit(self._target.table, decide)

    def _next(self, info: TableInfo, staged: str) -> Commit:
        self._made = info.latest.version + 1 if info.latest else 1
        return Commit(new_version=NewVersion(self._target.table, self._made, staged))

    def _require_alike(self, info: TableInfo, base: TableVersion | None) -> None:
        """The parts were written for this table."""
        if info.location != self._place.location:
            raise CommitFailed(f"{self} was made anew meanwhile: nothing was imported, try again")
        before, now = base.schema if base else (), info.latest.schema if info.latest else ()
        if before != now:
            raise CommitFailed(f"The columns of {self} were changed meanwhile: nothing was imported, try again")

    def _at(self, version: int) -> Place:
        return Place(self._place.location, self._place.options, version, self._place.schema)

    def __str__(self) -> str:
        return dotted(self._target.table)


def _info(target: Target) -> TableInfo | None:
    if not target.catalog.table_exists(target.table):
        return None
    info = target.catalog.load_table(target.table, History.HEADS)
    assert isinstance(info, TableInfo)
    return info


def _place(target: Target, info: TableInfo | None, schema: pa.Schema) -> Place:
    if info is not None and info.latest is not None:
        version = info.latest.version
        return Place(info.location, target.options, version, schema_of(info.location, target.options, version))
    first_manifest(storable(schema))
    if info is not None:
        return Place(info.location, target.options, None, storable(schema))
    if not isinstance(target.catalog, CanCreateTables):
        raise Unsupported(f"{dotted(target.table)} does not exist, and its catalog makes no tables")
    return Place(target.catalog.place_table(target.table, None), target.options, None, storable(schema))


def _schema(frame: "DataFrame") -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    twice = [each for each in frame.columns if frame.columns.count(each) > 1]
    if twice:
        raise InvalidInput(f"The source has several columns named {twice[0]}: rename one with --format sql")
    with spark_errors("hand over the columns of the source"):
        return to_arrow_schema(frame.schema)
