"""Commits. What makes a version is staged first, like a writer's own, and becomes one where all versions do.

step                                   a crash after it leaves
1 properties and schema are staged     a staged file that goes after a day
2 the staged file becomes the version  the version, made; the properties that waited for it wait on, unseen
3 what waited is removed               nothing
  tags are set and removed             those that were; the same commit again does the rest
  versions are removed, oldest first   the same
"""

import random
import time
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress

from irc_bridge.backends.directory.loading import Found
from irc_bridge.backends.directory.versions import VersionsInFiles
from irc_bridge.catalog.models import (
    COMMITS,
    Commit,
    History,
    Levels,
    NewVersion,
    TableInfo,
    VersionRange,
)
from irc_bridge.catalog.ports import Decide
from irc_bridge.errors import (
    CommitFailed,
    ConcurrentModification,
    InvalidInput,
    NotFound,
    TableVersionAlreadyExists,
)
from irc_bridge.lance_store.failures import Lost
from irc_bridge.lance_store.metadata_change import Reshape
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.lance_store.tags import require_tag_name
from irc_bridge.names import dotted
from irc_bridge.storage.base import Storage

_ATTEMPTS = 100
_REMEMBERED = 32


class Commits(VersionsInFiles):
    _storage: Storage
    _tables: LanceTables

    @abstractmethod
    def _found_to_commit(self, table: Levels) -> Found: ...

    @abstractmethod
    def _keep(self, found: Found, properties: Mapping[str, str]) -> None:
        """The properties that wait for the first version."""

    def commit(self, table: Levels, decide: Decide, history: History = History.HEADS) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                found, info = self._found_with_info(table, history)
                self._apply(found, info, decide(info))
                return
            except Lost:
                time.sleep(random.uniform(0, min(0.02, 0.002 * attempt)))
        raise CommitFailed(f"Other writers kept committing to {dotted(table)}: try again")

    def _found_with_info(self, table: Levels, history: History) -> tuple[Found, TableInfo]:
        found: list[Found] = []

        def find() -> Found:
            found.append(self._found_to_commit(table))
            return found[-1]

        info = self._loader.load_found(find, history, None)
        assert isinstance(info, TableInfo)
        return found[-1], info

    def _apply(self, found: Found, info: TableInfo, commit: Commit) -> None:
        for name in commit.set_tags:
            require_tag_name(name)
        if commit.new_version is not None:
            self._make(commit.new_version)
        elif info.latest is None:
            self._keep_properties(found, info, commit)
        elif (staged := self._staged(found, info, commit)) is not None:
            self._make_staged(found, staged)
        for name, version in commit.set_tags.items():
            self._tables.set_tag(found.path, name, version)
        for name in commit.remove_tags:
            self._tables.remove_tag(found.path, name)
        if commit.remove_versions:
            ranges = [VersionRange(version, version + 1) for version in sorted(commit.remove_versions)]
            self.delete_table_versions(found.table, ranges, ignore_missing=True)

    def _make(self, new: NewVersion) -> None:
        try:
            self.create_table_versions([new])
        except (TableVersionAlreadyExists, ConcurrentModification) as error:
            raise Lost(str(error)) from error

    def _make_staged(self, found: Found, new: NewVersion) -> None:
        try:
            self._make(new)
        except (Lost, NotFound, InvalidInput) as error:
            self._discard(found, new)
            # the staged file goes with its table
            raise Lost(str(error)) from error
        self._moved_in(found)

    def _moved_in(self, found: Found) -> None:
        """The properties that waited for the first version are in the table."""
        if self._loader.kept(found):
            self._keep(found, {})

    def _discard(self, found: Found, new: NewVersion) -> None:
        with suppress(NotFound):
            if not self.was_made(new):
                self._storage.delete(f"{found.path}/{new.staged_path}")

    def _staged(self, found: Found, info: TableInfo, commit: Commit) -> NewVersion | None:
        """The version that properties and schema make. None when they change nothing."""
        properties = _properties_after(info, commit)
        same_metadata = commit.schema_metadata in (None, info.schema_metadata)
        if properties == info.properties and same_metadata and commit.schema is None:
            return None
        assert info.latest is not None
        if commit.identity is not None:
            last = info.properties.get(COMMITS, "").split()[1 - _REMEMBERED :]
            properties[COMMITS] = " ".join([*last, commit.identity])
        wanted = Reshape(properties, commit.schema, commit.schema_metadata)
        staged = self._tables.stage_next(found.path, info.latest, wanted)
        if staged is None:
            return None
        return NewVersion(found.table, info.latest.version + 1, staged.removeprefix(f"{found.path}/"))

    def _keep_properties(self, found: Found, info: TableInfo, commit: Commit) -> None:
        if commit.schema is not None or commit.schema_metadata is not None:
            raise InvalidInput(
                f"{dotted(found.table)} is only declared: its first version, written with Lance, gives it a schema"
            )
        properties = _properties_after(info, commit)
        if properties != info.properties:
            self._keep(found, properties)


def _properties_after(info: TableInfo, commit: Commit) -> dict[str, str]:
    after = {**info.properties, **commit.set_properties}
    return {key: value for key, value in after.items() if key not in commit.remove_properties}
