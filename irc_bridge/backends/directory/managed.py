"""Versions that the manifest decides about, seed 001's table version management: a version is made by its row.

    step                                       a crash after it leaves
    1 the writer stages a manifest             a staged file that goes after a day
    2 the row `users$7` names the staged file  the version, made; the next look at the table goes on with 3
    3 the staged file gets its final name      the same
    4 the row names the final file             nothing

The next version gets no row before the latest is through step 4, so that one at most is on the way.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from irc_bridge.backends.directory.loading import Found
from irc_bridge.backends.directory.manifest import Change, Manifest
from irc_bridge.backends.directory.names import object_id
from irc_bridge.backends.directory.objects import Objects, Row, version_id, version_of_id
from irc_bridge.backends.directory.table_rows import require_row
from irc_bridge.backends.directory.version_rows import (
    final_name,
    record_of,
    row_of,
    staged_path,
    staged_row,
    was_staged_at,
    with_final_name,
)
from irc_bridge.catalog.models import Levels, NewVersion, Page, VersionRange, VersionRecord
from irc_bridge.errors import (
    BridgeError,
    BrokenTable,
    CommitStateUnknown,
    ConcurrentModification,
    InvalidInput,
    ServiceUnavailable,
    TableVersionAlreadyExists,
)
from irc_bridge.lance_store.staged import Staged, retire
from irc_bridge.lance_store.version_files import VersionFiles, versions_in
from irc_bridge.names import dotted
from irc_bridge.storage.base import Storage
from irc_bridge.storage.layout import VERSIONS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry:
    found: Found
    version: int
    path: str
    """Of the staged manifest."""
    staged: Staged | None
    final: str

    @property
    def staged_path(self) -> str:
        return self.path.removeprefix(f"{self.found.path}/")


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
        while not self._decided(wanted, entries):
            self._synchronise(entries)
        try:
            self._synchronise(entries)
            return tuple(map(self._answer, entries))
        except ServiceUnavailable as error:
            names = ", ".join(dotted(each.found.table) for each in entries)
            raise CommitStateUnknown(
                f"The new versions of {names} were made, and the storage did not answer then: {error.message}"
            ) from error

    def _decided(self, wanted: Sequence[tuple[Found, NewVersion]], entries: Sequence[_Entry]) -> bool:
        """False when another version must be finished first."""
        try:
            return self._manifest.change(lambda objects: self._made(objects, entries))
        except InvalidInput:
            # a staged manifest that is gone may have become the version meanwhile, by the same call
            if not all(self.was_made(found, new) for found, new in wanted):
                raise
            return True
        except ServiceUnavailable as error:
            made = False
            with suppress(BridgeError):
                made = all(self.was_made(found, new) for found, new in wanted)
            if not made:
                names = ", ".join(dotted(found.table) for found, _ in wanted)
                raise CommitStateUnknown(
                    f"Nobody can tell whether the new versions of {names} were made, because the storage did not "
                    f"answer: {error.message}. Look for them before trying again"
                ) from error
            return True

    def list(self, found: Found, descending: bool, after: int | None, limit: int | None) -> Page[VersionRecord]:
        objects = self._manifest.objects()
        follow = [
            each
            for each in objects.versions(object_id(found.table))
            if after is None or (each < after if descending else each > after)
        ]
        chosen = sorted(follow, reverse=descending)
        records = tuple(self._record(objects, found, each) for each in chosen[:limit])
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
        if wanted and wanted >= versions.keys():
            emptying()
        self._files.remove(found.path, wanted, versions)
        ids = tuple(versions[each].object_id for each in wanted)
        self._manifest.change(lambda objects: Change(None, drop=tuple(each for each in ids if objects.row(each))))
        return len(wanted)

    def synchronise(self, table: Levels, path: str) -> bool:
        """Finishes what a process began that made a version and died. False when there was nothing to do."""
        row = self._pending(table)
        if row is None:
            return False
        try:
            settled = with_final_name(row) if self._finalise(path, row) else self._taken_place(table, path, row)
        except BrokenTable:
            if self._pending(table) == row:
                raise
            return True
        self._manifest.change(lambda objects: _settle(objects, row, settled))
        return True

    def was_made(self, found: Found, new: NewVersion) -> bool:
        row = self._manifest.objects().versions(object_id(found.table)).get(new.version)
        return row is not None and was_staged_at(row) == self._entry_path(found, new)

    def latest(self, found: Found) -> int:
        return self._latest(self._manifest.objects(), found)

    def adopt(self, found: Found) -> None:
        """Rows for the versions that the table has without any: when it goes over, and later for those of writers
        who opened it before. They commit to the storage, and are told there that it worked. Looks again, because
        versions are made while this goes on."""
        while added := self._manifest.change(lambda objects: self._adopted(objects, found)):
            log.info("%s: %d versions are now kept in the manifest", dotted(found.table), added)

    def has_stranger(self, found: Found, version: int) -> bool:
        """Whether somebody made the next version past the catalog."""
        return self._files.manifest_of(found.path, version) is not None

    def _adopted(self, objects: Objects, found: Found) -> Change[int]:
        require_row(objects, found.table, found.path)
        table_id = object_id(found.table)
        versions = objects.versions(table_id)
        ours = [each for each, row in versions.items() if row.object_id == version_id(table_id, each)]
        padded = tuple(row.object_id for each, row in versions.items() if each not in ours)
        records = self._files.list(found.path, descending=False, after=max(ours, default=0), limit=None).items
        return Change(len(records), put=tuple(row_of(each, found.table) for each in records), drop=padded)

    def _taken_place(self, table: Levels, path: str, row: Row) -> Row:
        """The row of the version that somebody made past the catalog in the place of the one that the row makes.
        Nobody was told of that yet, nor shown it."""
        version = version_of_id(row.object_id)[1]
        log.warning("%s: its version %d was written past the catalog, and counts", dotted(table), version)
        made = self._files.list(path, descending=False, after=version - 1, limit=1).items
        return row_of(made[0], table) if made else row

    def _entry_path(self, found: Found, new: NewVersion) -> str:
        return self._files.staged_at(found.path, new).removeprefix(f"{found.path}/")

    def _entry(self, found: Found, new: NewVersion) -> _Entry:
        path, staged = self._files.staged(found.path, new)
        return _Entry(found, new.version, path, staged, self._files.final_name(found.path, new, staged))

    def _made(self, objects: Objects, entries: Sequence[_Entry]) -> Change[bool]:
        """False when another version must be finished first."""
        rows = []
        for each in entries:
            require_row(objects, each.found.table, each.found.path)
            versions = objects.versions(object_id(each.found.table))
            latest = self._latest(objects, each.found)
            if each.version <= latest:
                self._require_same(each, versions.get(each.version))
            elif each.version > latest + 1:
                raise ConcurrentModification(
                    f"Version {each.version} is not the next one of {dotted(each.found.table)}: "
                    f"its latest version is {latest}"
                )
            elif self._is_unsettled(each.found, versions, latest):
                return Change(False)
            else:
                rows.append(self._new_row(each))
        return Change(True, put=tuple(rows))

    def _is_unsettled(self, found: Found, versions: Mapping[int, Row], latest: int) -> bool:
        pending = bool(latest) and staged_path(versions[latest]) is not None
        return pending or self.has_stranger(found, latest + 1)

    def _require_same(self, entry: _Entry, row: Row | None) -> None:
        """A repeat of what was done is no error."""
        if row is not None and was_staged_at(row) == entry.staged_path:
            return
        if row is None or was_staged_at(row) or not self._has_content(entry, final_name(row)):
            name = dotted(entry.found.table)
            raise TableVersionAlreadyExists(f"Version {entry.version} of {name} already exists")

    def _require_still_same(self, entry: _Entry, row: Row | None) -> None:
        """A writer past the catalog may have taken the place."""
        if row is not None and was_staged_at(row) == "" and not self._has_content(entry, final_name(row)):
            name = dotted(entry.found.table)
            raise TableVersionAlreadyExists(f"Version {entry.version} of {name} was made by another writer")

    def _has_content(self, entry: _Entry, name: str) -> bool:
        content = entry.staged.content if entry.staged else None
        return content is not None and self._storage.read(f"{entry.found.path}/{VERSIONS}/{name}") == content

    def _new_row(self, entry: _Entry) -> Row:
        # asked again here, because a drop takes it along and the name may be made anew
        if entry.staged is None or self._storage.identity(entry.path) is None:
            raise InvalidInput(f"There is no staged manifest at {self._storage.location(entry.path)}")
        head, size = entry.staged.head, len(entry.staged.content)
        return staged_row(
            entry.found.table, entry.version, entry.staged_path, size, head.timestamp_ms, entry.final
        )

    def _answer(self, entry: _Entry) -> VersionRecord:
        found, objects = entry.found, self._manifest.objects()
        require_row(objects, found.table, found.path)
        self._require_still_same(entry, objects.versions(object_id(found.table)).get(entry.version))
        self._files.remove_abandoned(found.path, entry.version, entry.final)
        if not objects.versions(object_id(found.table)) and self._has_content(entry, entry.final):
            # meanwhile the files became the versions
            return self._files.describe(found.path, entry.version)
        return self._record(objects, found, entry.version)

    def _synchronise(self, entries: Sequence[_Entry]) -> None:
        for each in entries:
            self.synchronise(each.found.table, each.found.path)
            if self.has_stranger(each.found, self.latest(each.found) + 1):
                self.adopt(each.found)

    def _pending(self, table: Levels) -> Row | None:
        versions = self._manifest.objects().versions(object_id(table))
        row = versions[max(versions)] if versions else None
        return row if row is not None and staged_path(row) is not None else None

    def _finalise(self, path: str, row: Row) -> bool:
        """False when another manifest has the place."""
        staged, target = f"{path}/{staged_path(row)}", f"{path}/{VERSIONS}/{final_name(row)}"
        content = self._storage.read(staged)
        if content is None:
            if self._storage.identity(target) is None:
                raise BrokenTable(
                    f"The staged manifest {self._storage.location(staged)} of the latest version is gone. "
                    f"Only this table is affected; restore the file or delete the version."
                )
        elif self._files.promote(path, staged, content, final_name(row)):
            retire(self._storage, path, version_of_id(row.object_id)[1], staged)
        else:
            return False
        return True

    @staticmethod
    def _latest(objects: Objects, found: Found) -> int:
        return max(objects.versions(object_id(found.table)), default=0)

    def _record(self, objects: Objects, found: Found, version: int) -> VersionRecord:
        row = objects.versions(object_id(found.table)).get(version)
        if row is None:
            raise self._files.no_version(found.path, version)
        return record_of(row, self._storage.location(f"{found.path}/{VERSIONS}"))


def _settle(objects: Objects, pending: Row, settled: Row) -> Change[None]:
    row = objects.row(pending.object_id)
    is_same = row is not None and row.metadata == pending.metadata
    return Change(None, put=(replace(settled, address=row.address),) if row is not None and is_same else ())
