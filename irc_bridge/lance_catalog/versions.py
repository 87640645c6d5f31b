"""The keeper of versions, which decides who makes a version of a table, and the keeper for tables whose files are
their versions: there put-if-absent of a manifest's final name decides (seed 001 without version management)."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from irc_bridge.catalog.models import Commit, Levels, NewVersion, Page, TableInfo, VersionRange, VersionRecord
from irc_bridge.lance_catalog.names import ResolvedTable


@dataclass(frozen=True, slots=True)
class TableChange:
    """The changes of one commit to one table."""

    table: ResolvedTable
    new: NewVersion | None
    """The version that the commit makes. Its manifest is staged."""
    commit: Commit = field(default_factory=Commit)
    info: TableInfo | None = None
    """The table as the commit was decided on it; None for a version that was asked for alone."""
    identity: str = ""
    """Tells whether the commit is in already."""

    @property
    def is_staged_here(self) -> bool:
        """Whether the catalog staged the manifest itself: a writer's own is the writer's to remove."""
        return self.new is not None and self.info is not None and self.commit.new_version is None


class Versions(Protocol):
    def make(self, changes: Sequence[TableChange]) -> tuple[VersionRecord, ...]:
        """Makes staged manifests versions. A repeat of what was done succeeds. InvalidInput for a staged manifest
        that cannot be that version, TableVersionAlreadyExists, ConcurrentModification. Records are given for
        changes without `info`."""

    def was_made(self, table: ResolvedTable, new: NewVersion) -> bool:
        """Whether that very staged manifest became a version, also when its file is gone and others followed."""

    def list(
        self, table: ResolvedTable, descending: bool, after: int | None, limit: int | None
    ) -> Page[VersionRecord]: ...

    def delete(self, table: ResolvedTable, ranges: Sequence[VersionRange], ignore_missing: bool) -> int: ...

    def finish_pending(self, table: ResolvedTable) -> bool:
        """Finishes a version that a process made only half. True when the table has to be resolved again."""

    def adopt_versions(self, table: ResolvedTable) -> bool:
        """Takes over versions that writers made past the catalog. True when the table has to be resolved again."""

    def accepts(self, table: ResolvedTable, version: int) -> bool:
        """Whether a version counts that its file just made."""


class KeeperOfSeveral(Protocol):
    """Commits to several tables at once, all or none."""

    commits_beside_others: bool
    """Whether changes of tables that are no Lance tables can be part of the commit."""

    def require_transactions(self) -> None:
        """Unsupported where the backend cannot do that."""

    def require_able(self, table: ResolvedTable, info: TableInfo, commit: Commit) -> None:
        """InvalidInput for a commit that cannot be part of a commit to several tables."""

    def commit_all(self, changes: Sequence[TableChange], others: Sequence[Mapping[str, Any]]) -> None:
        """ConcurrentModification, TableVersionAlreadyExists, CommitFailed when nothing was changed."""

    def after_all(self, changes: Sequence[TableChange]) -> None:
        """Does what is left to do after the commit."""


class FilesOfNames(Protocol):
    """The part of the keeper of names that `FileVersions` uses."""

    def resolve(self, table: Levels) -> ResolvedTable: ...

    def identity(self, table: ResolvedTable, version: int) -> Hashable: ...

    def declare_before_last(self, table: ResolvedTable) -> object: ...


class FileVersions:
    """The files of a table are its versions."""

    def __init__(self, names: FilesOfNames) -> None:
        self._names = names

    def make(self, changes: Sequence[TableChange]) -> tuple[VersionRecord, ...]:
        return tuple(self._make(each.table, each.new) for each in changes if each.new is not None)

    def was_made(self, table: ResolvedTable, new: NewVersion) -> bool:
        return table.files.versions.was_made(table.path, new)

    def list(
        self, table: ResolvedTable, descending: bool, after: int | None, limit: int | None
    ) -> Page[VersionRecord]:
        return table.files.versions.list(table.path, descending, after, limit)

    def delete(self, table: ResolvedTable, ranges: Sequence[VersionRange], ignore_missing: bool) -> int:
        return table.files.versions.delete(
            table.path, ranges, ignore_missing, lambda: self._names.declare_before_last(table)
        )

    def finish_pending(self, table: ResolvedTable) -> bool:
        return False

    def adopt_versions(self, table: ResolvedTable) -> bool:
        return False

    def accepts(self, table: ResolvedTable, version: int) -> bool:
        return True

    def _make(self, table: ResolvedTable, new: NewVersion) -> VersionRecord:
        before = self._names.identity(table, new.version)

        def is_still_there() -> bool:
            now = self._names.resolve(table.name)
            is_same = self._names.identity(now, new.version) == before
            return is_same and now.versions.accepts(now, new.version)

        return table.files.versions.finalise(table.path, new, is_still_there)
