"""The versions of tables. Of one that the catalog manages a version is a commit; of others the files decide."""

from collections.abc import Sequence
from contextlib import suppress

from irc_bridge.backends.upstream.promote import finish
from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.backends.upstream.version_commit import VersionCommits
from irc_bridge.catalog.models import Levels, NewVersion, Page, VersionRange, VersionRecord
from irc_bridge.errors import (
    CommitFailed,
    ConcurrentModification,
    InvalidInput,
    TableNotFound,
    Unprocessable,
    Unsupported,
)
from irc_bridge.irc_client.lance_tables import MAIN, LanceTable, change, next_version
from irc_bridge.irc_client.server import TRANSACTION
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.names import dotted

_ATTEMPTS = 3


class Versions:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.commits = VersionCommits(tables)

    def current(self, table: Levels) -> tuple[LanceTable, TableFiles, int | None]:
        """The table with its latest version, whose manifest is final from here on."""
        found = self._tables.load(table)
        files = self._tables.files(found)
        if not found.by_catalog:
            return found, files, files.newest()
        finish(found, files)
        return found, files, found.current

    def list(self, table: Levels, descending: bool, after: int | None, limit: int | None) -> Page[VersionRecord]:
        return self.list_of(*self.current(table), descending, after, limit)

    def list_of(
        self,
        found: LanceTable,
        files: TableFiles,
        latest: int | None,
        descending: bool,
        after: int | None,
        limit: int | None,
    ) -> Page[VersionRecord]:
        if latest is None:
            return Page(())
        if descending and limit == 1 and after is None:
            return Page((files.record(latest),), more=latest > 1)
        if found.by_catalog and descending:
            after = latest + 1 if after is None else min(after, latest + 1)
        page = files.versions.list(files.path, descending, after, limit)
        return Page(tuple(each for each in page.items if each.version <= latest), page.more)

    def describe(self, table: Levels, version: int | None) -> VersionRecord:
        _, files, latest = self.current(table)
        wanted = latest if version is None else version
        if wanted is None or latest is None or wanted > latest:
            raise files.versions.no_version(files.path, version)
        return files.record(wanted)

    def has_any(self, table: Levels) -> bool:
        """False also for what is no Lance table."""
        try:
            found = self._tables.load(table)
        except TableNotFound:
            return False
        if found.by_catalog or found.knows_lance:
            return found.current is not None
        return self._tables.files(found).newest() is not None

    def create(self, new: NewVersion) -> VersionRecord:
        """ConcurrentModification when another came first."""
        found = self._tables.last_loaded(new.table, new.version - 1 or None)
        files = self._tables.files(found)
        if not found.by_catalog:
            return self.create_by_file(new, found, files)
        attempt = self.commits.prepared(new, found)
        if attempt is not None:
            self.commits.send(attempt)
        return files.record(new.version)

    def create_by_file(self, new: NewVersion, found: LanceTable, files: TableFiles) -> VersionRecord:
        def is_still_there() -> bool:
            now = self._tables.load(new.table)
            return self.accepts(new.table, new.version, found, files, now)

        return files.versions.finalise(files.path, new, is_still_there)

    def create_all(self, news: Sequence[NewVersion]) -> tuple[VersionRecord, ...]:
        """All or none."""
        if len(news) == 1:
            return (self.create(news[0]),)
        if len({new.table for new in news}) < len(news):
            raise InvalidInput("One batch makes at most one version of a table")
        if not self._tables.server.offers(TRANSACTION):
            raise Unsupported("This server commits to one table at a time: it has no transactions/commit")
        prepared = [self.commits.prepared(new, self._managed(new.table)) for new in news]
        attempts = [each for each in prepared if each is not None]
        if attempts and len(attempts) < len(news):
            raise ConcurrentModification("Some of the versions are made already, and others are not")
        if attempts:
            self.commits.send_all(attempts)
        return tuple(self.current(new.table)[1].record(new.version) for new in news)

    def delete(self, table: Levels, ranges: Sequence[VersionRange], ignore_missing: bool = True) -> int:
        """The catalog forgets them first; who dies before the files are gone leaves those to the same call."""
        return self.delete_of(table, *self.current(table), ranges, ignore_missing)

    def delete_of(
        self,
        table: Levels,
        found: LanceTable,
        files: TableFiles,
        latest: int | None,
        ranges: Sequence[VersionRange],
        ignore_missing: bool,
    ) -> int:
        from irc_bridge.lance_store.version_files import versions_in

        if not found.by_catalog and not found.knows_lance:
            return files.versions.delete(files.path, ranges, ignore_missing, lambda: None)
        listed = files.versions.list(files.path, False, None, None).items
        present = [each.version for each in listed if each.version <= (latest or 0)]
        wanted, missing = versions_in(ranges, present)
        if missing is not None and not ignore_missing:
            raise files.versions.no_version(files.path, missing)
        for name, version in {**found.tags, MAIN: latest}.items():
            if version in wanted:
                raise InvalidInput(f"Version {version} of {dotted(table)} stays: {name} is on it")
        known = wanted if found.knows_lance else wanted & self._tables.load(table, "all").manifests.keys()
        if known:
            update = {"action": "remove-snapshots", "snapshot-ids": sorted(known)}
            # a server that keeps its snapshots keeps no files
            with suppress(*(() if found.knows_lance else (InvalidInput, Unsupported, Unprocessable))):
                self._tables.commit(table, found, change(found, [], update))
        if not found.knows_lance:
            files.versions.remove(files.path, wanted, present)
        return len(wanted)

    def accepts(self, table: Levels, version: int, before: LanceTable, files: TableFiles, now: LanceTable) -> bool:
        """Whether a version counts that its file just made: the name still leads to the table as it was `before`.
        A catalog that took over meanwhile gets the version by a commit, unless another has the number."""
        for _ in range(_ATTEMPTS):
            if (now.uuid, now.location) != (before.uuid, before.location):
                return False
            if not now.by_catalog:
                return True
            record = files.record(version)
            if (now.current or 0) >= version:
                manifest = now.manifests.get(version, record.manifest_path)
                return manifest.rpartition("/")[2] == record.manifest_path.rpartition("/")[2]
            with suppress(CommitFailed):
                body = next_version(now, version, record.manifest_path, record.timestamp_ms)
                self._tables.commit(table, now, body)
            now = self._tables.load(table)
        return False

    def _managed(self, table: Levels) -> LanceTable:
        found = self._tables.load(table)
        if not found.by_catalog:
            raise InvalidInput(
                f"{dotted(table)} says managed_by=storage: a batch cannot commit to it, as its files decide about "
                f"its versions. Set its property managed_by to impl"
            )
        return found
