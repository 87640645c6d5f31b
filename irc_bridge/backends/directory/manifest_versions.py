"""Versions that the manifest decides about, seed 001's table version management: a version is made by its row.

    step                                       a crash after it leaves
    1 the writer stages a manifest             a staged file that goes after a day
    2 the row `users$7` names the staged file  the version, made; the next look at the table goes on with 3
    3 the staged file gets its final name      the same
    4 the row names the final file             nothing

The next version gets no row before the latest is through step 4, so that one at most is on the way.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from irc_bridge.backends.directory.folders import Folders
from irc_bridge.backends.directory.manifest import Change, Manifest, Snapshot
from irc_bridge.backends.directory.names import object_id
from irc_bridge.backends.directory.objects import Objects, Row, is_impl, metadata_text, version_id, version_of_id
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
from irc_bridge.catalog.models import MANAGED_BY, Commit, NewVersion, Page, TableInfo, VersionRange, VersionRecord
from irc_bridge.errors import (
    BridgeError,
    BrokenTable,
    CommitStateUnknown,
    ConcurrentModification,
    InvalidInput,
    ServiceUnavailable,
    TableVersionAlreadyExists,
)
from irc_bridge.lance_catalog.names import ResolvedTable
from irc_bridge.lance_catalog.versions import TableChange
from irc_bridge.lance_store.staged import Staged, retire
from irc_bridge.lance_store.version_files import VersionFiles, versions_in
from irc_bridge.names import dotted
from irc_bridge.storage.base import Storage
from irc_bridge.storage.layout import VERSIONS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry:
    table: ResolvedTable
    version: int
    path: str
    """Of the staged manifest."""
    staged: Staged | None
    final: str

    @property
    def staged_path(self) -> str:
        return self.path.removeprefix(f"{self.table.path}/")


def counted_rows(snapshot: Snapshot, row: Row) -> dict[int, Row] | None:
    """The rows of a table's versions; None where its files are the versions. Rows of Lance 4 to 7, whose numbers
    are padded, only tell what the files tell."""
    if not snapshot.manages_versions:
        return None
    versions = snapshot.objects.versions(row.object_id)
    latest = max(versions, default=0)
    if latest and versions[latest].object_id == version_id(row.object_id, latest):
        return dict(versions)
    return {} if not versions and is_impl(row.properties) else None


class ManifestVersions:
    """Keeps versions as rows of `__manifest`."""

    def __init__(self, storage: Storage, manifest: Manifest, files: VersionFiles, folders: Folders) -> None:
        self._storage = storage
        self._manifest = manifest
        self._files = files
        self._folders = folders

    def make(self, changes: Sequence[TableChange]) -> tuple[VersionRecord, ...]:
        """All or none of them."""
        wanted = [(each.table, each.new) for each in changes if each.new is not None]
        if not wanted:
            return ()
        if len({table.name for table, _ in wanted}) < len(wanted):
            raise InvalidInput("A batch can make one version of a table, not several")
        entries = [self._entry(table, new) for table, new in wanted]
        while not self._decided(wanted, entries):
            self._finish_others(entries)
        try:
            self._finish_others(entries)
            return tuple(map(self._answer, entries))
        except ServiceUnavailable as error:
            names = ", ".join(dotted(each.table.name) for each in entries)
            raise CommitStateUnknown(
                f"The new versions of {names} were made, and the storage did not answer then: {error.message}"
            ) from error

    def require_able(self, table: ResolvedTable, info: TableInfo, commit: Commit) -> None:
        """InvalidInput for a commit that makes no row: it cannot be part of a commit to several tables."""
        why = None
        if table.versions is not self:
            why = "it is not managed_by=impl, so its storage decides about its versions"
        elif commit.new_version is None and info.latest is None:
            why = "it has no version yet"
        elif commit.set_tags or commit.remove_tags or commit.remove_versions:
            why = "tags and removals of snapshots make no version"
        if why is not None:
            raise InvalidInput(
                f"table-changes: {dotted(table.name)} cannot change in one commit with other tables: {why}. "
                f"Commit to it alone"
            )

    def _decided(self, wanted: Sequence[tuple[ResolvedTable, NewVersion]], entries: Sequence[_Entry]) -> bool:
        """False when another version must be finished first."""
        try:
            return self._manifest.change(lambda objects: self._made(objects, entries))
        except InvalidInput:
            # a staged manifest that is gone may have become the version meanwhile, by the same call
            if not all(self._has_row(table, new) for table, new in wanted):
                raise
            return True
        except ServiceUnavailable as error:
            made = False
            with suppress(BridgeError):
                made = all(self._has_row(table, new) for table, new in wanted)
            if not made:
                names = ", ".join(dotted(table.name) for table, _ in wanted)
                raise CommitStateUnknown(
                    f"Nobody can tell whether the new versions of {names} were made, because the storage did not "
                    f"answer: {error.message}. Look for them before trying again"
                ) from error
            return True

    def list(
        self, table: ResolvedTable, descending: bool, after: int | None, limit: int | None
    ) -> Page[VersionRecord]:
        objects = self._manifest.objects()
        follow = [
            each
            for each in objects.versions(object_id(table.name))
            if after is None or (each < after if descending else each > after)
        ]
        chosen = sorted(follow, reverse=descending)
        records = tuple(self._record(objects, table, each) for each in chosen[:limit])
        return Page(records, more=len(records) < len(chosen))

    def delete(self, table: ResolvedTable, ranges: Sequence[VersionRange], ignore_missing: bool) -> int:
        """The files go first: rows that a crash leaves, a repeat removes."""
        versions = self._manifest.objects().versions(object_id(table.name))
        wanted, missing = versions_in(ranges, sorted(versions))
        if missing is not None and not ignore_missing:
            raise self._files.no_version(table.path, missing)
        if wanted and wanted >= versions.keys():
            # without versions a table is one that is declared
            self._folders.reservation(table.path, {}).put()
        self._files.remove(table.path, wanted, versions)
        ids = tuple(versions[each].object_id for each in wanted)
        self._manifest.change(lambda objects: Change(None, drop=tuple(each for each in ids if objects.row(each))))
        return len(wanted)

    def finish_pending(self, table: ResolvedTable) -> bool:
        """Finishes what a process began that made a version and died. False when there was nothing to do."""
        rows: Mapping[int, Row] = table.entry
        row = _pending(rows)
        return row is not None and self._finish(table, row)

    def finish_latest(self, table: ResolvedTable) -> None:
        """As `finish_pending`, with the rows that the manifest has now."""
        row = _pending(self._manifest.objects().versions(object_id(table.name)))
        if row is not None:
            self._finish(table, row)

    def was_made(self, table: ResolvedTable, new: NewVersion) -> bool:
        return self._has_row(table, new) or self._files.was_made(table.path, new)

    def adopt_versions(self, table: ResolvedTable) -> bool:
        """Gives rows to versions that writers made past the catalog."""
        latest = self._latest(self._manifest.objects(), table)
        if self._files.manifest_of(table.path, latest + 1) is None:
            return False
        self.adopt(table)
        return True

    def accepts(self, table: ResolvedTable, version: int) -> bool:
        """Whether a version counts that its file just made, of a table that went over meanwhile."""
        self.adopt(table)
        row = self._manifest.objects().versions(object_id(table.name)).get(version)
        return row is not None and not was_staged_at(row)

    def adopt(self, table: ResolvedTable) -> None:
        """Rows for the versions that the table has without any: when it goes over, and later for those of writers
        who opened it before. They commit to the storage, and are told there that it worked. Looks again, because
        versions are made while this goes on."""
        while added := self._manifest.change(lambda objects: self._adopted(objects, table)):
            log.info("%s: %d versions are now kept in the manifest", dotted(table.name), added)

    def release(self, table: ResolvedTable) -> None:
        """Removes the rows of the table's versions: from then on the files are the versions again."""
        while not self._manifest.change(lambda objects: _released(objects, table)):
            self.finish_latest(table)

    def _has_row(self, table: ResolvedTable, new: NewVersion) -> bool:
        row = self._manifest.objects().versions(object_id(table.name)).get(new.version)
        return row is not None and was_staged_at(row) == self._entry_path(table, new)

    def _finish(self, table: ResolvedTable, row: Row) -> bool:
        try:
            settled = with_final_name(row) if self._finalise(table.path, row) else self._taken_place(table, row)
        except BrokenTable:
            if _pending(self._manifest.objects().versions(object_id(table.name))) == row:
                raise
            return True
        self._manifest.change(lambda objects: _settle(objects, row, settled))
        return True

    def _adopted(self, objects: Objects, table: ResolvedTable) -> Change[int]:
        require_row(objects, table.name, table.path)
        table_id = object_id(table.name)
        versions = objects.versions(table_id)
        ours = [each for each, row in versions.items() if row.object_id == version_id(table_id, each)]
        padded = tuple(row.object_id for each, row in versions.items() if each not in ours)
        records = self._files.list(table.path, descending=False, after=max(ours, default=0), limit=None).items
        return Change(len(records), put=tuple(row_of(each, table.name) for each in records), drop=padded)

    def _taken_place(self, table: ResolvedTable, row: Row) -> Row:
        """The row of the version that somebody made past the catalog in the place of the one that the row makes.
        Nobody was told of that yet, nor shown it."""
        version = version_of_id(row.object_id)[1]
        log.warning("%s: its version %d was written past the catalog, and counts", dotted(table.name), version)
        made = self._files.list(table.path, descending=False, after=version - 1, limit=1).items
        return row_of(made[0], table.name) if made else row

    def _entry_path(self, table: ResolvedTable, new: NewVersion) -> str:
        return self._files.staged_at(table.path, new).removeprefix(f"{table.path}/")

    def _entry(self, table: ResolvedTable, new: NewVersion) -> _Entry:
        path, staged = self._files.staged(table.path, new)
        return _Entry(table, new.version, path, staged, self._files.final_name(table.path, new, staged))

    def _made(self, objects: Objects, entries: Sequence[_Entry]) -> Change[bool]:
        """False when another version must be finished first."""
        rows = []
        for each in entries:
            require_row(objects, each.table.name, each.table.path)
            versions = objects.versions(object_id(each.table.name))
            latest = self._latest(objects, each.table)
            if each.version <= latest:
                self._require_same(each, versions.get(each.version))
            elif each.version > latest + 1:
                raise ConcurrentModification(
                    f"Version {each.version} is not the next one of {dotted(each.table.name)}: "
                    f"its latest version is {latest}"
                )
            elif self._is_unsettled(each.table, versions, latest):
                return Change(False)
            else:
                rows.append(self._new_row(each))
        return Change(True, put=tuple(rows))

    def _is_unsettled(self, table: ResolvedTable, versions: Mapping[int, Row], latest: int) -> bool:
        pending = bool(latest) and staged_path(versions[latest]) is not None
        return pending or self._files.manifest_of(table.path, latest + 1) is not None

    def _require_same(self, entry: _Entry, row: Row | None) -> None:
        """A repeat of what was done is no error."""
        if row is not None and was_staged_at(row) == entry.staged_path:
            return
        if row is None or was_staged_at(row) or not self._has_content(entry, final_name(row)):
            name = dotted(entry.table.name)
            raise TableVersionAlreadyExists(f"Version {entry.version} of {name} already exists")

    def _require_still_same(self, entry: _Entry, row: Row | None) -> None:
        """A writer past the catalog may have taken the place."""
        if row is not None and was_staged_at(row) == "" and not self._has_content(entry, final_name(row)):
            name = dotted(entry.table.name)
            raise TableVersionAlreadyExists(f"Version {entry.version} of {name} was made by another writer")

    def _has_content(self, entry: _Entry, name: str) -> bool:
        content = entry.staged.content if entry.staged else None
        return content is not None and self._storage.read(f"{entry.table.path}/{VERSIONS}/{name}") == content

    def _new_row(self, entry: _Entry) -> Row:
        # asked again here, because a drop takes it along and the name may be made anew
        if entry.staged is None or self._storage.identity(entry.path) is None:
            raise InvalidInput(f"There is no staged manifest at {self._storage.location(entry.path)}")
        head, size = entry.staged.head, len(entry.staged.content)
        return staged_row(entry.table.name, entry.version, entry.staged_path, size, head.timestamp_ms, entry.final)

    def _answer(self, entry: _Entry) -> VersionRecord:
        table, objects = entry.table, self._manifest.objects()
        require_row(objects, table.name, table.path)
        self._require_still_same(entry, objects.versions(object_id(table.name)).get(entry.version))
        self._files.remove_abandoned(table.path, entry.version, entry.final)
        if not objects.versions(object_id(table.name)) and self._has_content(entry, entry.final):
            # meanwhile the files became the versions
            return self._files.describe(table.path, entry.version)
        return self._record(objects, table, entry.version)

    def _finish_others(self, entries: Sequence[_Entry]) -> None:
        for each in entries:
            self.finish_latest(each.table)
            self.adopt_versions(each.table)

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
    def _latest(objects: Objects, table: ResolvedTable) -> int:
        return max(objects.versions(object_id(table.name)), default=0)

    def _record(self, objects: Objects, table: ResolvedTable, version: int) -> VersionRecord:
        row = objects.versions(object_id(table.name)).get(version)
        if row is None:
            raise self._files.no_version(table.path, version)
        return record_of(row, self._storage.location(f"{table.path}/{VERSIONS}"))


def _settle(objects: Objects, pending: Row, settled: Row) -> Change[None]:
    row = objects.row(pending.object_id)
    is_same = row is not None and row.metadata == pending.metadata
    return Change(None, put=(replace(settled, address=row.address),) if row is not None and is_same else ())


def _pending(rows: Mapping[int, Row] | None) -> Row | None:
    """The row of the latest version while the version's manifest waits for its final name."""
    row = rows[max(rows)] if rows else None
    return row if row is not None and staged_path(row) is not None else None


def _released(objects: Objects, table: ResolvedTable) -> Change[bool]:
    """False when a version must be finished first."""
    row = require_row(objects, table.name, table.path)
    versions = objects.versions(row.object_id).values()
    if any(staged_path(each) is not None for each in versions):
        return Change(False)
    kept = {key: value for key, value in row.properties.items() if key != MANAGED_BY}
    without = replace(row, metadata=metadata_text(row.metadata, kept))
    return Change(True, put=(without,), drop=tuple(each.object_id for each in versions))
