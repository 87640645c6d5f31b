"""The Parquet copy of one table: an Iceberg snapshot for each of its versions, with the version as snapshot-id."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal
from uuid import uuid4

from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema

from irc_bridge.catalog.models import TableInfo, TableVersion
from irc_bridge.errors import BridgeError, Internal, InvalidInput
from irc_bridge.lance_store.failures import Missing, broken
from irc_bridge.lance_store.fragments import fragments_of, open_version
from irc_bridge.lance_store.manifest_paths import require_inside
from irc_bridge.lance_store.mirror_layout import DATA, MANIFESTS, list_name
from irc_bridge.mirror.avro import Manifest, data_file, list_of, new_manifest, read_list, read_manifest
from irc_bridge.mirror.changes import Change, changed
from irc_bridge.mirror.pieces import Piece, Source, Written
from irc_bridge.mirror.plans import Files, NeededFragment, Pieces, needed_fragments
from irc_bridge.storage.base import Storage, open_storage
from irc_bridge.storage.layout import LISTS
from irc_bridge.storage.locations import AllowedLocations, path_below, place_of
from irc_bridge.translation.schema import to_iceberg

_BATCH_BYTES = 4 * 1024**3
"""So much is written before the versions that it is for are committed: what a killed run loses."""
_BATCH_VERSIONS = 100
_CLEANUP_S = 10

Work = Callable[[Source, Sequence[Piece]], Iterable[list[Written]]]
"""Does all pieces with a `Writer`, wherever it likes."""


@dataclass(frozen=True, slots=True)
class Brought:
    """The outcome for one version."""

    version: int
    outcome: Literal["mirrored", "another run was first", "cleaned up meanwhile"]
    rows: int = 0
    fragments: int = 0
    files_written: int = 0
    files_reused: int = 0
    bytes_written: int = 0


@dataclass(slots=True)
class _Run:
    """The new files of a run; which of them count is not known before a version is committed."""

    id: str = field(default_factory=lambda: uuid4().hex[:12])
    """Stands in their names."""
    written: dict[str, Written] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def use(self, live: Iterable[str]) -> list[Written]:
        """The written files among `live` that no version used before. From now on they count."""
        fresh = [path for path in live if path in self.written and path not in self.used]
        self.used.update(fresh)
        return [self.written[path] for path in fresh]


class Mirror:
    def __init__(self, source: Source, info: TableInfo, allowed_locations: Sequence[str] = ()) -> None:
        """Rows are copied from the table's folder and from the allowed locations only."""
        self._source = source
        self._allowed = AllowedLocations(allowed_locations)
        self._versions = {version.version: version for version in info.versions}
        self._storage: Storage = open_storage(source.location, source.options)
        self._manifests: dict[str, Manifest] = {}

    def present(self) -> set[int]:
        """The versions that it has."""
        names = set(self._storage.names(LISTS))
        return {number for number, version in self._versions.items() if self._name(version) in names}

    def bring(self, wanted: Iterable[int], work: Work) -> Iterator[Brought]:
        """Adds versions in rising order. New files that no version needs in the end are removed. InvalidInput at
        the first version that names files elsewhere."""
        run = _Run()
        present = self.present()
        left = sorted(set(wanted) & self._versions.keys() - present)
        try:
            while left:
                files = self._files_around(left[0], present)
                batch, pieces = self._plan(left, files, run)
                for new in work(self._source, pieces) if pieces else ():
                    for each in new:
                        run.written[each.path] = each
                        files.add(data_file(each))
                for number, needed in batch.items():
                    brought = self._add(number, needed, files, present, run)
                    if brought.outcome != "cleaned up meanwhile":
                        present.add(number)
                    yield brought
                left = left[len(batch) :]
        except BaseException:
            # also those of which nobody here has heard
            with suppress(BridgeError):
                self._remove_unused(
                    run, [f"{DATA}/{name}" for name in self._storage.names(DATA) if run.id in name]
                )
            raise
        self._remove_unused(run, (path_below(self._source.location, path) for path in run.written))

    def _remove_unused(self, run: _Run, new: Iterable[str]) -> None:
        used = {path_below(self._source.location, path) for path in run.used}
        for path in new:
            if path not in used:
                self._storage.delete(path)

    def _plan(
        self, left: Sequence[int], files: Files, run: _Run
    ) -> tuple[dict[int, list[NeededFragment] | None], list[Piece]]:
        """The next versions with what each needs, None where Lance has cleaned up; and the work for them."""
        batch: dict[int, list[NeededFragment] | None] = {}
        pieces = Pieces(files, run.id)
        for number in left[:_BATCH_VERSIONS]:
            try:
                self._require_own_files(number)
            except InvalidInput:
                if batch:
                    break
                raise
            batch[number] = self._wanted(number)
            pieces.add(batch[number] or ())
            if pieces.size >= _BATCH_BYTES:
                break
        return batch, pieces.all()

    def _require_own_files(self, number: int) -> None:
        location = self._source.location
        manifest = self._storage.read(path_below(location, self._versions[number].manifest))
        if manifest is not None:
            what = f"Version {number} of the table at {location} is not mirrored. It"
            require_inside(manifest, location, self._allowed, what)

    def _wanted(self, number: int) -> list[NeededFragment] | None:
        try:
            dataset = open_version(self._source.location, self._source.options, number)
            fields = to_iceberg(self._versions[number].schema, 1).schema.as_struct()
            return needed_fragments(number, fields, fragments_of(dataset))
        except Missing:
            return None

    def _files_around(self, number: int, present: set[int]) -> Files:
        """The files of the nearest mirrored versions below, which are carried on, and above."""
        files = Files()
        below = max((each for each in present if each < number), default=None)
        above = min((each for each in present if each > number), default=None)
        for neighbour in (below, above):
            for manifest in self._read(neighbour):
                for entry in manifest.entries:
                    files.add(entry.data_file)
        return files

    def _add(
        self, number: int, wanted: list[NeededFragment] | None, files: Files, present: set[int], run: _Run
    ) -> Brought:
        version = self._versions[number]
        if wanted is None or not self._is_there(version):
            return Brought(number, "cleaned up meanwhile")
        live = _live(wanted, files)
        if live is None:
            self._require_gone(version)
            return Brought(number, "cleaned up meanwhile")
        below = max((each for each in present if each < number), default=None)
        if not self._commit(version, live, below):
            return Brought(number, "another run was first")
        fresh = run.use(live)
        return Brought(
            number,
            "mirrored",
            rows=sum(file.record_count * (-1 if _is_deletes(file) else 1) for file in live.values()),
            fragments=len(wanted),
            files_written=len(fresh),
            files_reused=len(live) - len(fresh),
            bytes_written=sum(each.size for each in fresh),
        )

    def _commit(self, version: TableVersion, live: dict[str, DataFile], below: int | None) -> bool:
        """False where another run was first."""
        schema = to_iceberg(version.schema, 1).schema
        stored: list[tuple[Manifest, bytes]] = []
        manifests: list[Manifest] = []
        for deletes in (False, True):
            alike = {path: file for path, file in live.items() if _is_deletes(file) == deletes}
            base = [manifest for manifest in self._read(below) if manifest.deletes == deletes]
            change = changed(base, alike)
            manifests += change.carried
            made = self._made(change, version.version, schema, deletes)
            manifests += [manifest for manifest, _ in made]
            stored += made
        for manifest, data in stored:
            self._storage.write(path_below(self._source.location, manifest.file.manifest_path), data)
        data = list_of([manifest.file for manifest in manifests], version.version, self._parent(version.version))
        path = f"{LISTS}/{self._name(version)}"
        # an answer may be lost, and the request sent again by the storage's own client: then it is ours
        won = self._storage.put_if_absent(path, data) or self._storage.read(path) == data
        if not won:
            for manifest, _ in stored:
                self._storage.delete(path_below(self._source.location, manifest.file.manifest_path))
        return won

    def _made(self, change: Change, version: int, schema: Schema, deletes: bool) -> list[tuple[Manifest, bytes]]:
        made = []
        for kept, added in change.new:
            path = place_of(self._source.location, f"{MANIFESTS}/{uuid4().hex}.avro")
            manifest, data = new_manifest(path, version, schema, kept, added, deletes)
            self._manifests[path] = manifest
            made.append((manifest, data))
        return made

    def _read(self, number: int | None) -> list[Manifest]:
        """The manifests of a version that is mirrored."""
        if number is None:
            return []
        path = f"{LISTS}/{self._name(self._versions[number])}"
        found = read_list(self._storage.location(path), self._stored(path))
        unknown = [file for file in found if file.manifest_path not in self._manifests]
        paths = [path_below(self._source.location, file.manifest_path) for file in unknown]
        for file, content in zip(unknown, self._storage.at_once(self._stored, paths), strict=True):
            self._manifests[file.manifest_path] = read_manifest(file, content)
        return [self._manifests[file.manifest_path] for file in found]

    def _stored(self, path: str) -> bytes:
        data = self._storage.read(path)
        if data is None:
            raise Internal(f"{self._storage.location(path)} is gone: remove the folder _iceberg and mirror again")
        return data

    def _is_there(self, version: TableVersion) -> bool:
        """Neither cleaned up nor, with its table, dropped since."""
        name = path_below(self._source.location, version.manifest)
        return self._storage.identity(name) is not None

    def _require_gone(self, version: TableVersion) -> None:
        """Waits until a version whose files are missing is gone: a cleanup removes the files before the manifest
        that names them. BrokenTable when the manifest stays."""
        deadline = time.monotonic() + _CLEANUP_S
        while self._is_there(version):
            if time.monotonic() > deadline:
                raise broken(self._source.location, f"files of its version {version.version} are missing")
            time.sleep(0.05)

    def _name(self, version: TableVersion) -> str:
        return list_name(self._source.location, version.version, version.timestamp_ms)

    def _parent(self, version: int) -> int | None:
        return max((each for each in self._versions if each < version), default=None)


def _live(wanted: Iterable[NeededFragment], files: Files) -> dict[str, DataFile] | None:
    """None where one could not be made."""
    live: dict[str, DataFile] = {}
    for each in wanted:
        rows = files.rows_of(each)
        deletions = None if rows is None else files.deletions_of(each, rows)
        if rows is None or (deletions is None) != (each.deletions is None):
            return None
        live[rows.file_path] = rows
        if deletions is not None:
            live[deletions.file_path] = deletions
    return live


def _is_deletes(file: DataFile) -> bool:
    return bool(file.content)
