"""Commits. What makes a version is staged first, like a writer's own. Where the catalog decides, version and
properties are one commit upstream; where the storage does, put-if-absent of the manifest comes before them.

step                                      a crash after it leaves
1 a schema is staged                      a staged file that goes after a day
2 impl: the commit upstream               the version, made; its manifest is staged until the next look at it
  storage: the manifest's final name      the version, without the properties that came in the same commit
3 storage: the properties upstream        nothing
  managed_by=impl was set                 a version made meanwhile past the catalog, which does not count
  tags are set and removed                those that were; the same commit again does the rest
  versions are removed                    the same
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from irc_bridge.backends.upstream.changing import (
    adopt_late,
    hands_over,
    properties_attempt,
    property_updates,
    remembered,
)
from irc_bridge.backends.upstream.loading import Found, content_of, info_of
from irc_bridge.backends.upstream.making import Attempt
from irc_bridge.backends.upstream.table_versions import TableVersions
from irc_bridge.catalog.models import COMMITS, Commit, History, Levels, NewVersion, TableInfo, VersionRange
from irc_bridge.catalog.ports import Decide
from irc_bridge.errors import (
    BridgeError,
    BrokenTable,
    CommitFailed,
    CommitStateUnknown,
    ConcurrentModification,
    InvalidInput,
    TableVersionAlreadyExists,
    Unsupported,
)
from irc_bridge.irc_client.lance_tables import Json
from irc_bridge.irc_client.server import TRANSACTION
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.metadata_change import Reshape
from irc_bridge.lance_store.tags import require_tag_name
from irc_bridge.names import dotted

_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a commit makes of a table."""

    found: Found
    commit: Commit
    new: NewVersion | None
    """The version, whose manifest is staged."""
    updates: tuple[Json, ...]
    """Of properties."""
    identity: str


