"""Commits: load, decide, stage, make the version, and again for whoever lost.

step                                   a crash after it leaves
1 properties and schema are staged     a staged file that goes after a day
2 the staged file becomes the version  the version, made; the properties that waited for it wait on, unseen
3 what waited is removed               nothing
  tags are set and removed             those that were; the same commit again does the rest
  versions are removed, oldest first   the same
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from irc_bridge.catalog.models import COMMITS, Commit, History, Levels, NewVersion, TableInfo, VersionRange
from irc_bridge.catalog.ports import Decide
from irc_bridge.errors import (
    BridgeError,
    CommitFailed,
    CommitStateUnknown,
    ConcurrentModification,
    InvalidInput,
    NotFound,
    TableVersionAlreadyExists,
)
from irc_bridge.lance_catalog.loading import LoadedTable, Loading
from irc_bridge.lance_catalog.names import Names, ResolvedTable
from irc_bridge.lance_catalog.versions import KeeperOfSeveral, TableChange
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.metadata_change import Reshape
from irc_bridge.lance_store.tags import require_tag_name
from irc_bridge.names import dotted

_ATTEMPTS = 100
_REMEMBERED = 32

Others = Sequence[Mapping[str, Any]]
"""Changes of tables that are no Lance tables, as a client sent them."""
Check = Callable[[ResolvedTable, TableInfo, Commit], None]
"""Raises InvalidInput for a commit that cannot take part."""


class Commits:
    def __init__(self, names: Names, loading: Loading) -> None:
        self._names = names
        self._loading = loading

    def commit(self, table: Levels, decide: Decide, history: History) -> None:
        repeated(lambda: self._commit(table, decide, history), [table])

    def _commit(self, table: Levels, decide: Decide, history: History) -> None:
        change = self.planned(table, decide, history)
        with discarding([change]), lost_to_others(change):
            if change.new is not None:
                change.table.versions.make([change])
        self._names.store_properties(change)
        files, commit = change.table.files, change.commit
        for name, version in commit.set_tags.items():
            files.tables.set_tag(files.path, name, version)
        for name in commit.remove_tags:
            files.tables.remove_tag(files.path, name)
        if commit.remove_versions:
            ranges = [VersionRange(version, version + 1) for version in sorted(commit.remove_versions)]
            now = self._loading.with_versions(table)
            now.versions.delete(now, ranges, ignore_missing=True)

    def commit_together(
        self, keeper: KeeperOfSeveral, changes: Mapping[Levels, Decide], history: History = History.HEADS
    ) -> None:
        """All or none of them."""
        self.commit_mixed(keeper, changes, (), history)

    def commit_mixed(
        self, keeper: KeeperOfSeveral, changes: Mapping[Levels, Decide], others: Others, history: History
    ) -> None:
        keeper.require_transactions()
        repeated(lambda: self._commit_all(keeper, changes, others, history), list(changes))

    def _commit_all(
        self, keeper: KeeperOfSeveral, changes: Mapping[Levels, Decide], others: Others, history: History
    ) -> None:
        planned: list[TableChange] = []
        with discarding(planned):
            for table, decide in changes.items():
                planned.append(self.planned(table, decide, history, keeper.require_able))
            try:
                keeper.commit_all(planned, others)
            except (TableVersionAlreadyExists, ConcurrentModification) as error:
                raise Lost(str(error)) from error
            except CommitFailed as error:
                if others:
                    # the refusal may be about the changes of others
                    raise
                raise Lost(str(error)) from error
        keeper.after_all(planned)

    def planned(self, name: Levels, decide: Decide, history: History, check: Check | None = None) -> TableChange:
        """The changes of a commit, with the manifest of its version staged."""
        loaded = self._loading.load_to_commit(name, history)
        commit = decide(loaded.info)
        if check is not None:
            check(loaded.table, loaded.info, commit)
        for tag in commit.set_tags:
            require_tag_name(tag)
        new = commit.new_version or self._staged(loaded, commit)
        return TableChange(loaded.table, new, commit, loaded.info, commit.identity or uuid4().hex)

    def _staged(self, loaded: LoadedTable, commit: Commit) -> NewVersion | None:
        """The version that properties and schema make. None when they change nothing in a version."""
        table, latest = loaded.table, loaded.info.latest
        if latest is None and not _same_schema(loaded.info, commit):
            raise InvalidInput(
                f"{dotted(table.name)} is only declared: its first version, written with Lance, gives it a schema"
            )
        metadata = self._next_metadata(loaded, commit)
        if latest is None or metadata is None:
            return None
        wanted = Reshape(metadata, commit.schema, commit.schema_metadata)
        staged = table.files.tables.stage_next(table.path, latest, wanted)
        if staged is None:
            return None
        return NewVersion(table.name, latest.version + 1, staged.removeprefix(f"{table.path}/"))

    def _next_metadata(self, loaded: LoadedTable, commit: Commit) -> dict[str, str] | None:
        """The Lance table metadata of the next version. None when it has what the latest has."""
        info = loaded.info
        if not self._names.properties_in_manifest:
            return _metadata_with_schema(loaded, commit)
        metadata = properties_after(info, commit)
        if metadata == info.properties and _same_schema(info, commit):
            return None
        if commit.identity is not None:
            metadata[COMMITS] = remembered(info.properties.get(COMMITS, ""), commit.identity)
        return metadata


def _same_schema(info: TableInfo, commit: Commit) -> bool:
    return commit.schema is None and commit.schema_metadata in (None, info.schema_metadata)


def _metadata_with_schema(loaded: LoadedTable, commit: Commit) -> dict[str, str] | None:
    """The metadata of the next version where the backend keeps the properties with the name, so that only the
    schema is in the version. None when the schema stays."""
    if _same_schema(loaded.info, commit):
        return None
    metadata = dict(loaded.metadata)
    if commit.identity is not None and not (commit.set_properties or commit.remove_properties):
        metadata[COMMITS] = remembered(metadata.get(COMMITS, ""), commit.identity)
    return metadata


def repeated(attempt: Callable[[], None], tables: Sequence[Levels]) -> None:
    """Calls `attempt` until no other writer comes between. CommitFailed when others keep doing so."""
    for number in range(_ATTEMPTS):
        try:
            attempt()
            return
        except Lost:
            time.sleep(random.uniform(0, min(0.02, 0.002 * number)))
    names = ", ".join(map(dotted, tables))
    raise CommitFailed(f"Other writers kept committing to {names}: nothing was changed, try again")


@contextmanager
def discarding(changes: Sequence[TableChange]) -> Iterator[None]:
    """Removes the manifests that the catalog staged itself when they make no version."""
    try:
        yield
    except CommitStateUnknown:
        raise
    except Exception:
        for each in changes:
            if each.is_staged_here and each.new is not None:
                with suppress(BridgeError):
                    if not each.table.versions.was_made(each.table, each.new):
                        each.table.files.storage.delete(f"{each.table.path}/{each.new.staged_path}")
        raise


@contextmanager
def lost_to_others(change: TableChange) -> Iterator[None]:
    """Lost where another writer came first. A manifest that was staged here goes with its table: then its absence
    is that too."""
    try:
        yield
    except (TableVersionAlreadyExists, ConcurrentModification, CommitFailed) as error:
        raise Lost(str(error)) from error
    except (NotFound, InvalidInput) as error:
        if change.is_staged_here and (isinstance(error, NotFound) or not _is_staged(change)):
            raise Lost(str(error)) from error
        raise


def _is_staged(change: TableChange) -> bool:
    """Whether the staged manifest is still there."""
    table, new = change.table, change.new
    return new is not None and table.files.storage.identity(f"{table.path}/{new.staged_path}") is not None


def properties_after(info: TableInfo, commit: Commit) -> dict[str, str]:
    after: Mapping[str, str] = {**info.properties, **commit.set_properties}
    return {key: value for key, value in after.items() if key not in commit.remove_properties}


def remembered(identities: str, identity: str) -> str:
    """The identities of the last commits, with this one."""
    return " ".join([*identities.split()[1 - _REMEMBERED :], identity])
