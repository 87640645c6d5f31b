"""A catalog of Lance tables. A backend brings a keeper of names; what the keeper can do, the catalog can do."""

import time
from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import pyarrow as pa

from irc_bridge.catalog.models import (
    EVERYTHING,
    TABLE_UUID,
    History,
    Levels,
    NewTable,
    NewVersion,
    Page,
    PageRequest,
    TableInfo,
    TableStats,
    Unchanged,
    VersionRange,
    VersionRecord,
)
from irc_bridge.catalog.ports import Decide
from irc_bridge.errors import NotFound
from irc_bridge.lance_catalog.commits import Commits
from irc_bridge.lance_catalog.errors import dropped_meanwhile
from irc_bridge.lance_catalog.loading import Loading, Token
from irc_bridge.lance_catalog.names import CreatedTable, Names, ResolvedTable
from irc_bridge.lance_catalog.rows import Rows
from irc_bridge.lance_catalog.versions import KeeperOfSeveral, TableChange
from irc_bridge.lance_store import counting
from irc_bridge.lance_store.mirror_layout import prepare_for_engines

_LOOKS = 20


class LanceCatalog:
    def __init__(self, names: Names, several: KeeperOfSeveral | None = None) -> None:
        """`several` commits to several tables at once, where the backend can do that."""
        self.probes_inline = names.probes_inline
        self._names = names
        self._loading = Loading(names)
        self._commits = Commits(names, self._loading)
        self._rows = Rows(names, self._loading, self._commits)
        for ability in names.abilities:
            setattr(self, ability, getattr(names, ability))
        if several is not None:
            self.commit_together = partial(self._commits.commit_together, several)
            if several.commits_beside_others:
                self.commit_mixed = partial(self._commits.commit_mixed, several)

    def list_namespaces(self, parent: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        return self._names.list_namespaces(parent, page)

    def load_namespace(self, namespace: Levels) -> Mapping[str, str]:
        return self._names.load_namespace(namespace)

    def namespace_exists(self, namespace: Levels) -> bool:
        return self._names.namespace_exists(namespace)

    def list_tables(self, namespace: Levels, page: PageRequest = EVERYTHING) -> Page[str]:
        return self._names.list_tables(namespace, page)

    def table_exists(self, table: Levels) -> bool:
        return self._names.table_exists(table)

    def load_table(
        self, table: Levels, history: History = History.ALL, known: Hashable | None = None
    ) -> TableInfo | Unchanged:
        if known is None:
            return self._loading.load(table, history)
        return self._loading.refresh(table, history, known)

    def is_current(self, token: Hashable) -> bool:
        return isinstance(token, Token) and self._names.is_current(token.stamp) and token.files_are_current()

    def check(self) -> None:
        self._names.check()

    def place_table(self, table: Levels, location: str | None) -> str:
        return self._names.place_table(table, location)

    def create_table(self, table: Levels, new: NewTable) -> TableInfo:
        made = self._names.create(table, new)
        if made.table is not None and new.schema is None:
            return self._loading.read(made.table, History.ALL).info
        created = self._created(table, new, made)
        if made.table is None and created.latest is not None:
            # the keeper that the properties name gets the first version
            with suppress(NotFound):
                self._loading.with_versions(table)
        return created

    def register_table(self, table: Levels, location: str) -> TableInfo:
        self._names.register(table, location)
        return self._now(table)

    def deregister_table(self, table: Levels) -> None:
        self._names.deregister_table(table)

    def purge_table(self, table: Levels, after_ms: int | None) -> None:
        self._names.purge_table(table, after_ms)

    def drop_table(self, table: Levels) -> None:
        self._names.drop_table(table)

    def commit(self, table: Levels, decide: Decide, history: History = History.HEADS) -> None:
        self._commits.commit(table, decide, history)

    def create_table_versions(self, entries: Sequence[NewVersion]) -> tuple[VersionRecord, ...]:
        keeper = self._names.keeper_of_several() if len(entries) > 1 else None
        if keeper is None:
            return tuple(map(self._create_version, entries))
        changes = [TableChange(self._loading.with_versions(new.table), new) for new in entries]
        together = [each for each in changes if each.table.versions is keeper]
        made = dict(zip((each.new for each in together), keeper.make(together), strict=True))
        return tuple(made.get(each.new) or each.table.versions.make([each])[0] for each in changes)

    def _create_version(self, new: NewVersion) -> VersionRecord:
        table = self._names.resolve_to_make(new.table, new.version) or self._loading.with_versions(new.table)
        (record,) = table.versions.make([TableChange(table, new)])
        return record

    def makes_versions_at_once(self) -> bool:
        return self._names.makes_versions_at_once()

    def was_made(self, new: NewVersion) -> bool:
        table = self._loading.finished(new.table)
        return table.versions.was_made(table, new)

    def list_table_versions(
        self, table: Levels, *, descending: bool = True, after: int | None = None, limit: int | None = None
    ) -> Page[VersionRecord]:
        resolved = self._loading.with_versions(table)
        return resolved.versions.list(resolved, descending, after, limit)

    def describe_table_version(self, table: Levels, version: int | None = None) -> VersionRecord:
        return self._described(self._loading.with_versions(table), version)

    def delete_table_versions(self, table: Levels, ranges: Sequence[VersionRange], ignore_missing: bool) -> int:
        # a version that cannot be finished can be deleted
        resolved = self._names.resolve(table)
        if self._names.may_move_versions(resolved):
            resolved = self._loading.with_versions(table)
        return resolved.versions.delete(resolved, ranges, ignore_missing)

    def load_version(self, table: Levels, version: int) -> TableInfo:
        resolved = self._loading.finished(table)
        info = self._loading.load_version(resolved, _counted(resolved, version) or version)
        if info is None:
            raise resolved.files.versions.no_version(resolved.path, version)
        return info

    def write_rows(self, table: Levels, rows: pa.Table, properties: Mapping[str, str], overwrite: bool) -> None:
        self._rows.write(table, rows, properties, overwrite)

    def count_rows(self, table: Levels, version: int | None, predicate: str | None) -> int:
        resolved = self._loading.with_versions(table)
        number, files = self._described(resolved, version).version, resolved.files
        return counting.count_rows(files.storage, files.tables, files.path, number, predicate)

    def table_stats(self, table: Levels) -> TableStats:
        resolved = self._loading.with_versions(table)
        latest, files = self._described(resolved, None).version, resolved.files
        return counting.table_stats(files.storage, files.tables, files.path, latest)

    def prepare_for_engines(self, table: Levels, empty_list: bytes | None) -> str | None:
        resolved = self._names.resolve_known(table)
        storage = resolved.files.storage
        if empty_list is None and not storage.local:
            return None
        return prepare_for_engines(storage, resolved.path, empty_list, lambda: self._names.lies_there(resolved))

    def allowed_locations(self) -> Sequence[str]:
        return self._names.allowed_locations()

    def storage_options(self, table: Levels) -> Mapping[str, str]:
        return self._names.storage_options(table)

    def _described(self, table: ResolvedTable, version: int | None) -> VersionRecord:
        return table.files.versions.describe(table.path, _counted(table, version))

    def _created(self, table: Levels, new: NewTable, made: CreatedTable) -> TableInfo:
        """The table as the caller just made it, whatever others did to it since."""
        for attempt in range(_LOOKS if made.table is None else 1):
            try:
                info = self._now(table) if new.schema is None else self.load_version(table, 1)
            except NotFound as error:
                raise dropped_meanwhile(table) from error
            if info.properties.get(TABLE_UUID) == made.properties[TABLE_UUID]:
                return info
            # a creator that lost the name to this declared table may not have removed its first version yet
            time.sleep(0.002 * attempt)
        raise dropped_meanwhile(table)

    def _now(self, table: Levels) -> TableInfo:
        """The table that the caller just made or registered, as it is now."""
        try:
            return self._loading.load(table, History.ALL)
        except NotFound as error:
            raise dropped_meanwhile(table) from error


def _counted(table: ResolvedTable, version: int | None) -> int | None:
    """The version that is meant: the latest that counts when none is named. TableVersionNotFound."""
    if table.counted is None:
        return version
    wanted = _latest(table.counted) if version is None else version
    if wanted not in table.counted:
        raise table.files.versions.no_version(table.path, version)
    return wanted


def _latest(versions: Collection[int]) -> int:
    return versions.stop - 1 if isinstance(versions, range) else max(versions, default=0)
