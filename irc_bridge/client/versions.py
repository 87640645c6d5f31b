"""The versions of tables. Of one that the catalog manages a version is a commit; of others the files decide."""

from collections.abc import Sequence
from dataclasses import dataclass

from irc_bridge.catalog.models import Levels, NewVersion, Page, VersionRange, VersionRecord
from irc_bridge.client.files import TableFiles
from irc_bridge.client.finishing import finish
from irc_bridge.client.tables import Tables
from irc_bridge.errors import (
    BridgeError,
    BrokenTable,
    CommitFailed,
    CommitStateUnknown,
    ConcurrentModification,
    InvalidInput,
    TableNotFound,
    Unsupported,
)
from irc_bridge.irc_client.lance_tables import MAIN, Json, LanceTable, change, next_version
from irc_bridge.irc_client.server import TRANSACTION
from irc_bridge.names import dotted


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A commit that is about to be sent."""

    new: NewVersion
    table: LanceTable
    files: TableFiles
    body: Json


class Versions:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def current(self, table: Levels) -> tuple[LanceTable, TableFiles, int | None]:
        """The table with its latest version, whose manifest is final from here on."""
        found = self._tables.load(table)
        files = self._tables.files(found)
        if not found.by_catalog:
            return found, files, files.newest()
        finish(found, files)
        return found, files, found.current

    def list(self, table: Levels, descending: bool, after: int | None, limit: int | None) -> Page[VersionRecord]:
        found, files, latest = self.current(table)
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
        """ConcurrentModification when another came first. Sent once: when the answer is lost, what the server has
        afterwards tells what became of it."""
        found = self._tables.seen(new.table, new.version - 1 or None)
        files = self._tables.files(found)
        if not found.by_catalog:
            return files.versions.finalise(files.path, new, lambda: True)
        attempt = self._prepared(new, found)
        if attempt is None:
            return files.record(new.version)
        try:
            after = self._tables.commit(new.table, attempt.table, attempt.body)
        except (CommitFailed, CommitStateUnknown) as error:
            return self._settled([attempt], error)[0]
        finish(after, files)
        return files.record(new.version)

    def create_all(self, news: Sequence[NewVersion]) -> tuple[VersionRecord, ...]:
        """All or none."""
        if len(news) == 1:
            return (self.create(news[0]),)
        if len({new.table for new in news}) < len(news):
            raise InvalidInput("One batch makes at most one version of a table")
        if not self._tables.server.offers(TRANSACTION):
            raise Unsupported("This server commits to one table at a time: it has no transactions/commit")
        attempts = [each for new in news if (each := self._prepared(new, self._managed(new.table))) is not None]
        if attempts and len(attempts) < len(news):
            raise ConcurrentModification("Some of the versions are made already, and others are not")
        if attempts:
            try:
                self._tables.server.commit_transaction([(each.new.table, dict(each.body)) for each in attempts])
            except (CommitFailed, CommitStateUnknown) as error:
                return self._settled(attempts, error)
        return tuple(self.current(new.table)[1].record(new.version) for new in news)

    def delete(self, table: Levels, ranges: Sequence[VersionRange]) -> int:
        """The catalog forgets them first; who dies before the files are gone leaves those to the same call."""
        from irc_bridge.lance_store.ranges import versions_in

        found, files, latest = self.current(table)
        if not found.by_catalog and not found.knows_lance:
            return files.versions.delete(files.path, ranges, True, lambda: None)
        listed = files.versions.list(files.path, False, None, None).items
        present = [each.version for each in listed if each.version <= (latest or 0)]
        wanted, _ = versions_in(ranges, present)
        for name, version in {**found.tags, MAIN: latest}.items():
            if version in wanted:
                raise InvalidInput(f"Version {version} of {dotted(table)} stays: {name} is on it")
        known = wanted if found.knows_lance else wanted & self._tables.load(table, "all").manifests.keys()
        if known:
            update = {"action": "remove-snapshots", "snapshot-ids": sorted(known)}
            self._tables.commit(table, found, change(found, [], update))
        if not found.knows_lance:
            files.versions.remove(files.path, wanted, present)
        return len(wanted)

    def _managed(self, table: Levels) -> LanceTable:
        found = self._tables.load(table)
        if not found.by_catalog:
            raise InvalidInput(
                f"{dotted(table)} says managed_by=storage: a batch cannot commit to it, as its files decide about "
                f"its versions. Set its property managed_by to impl"
            )
        return found

    def _prepared(self, new: NewVersion, found: LanceTable) -> _Attempt | None:
        """None when the very version is made already."""
        files = self._tables.files(found)
        at, staged = files.versions.staged(files.path, new)
        taken = not found.knows_lance and files.holds(new.version)
        if staged is None or taken:
            found = self._tables.load(new.table)
        if found.current != (new.version - 1 or None):
            finish(found, files)
            if self._is_in(new, found.current, files):
                return None
            raise ConcurrentModification(
                f"Version {new.version} is not the next one of {dotted(new.table)}: its latest is {found.current}"
            )
        if staged is None:
            raise InvalidInput(f"There is no staged manifest at {files.storage.location(at)}")
        if taken:
            raise BrokenTable(
                f"{dotted(new.table)} at {found.location} has files of a version {new.version} that its catalog "
                f"does not know: somebody wrote past the catalog, or the place was used before"
            )
        body = next_version(found, new.version, files.storage.location(at), staged.head.timestamp_ms)
        return _Attempt(new, found, files, body)

    def _settled(
        self, attempts: Sequence[_Attempt], error: CommitFailed | CommitStateUnknown
    ) -> tuple[VersionRecord, ...]:
        """Looks once at what became of commits that the server refused or did not answer."""
        try:
            latest = [self.current(each.new.table)[2] or 0 for each in attempts]
            there = [
                self._is_in(each.new, version, each.files) for each, version in zip(attempts, latest, strict=True)
            ]
        except BridgeError:
            raise error from None
        if all(there):
            return tuple(each.files.record(each.new.version) for each in attempts)
        for each, version in zip(attempts, latest, strict=True):
            if version >= each.new.version:
                raise ConcurrentModification(
                    f"Version {each.new.version} of {dotted(each.new.table)} was made by another writer"
                ) from error
        raise error

    def _is_in(self, new: NewVersion, latest: int | None, files: TableFiles) -> bool:
        return (latest or 0) >= new.version and files.versions.was_made(files.path, new)