class Commits(TableVersions):
    def commit(self, table: Levels, decide: Decide, history: History = History.HEADS) -> None:
        self._repeated(lambda: self._apply(self._wanted(table, decide, history)), [table])

    def commit_together(self, changes: Mapping[Levels, Decide], history: History = History.HEADS) -> None:
        self.commit_beside(changes, (), history)

    def commit_beside(
        self, changes: Mapping[Levels, Decide], others: Sequence[Mapping[str, Any]], history: History
    ) -> None:
        if not self._tables.server.offers(TRANSACTION):
            raise Unsupported("The server behind commits to one table at a time: it has no transactions/commit")
        self._repeated(lambda: self._apply_together(changes, others, history), list(changes))

    def _repeated(self, attempt: Callable[[], None], tables: Sequence[Levels]) -> None:
        for number in range(_ATTEMPTS):
            try:
                attempt()
                return
            except Lost:
                time.sleep(random.uniform(0, min(0.1, 0.005 * number)))
        names = ", ".join(map(dotted, tables))
        raise CommitFailed(f"Other writers kept committing to {names}: nothing was changed, try again")

    def _wanted(self, table: Levels, decide: Decide, history: History) -> _Wanted:
        found = self._find(table)
        try:
            token, content = content_of(found, history)
        except BrokenTable as error:
            if self._find(table).table == found.table:
                raise
            raise Lost(str(error)) from error
        info = info_of(found, content, token)
        commit = decide(info)
        for name in commit.set_tags:
            require_tag_name(name)
        new = commit.new_version or self._staged(found, info, commit, content.metadata if content else {})
        identity = commit.identity or uuid4().hex
        return _Wanted(found, commit, new, property_updates(found.table, commit, identity), identity)

    def _staged(
        self, found: Found, info: TableInfo, commit: Commit, metadata: Mapping[str, str]
    ) -> NewVersion | None:
        """The version that a change of the schema makes. None when it changes nothing."""
        if commit.schema is None and commit.schema_metadata in (None, info.schema_metadata):
            return None
        if info.latest is None:
            raise InvalidInput(
                f"{dotted(found.name)} is only declared: its first version, written with Lance, gives it a schema"
            )
        after = dict(metadata)
        if commit.identity is not None and not (commit.set_properties or commit.remove_properties):
            after[COMMITS] = remembered(metadata.get(COMMITS, ""), commit.identity)
        path = found.files.path
        wanted = Reshape(after, commit.schema, commit.schema_metadata)
        staged = found.files.tables.stage_next(path, info.latest, wanted)
        if staged is None:
            return None
        return NewVersion(found.name, info.latest.version + 1, staged.removeprefix(f"{path}/"))

    def _apply(self, wanted: _Wanted) -> None:
        found, commit = wanted.found, wanted.commit
        with _discarding([wanted]), _asked_again_when_lost():
            if wanted.new is not None and not found.table.by_catalog:
                self._versions.create_by_file(wanted.new, found.table, found.files)
            elif (attempt := self._attempt(wanted)) is not None:
                self._versions.making.send(attempt)
        if wanted.new is not None and not found.table.by_catalog and wanted.updates:
            self._set_properties(wanted)
        self._after(wanted)
        for name, version in commit.set_tags.items():
            found.files.tables.set_tag(found.files.path, name, version)
        for name in commit.remove_tags:
            found.files.tables.remove_tag(found.files.path, name)
        if commit.remove_versions:
            ranges = [VersionRange(version, version + 1) for version in sorted(commit.remove_versions)]
            self.delete_table_versions(found.name, ranges, ignore_missing=True)

    def _apply_together(
        self, changes: Mapping[Levels, Decide], others: Sequence[Mapping[str, Any]], history: History
    ) -> None:
        every: list[_Wanted] = []
        with _discarding(every):
            for table, decide in changes.items():
                every.append(self._wanted(table, decide, history))
                _require_able(every[-1])
            with _asked_again_when_lost(alone=not others):
                attempts = [each for each in map(self._attempt, every) if each is not None]
                if attempts or others:
                    self._versions.making.send_all(attempts, others)
        for wanted in every:
            self._after(wanted)

    def _attempt(self, wanted: _Wanted) -> Attempt | None:
        """None when there is nothing left to do."""
        found = wanted.found
        if wanted.new is not None:
            return self._versions.making.prepared(wanted.new, found.table, wanted.updates)
        if not wanted.updates:
            return None
        return properties_attempt(self._tables, found, wanted.commit, wanted.updates, wanted.identity)

    def _set_properties(self, wanted: _Wanted) -> None:
        """Those that came with a version that a file made."""
        name = wanted.found.name
        for _ in range(_ATTEMPTS):
            found = self._find(name)
            updates = property_updates(found.table, wanted.commit, wanted.identity)
            if not updates:
                return
            attempt = properties_attempt(self._tables, found, wanted.commit, updates, wanted.identity)
            with suppress(ConcurrentModification, CommitFailed):
                self._versions.making.send(attempt)
                return
        raise CommitStateUnknown(f"A version of {dotted(name)} was made, and its properties could not be set")

    def _after(self, wanted: _Wanted) -> None:
        if hands_over(wanted.found.table, wanted.commit):
            adopt_late(self._tables, self._find, wanted.found.name)


@contextmanager
def _discarding(every: Sequence[_Wanted]) -> Iterator[None]:
    """What the bridge staged itself and what makes no version goes at once."""
    try:
        yield
    except CommitStateUnknown:
        raise
    except Exception:
        for each in every:
            if each.new is not None and each.commit.new_version is None:
                with suppress(BridgeError):
                    each.found.files.storage.delete(f"{each.found.files.path}/{each.new.staged_path}")
        raise


@contextmanager
def _asked_again_when_lost(alone: bool = True) -> Iterator[None]:
    """Beside changes of others a refusal may be theirs."""
    try:
        yield
    except (ConcurrentModification, TableVersionAlreadyExists) as error:
        raise Lost(str(error)) from error
    except CommitFailed as error:
        if alone:
            raise Lost(str(error)) from error
        raise


def _require_able(wanted: _Wanted) -> None:
    commit, why = wanted.commit, None
    if wanted.new is not None and not wanted.found.table.by_catalog:
        why = "it is not managed_by=impl, so its storage decides about its versions"
    elif commit.set_tags or commit.remove_tags or commit.remove_versions:
        why = "tags and removals of snapshots are not the server's to decide"
    if why is not None:
        raise InvalidInput(
            f"table-changes: {dotted(wanted.found.name)} cannot change in one commit with other tables: {why}. "
            f"Commit to it alone"
        )
