"""The files that a version needs, and the files among them that a mirror has."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import pyarrow as pa
from pyiceberg.manifest import DataFile
from pyiceberg.types import StructType

from irc_bridge.lance_store.fragments import Fragment
from irc_bridge.mirror.pieces import PATH_ID, Deletions, Piece
from irc_bridge.mirror.shapes import shape
from irc_bridge.mirror.statistics import leaves

FORMAT = 1
"""Another number makes every file be written again."""


@dataclass(frozen=True, slots=True)
class NeededFragment:
    """A fragment at a version."""

    key: str
    fragment: int
    version: int
    schema: pa.Schema
    columns: frozenset[int]
    """The field ids of the columns that its file must have."""
    size: int
    deletions: str | None
    """Names the rows that it has lost."""


def needed_fragments(version: int, fields: StructType, fragments: Iterable[Fragment]) -> list[NeededFragment]:
    shapes: dict[frozenset[int], tuple[pa.Schema, frozenset[int]]] = {}
    found = []
    for each in fragments:
        if each.fields not in shapes:
            schema = shape(fields, each.fields)
            shapes[each.fields] = schema, frozenset(leaf.field_id for leaf in leaves(schema))
        schema, columns = shapes[each.fields]
        key = _digest(FORMAT, each.files)
        deletions = None if each.deletions is None else _digest(key, each.deletions)
        found.append(NeededFragment(key, each.number, version, schema, columns, each.size or each.rows, deletions))
    return found


@dataclass(slots=True)
class Files:
    """The files that a mirror has. Of several that fit, the first counts."""

    data: dict[str, list[DataFile]] = field(default_factory=dict)
    deletions: dict[tuple[str, str], DataFile] = field(default_factory=dict)
    """By their own key and the file whose rows they delete."""

    def add(self, file: DataFile) -> None:
        key = key_of(file.file_path)
        if PATH_ID in (file.lower_bounds or {}):
            self.deletions.setdefault((key, file.lower_bounds[PATH_ID].decode()), file)
        else:
            self.data.setdefault(key, []).append(file)

    def rows_of(self, wanted: NeededFragment) -> DataFile | None:
        for file in self.data.get(wanted.key, ()):
            if wanted.columns <= file.column_sizes.keys():
                return file
        return None

    def deletions_of(self, wanted: NeededFragment, rows: DataFile) -> DataFile | None:
        return self.deletions.get((wanted.deletions, rows.file_path)) if wanted.deletions is not None else None


def key_of(path: str) -> str:
    return path.rpartition("/")[2].partition("-")[0]


class Pieces:
    """The work that versions need which a mirror does not have yet; one piece for all that need the same rows."""

    def __init__(self, files: Files, run: str) -> None:
        self._files = files
        self._run = run
        self._pieces: dict[str, list[Piece]] = {}
        self.size = 0

    def add(self, wanted: Iterable[NeededFragment]) -> None:
        for each in wanted:
            rows = self._files.rows_of(each)
            if rows is None or (each.deletions is not None and self._files.deletions_of(each, rows) is None):
                self._add(each, rows)

    def all(self) -> list[Piece]:
        return [piece for pieces in self._pieces.values() for piece in pieces]

    def _add(self, wanted: NeededFragment, rows: DataFile | None) -> None:
        pieces = self._pieces.setdefault(wanted.key, [])
        data = None if rows is None else rows.file_path
        for number, piece in enumerate(pieces):
            if piece.data == data and wanted.columns <= piece.columns:
                # the newest version is the last that a cleanup removes
                version = wanted.version if wanted.schema.equals(piece.schema, True) else piece.version
                pieces[number] = _with_deletions(replace(piece, version=version), wanted)
                return
        new = Piece(
            wanted.key,
            self._run,
            wanted.fragment,
            wanted.version,
            wanted.schema,
            wanted.columns,
            wanted.size,
            data,
        )
        pieces.append(_with_deletions(new, wanted))
        self.size += wanted.size if rows is None else 0


def _with_deletions(piece: Piece, wanted: NeededFragment) -> Piece:
    if wanted.deletions is None:
        return piece
    others = tuple(known for known in piece.deletions if known.key != wanted.deletions)
    return replace(piece, deletions=(*others, Deletions(wanted.deletions, wanted.version)))


def _digest(*parts: object) -> str:
    return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
