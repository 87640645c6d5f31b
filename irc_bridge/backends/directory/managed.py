"""Versions that the manifest decides about, seed 001's table version management: a version is made by its row.

    step                                       a crash after it leaves
    1 the writer stages a manifest             a staged file that goes after a day
    2 the row `users$7` names the staged file  the version, made; the next look at the table goes on with 3
    3 the staged file gets its final name      the same
    4 the row names the final file             nothing

A table is governed by its rows once it has some, and from its declaration on where that says `managed_by=impl`.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from irc_bridge.backends.directory.folders import json_object
from irc_bridge.backends.directory.loading import Found
from irc_bridge.backends.directory.manifest import Change, Manifest
from irc_bridge.backends.directory.names import object_id
from irc_bridge.backends.directory.objects import TABLE_VERSION, Objects, Row, version_id
from irc_bridge.backends.directory.table_rows import require_row
from irc_bridge.catalog.models import Levels, NewVersion, Page, VersionRange, VersionRecord
from irc_bridge.errors import (
    BrokenTable,
    ConcurrentModification,
    Conflict,
    InvalidInput,
    TableVersionAlreadyExists,
)
from irc_bridge.lance_store.manifests import VERSIONS, names_of, version_of
from irc_bridge.lance_store.next_version import Make
from irc_bridge.lance_store.ranges import versions_in
from irc_bridge.lance_store.staged import Staged
from irc_bridge.lance_store.storage import Storage
from irc_bridge.lance_store.version_files import VersionFiles
from irc_bridge.names import dotted

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry:
    found: Found
    new: NewVersion
    name: str
    """Of the staged manifest."""
    staged: Staged | None
    final: str


class ManagedVersions:
    def __init__(self, storage: Storage, manifest: Manifest, files: VersionFiles) -> None:
        self._storage = storage
        self._manifest = manifest
        self._files = files

    def create(self, wanted: Sequence[tuple[Found, NewVersion]]) -> tuple[VersionRecord, ...]:
        """All or none of them."""
        if not wanted:
            return ()
        if len({found.table for found, _ in wanted}) < len(wanted):
            raise InvalidInput("A batch can make one version of a table, not several")
        entries = [self._entry(found, new) for found, new in wanted]
        self._manifest.change(lambda objects: Change(None, put=tuple(self._new_rows(objects, entries))))
        for each in entries:
            self.synchronise(each.found.table, each.found.path)
        objects = self._manifest.objects()
        return tuple(
            self._record(each.found.path, each.new.version, objects.versions(object_id(each.found.table)))
            for each in entries
        )

    def list(self, found: Found, descending: bool, after: int | None, limit: int | None) -> Page[VersionRecord]:
        versions = self._manifest.objects().versions(object_id(found.table))
        follow = [each for each in versions if after is None or (each < after if descending else each > after)]
        chosen = sorted(follow, reverse=descending)
        records = tuple(self._record(found.path, each, versions) for each in chosen[:limit])
        return Page(records, more=len(records) < len(chosen))

    def delete(
        self,
        found: Found,
        ranges: Sequence[VersionRange],
        ignore_missing: bool,
        emptying: Callable[[], object],
    ) -> int:
        """The files go first: rows that a crash leaves, a repeat removes. `emptying` is called before all go."""
        versions = self._manifest.objects().versions(object_id(found.table))
        wanted, missing = versions_in(ranges, sorted(versions))
        if missing is not None and not ignore_missing:
            raise self._files.no_version(found.path, missing)
        if wanted >= versions.keys():
            emptying()
        self._files.remove(found.path, wanted)
        ids = tuple(versions[each].object_id for each in wanted)
        self._manifest.change(lambda objects: Change(None, drop=tuple(each for each in ids if objects.row(each))))
        return len(wanted)

    def synchronise(self, table: Levels, path: str) -> bool:
        """Finishes what a process began that made a version and died. False when there was nothing to do."""
        versions = self._manifest.objects().versions(object_id(table))
        latest = max(versions, default=0)
        name = _name_of(versions[latest]) if latest else ""
        if not latest or version_of(name) is not None:
            return False
        row = versions[latest]
        final = _values(row).get("final") or names_of(latest)["V2"]
        self._finalise(path, name, final)
        settled = replace(row, metadata=json.dumps({**_values(row), "manifest_path": f"{VERSIONS}/{final}"}))
        self._manifest.change(lambda objects: Change(None, put=(settled,) if objects.row(row.object_id) else ()))
        return True

    def maker(self, found: Found) -> Make:
        """For commits of our own."""

        def make(staged: str, final: str) -> bool:
            version = version_of(final.rpartition("/")[2])
            assert version is not None
            try:
                self.create([(found, NewVersion(found.table, version, staged.removeprefix(f"{found.path}/")))])
            except Conflict:
                return False
            return True

        return make

    def adopt(self, table: Levels, path: str) -> None:
        """Rows for the versions that the table has. Looks again, because a version that is made without a row
        while this goes on counts too."""
        while added := self._manifest.change(lambda objects: self._adopted(objects, table, path)):
            log.info("%s: %d versions are now kept in the manifest", dotted(table), added)

    def release(self, table: Levels) -> None:
        """From here on the files are the versions again."""

        def release(objects: Objects) -> Change[None]:
            rows = objects.versions(object_id(table)).values()
            return Change(None, drop=tuple(row.object_id for row in rows))

        self._manifest.change(release)

    def _adopted(self, objects: Objects, table: Levels, path: str) -> Change[int]:
        require_row(objects, table, path)
        known = objects.versions(object_id(table))
        records = self._files.list(path, descending=False, after=max(known, default=0), limit=None).items
        rows = tuple(
            _row(table, each.version, each.manifest_path.rpartition("/")[2], each.manifest_size, each.timestamp_ms)
            for each in records
        )
        return Change(len(rows), put=rows)

    def _entry(self, found: Found, new: NewVersion) -> _Entry:
        path, staged = self._files.staged(found.path, new)
        final = self._files.final_name(found.path, new)
        return _Entry(found, new, path.rpartition("/")[2], staged, final)

    def _new_rows(self, objects: Objects, entries: Sequence[_Entry]) -> Iterator[Row]:
        for each in entries:
            require_row(objects, each.found.table, each.found.path)
            versions = objects.versions(object_id(each.found.table))
            name, version, latest = dotted(each.found.table), each.new.version, max(versions, default=0)
            if version <= latest:
                if _values(versions.get(version)).get("staged") != each.name:
                    raise TableVersionAlreadyExists(f"Version {version} of {name} already exists")
            elif version > latest + 1:
                raise ConcurrentModification(
                    f"Version {version} is not the next one of {name}: its latest version is {latest}"
                )
            else:
                yield self._new_row(each)

    def _new_row(self, entry: _Entry) -> Row:
        found, version = entry.found, entry.new.version
        if entry.staged is None:
            location = self._storage.location(f"{found.path}/{VERSIONS}/{entry.name}")
            raise InvalidInput(f"There is no staged manifest at {location}")
        stranger = self._files.manifest_of(found.path, version)
        if stranger is not None:
            message = (
                f"{self._storage.location(f'{found.path}/{VERSIONS}/{stranger}')} was written past the catalog: "
                f"it keeps {dotted(found.table)} from getting its version {version}. Move that file away to go on"
            )
            log.warning(message)
            raise ConcurrentModification(message)
        head = entry.staged.head
        return _row(
            found.table, version, entry.name, len(entry.staged.content), head.timestamp_ms, entry.name, entry.final
        )

    def _finalise(self, path: str, name: str, final: str) -> None:
        staged, target = f"{path}/{VERSIONS}/{name}", f"{path}/{VERSIONS}/{final}"
        content = self._storage.read(staged)
        if content is None:
            if self._storage.identity(target) is None:
                raise BrokenTable(
                    f"The staged manifest {self._storage.location(staged)} of the latest version is gone. "
                    f"Only this table is affected; restore the file or delete the version."
                )
        elif self._storage.promote(staged, target) or self._storage.read(target) == content:
            self._storage.delete(staged)
        else:
            raise BrokenTable(
                f"{self._storage.location(target)} was written past the catalog, in the place of a version that "
                f"the catalog has made. Only this table is affected; move that file away."
            )

    def _record(self, path: str, version: int, versions: Mapping[int, Row]) -> VersionRecord:
        if version not in versions:
            raise self._files.no_version(path, version)
        row = versions[version]
        values = _values(row)
        size, stamp = values.get("manifest_size"), values.get("timestamp_millis")
        return VersionRecord(
            version=version,
            manifest_path=self._storage.location(f"{path}/{VERSIONS}/{_name_of(row)}"),
            manifest_size=size if isinstance(size, int) else 0,
            e_tag=values.get("e_tag"),
            timestamp_ms=stamp if isinstance(stamp, int) else 0,
        )


def _row(
    table: Levels,
    version: int,
    name: str,
    size: int,
    timestamp_ms: int,
    staged: str | None = None,
    final: str | None = None,
) -> Row:
    values = {
        "manifest_path": f"{VERSIONS}/{name}",
        "manifest_size": size,
        "timestamp_millis": timestamp_ms,
        **({"staged": staged, "final": final} if staged else {}),
    }
    return Row(version_id(object_id(table), version), TABLE_VERSION, metadata=json.dumps(values))


def _values(row: Row | None) -> dict[str, Any]:
    return json_object(row.metadata) if row else {}


def _name_of(row: Row) -> str:
    """Older Lance wrote longer paths; the file lies among the table's versions all the same."""
    return str(_values(row).get("manifest_path", "")).rpartition("/")[2]
