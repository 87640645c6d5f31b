"""Commits that make a staged manifest a version: one commit upstream, sent once.

When it is refused or its answer is lost, the table and the staged manifest's name tell what became of it.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irc_bridge.backends.upstream.promote import finish
from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.catalog.models import COMMITS, Levels, NewVersion
from irc_bridge.errors import (
    BridgeError,
    BrokenTable,
    CommitFailed,
    CommitStateUnknown,
    ConcurrentModification,
    Conflict,
    Internal,
    InvalidInput,
    NotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableVersionAlreadyExists,
)
from irc_bridge.irc_client.lance_tables import Json, LanceTable, next_version
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.names import dotted

log = logging.getLogger(__name__)

Refused = CommitFailed | CommitStateUnknown


@dataclass(frozen=True, slots=True)
class Attempt:
    """A commit that is about to be sent."""

    table: Levels
    before: LanceTable
    files: TableFiles
    body: Json
    new: NewVersion | None = None
    """None where no version is made: then the identity tells whether it is in."""
    identity: str | None = None

    def __str__(self) -> str:
        name = dotted(self.table)
        return name if self.new is None else f"Version {self.new.version} of {name}"


class VersionCommits:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def prepared(self, new: NewVersion, found: LanceTable, also: Iterable[Json] = ()) -> Attempt | None:
        """`also` are updates that come with the version. None when that very version is made already."""
        files = self._tables.files(found)
        at, staged = files.versions.staged(files.path, new)
        taken = not found.knows_lance and files.holds(new.version)
        if staged is None or taken:
            found = self._tables.load(new.table)
        if found.current != (new.version - 1 or None):
            finish(found, files)
            if _was_made(files, new, found.current):
                return None
            raise _not_the_next(new, found.current)
        if staged is None:
            raise InvalidInput(f"There is no staged manifest at {files.storage.location(at)}")
        if taken:
            raise BrokenTable(
                f"{dotted(new.table)} at {found.location} has files of a version {new.version} that its catalog "
                f"does not know: somebody wrote past the catalog, or the place was used before"
            )
        if not found.knows_lance:
            files.require_of_table(staged, found.current)
        body = next_version(found, new.version, files.storage.location(at), staged.head.timestamp_ms, also)
        return Attempt(new.table, found, files, body, new)

    def send(self, attempt: Attempt) -> None:
        """ConcurrentModification when another came first."""
        try:
            after = self._tables.commit(attempt.table, attempt.before, attempt.body)
        except (CommitFailed, CommitStateUnknown) as error:
            self._settle([attempt], error)
            return
        if attempt.new is not None:
            _finish(attempt, after, attempt.new)

    def send_all(self, attempts: Sequence[Attempt], others: Sequence[Json] = ()) -> None:
        """All or none, with the `others` as they came."""
        try:
            changes = [(each.table, each.body) for each in attempts]
            self._tables.server.commit_transaction(changes, others)
        except (CommitFailed, CommitStateUnknown) as error:
            self._settle(attempts, error)
            return
        for each in attempts:
            if each.new is not None:
                self._finish_one_of_several(each, each.new)

    def _finish_one_of_several(self, attempt: Attempt, new: NewVersion) -> None:
        """Gives the manifest its final name. If that fails now, the next look at the table does it."""
        try:
            _finish(attempt, self._tables.load(attempt.table), new)
        except Conflict as error:
            raise CommitStateUnknown(f"A commit to several tables was made, and {error.message}") from error
        except (ServiceUnavailable, Internal) as error:
            log.warning("%s was made, and is not finished yet: %s", attempt, error.message)

    def _settle(self, attempts: Sequence[Attempt], error: Refused) -> None:
        """Looks once at what became of commits that the server refused or did not answer."""
        try:
            after = [self._tables.load(each.table) for each in attempts]
            there = [_is_in(each, found) for each, found in zip(attempts, after, strict=True)]
        except NotFound:
            # dropped meanwhile: what became of the commit tells nobody anything any more
            raise
        except BridgeError:
            raise error from None
        if attempts and all(there):
            return
        for each, found, is_in in zip(attempts, after, there, strict=True):
            if not is_in and _is_overtaken(each, found):
                raise _made_by_another(each) from error
        raise error


def _is_in(attempt: Attempt, found: LanceTable) -> bool:
    if found.uuid != attempt.before.uuid:
        return False
    if attempt.new is None:
        return attempt.identity in found.properties.get(COMMITS, "").split()
    finish(found, attempt.files)
    return _was_made(attempt.files, attempt.new, found.current)


def _is_overtaken(attempt: Attempt, found: LanceTable) -> bool:
    if found.uuid != attempt.before.uuid or found.location != attempt.before.location:
        return True
    if attempt.new is not None:
        return (found.current or 0) >= attempt.new.version
    return found.current != attempt.before.current


def _was_made(files: TableFiles, new: NewVersion, latest: int | None) -> bool:
    return (latest or 0) >= new.version and files.versions.was_made(files.path, new)


def _finish(attempt: Attempt, after: LanceTable, new: NewVersion) -> None:
    """Some servers take two commits that both assert that there is no version yet, and storage may decide since
    somebody switched the table: whose manifest has the final name has made the version."""
    files = attempt.files
    try:
        finish(after, files)
        is_ours = after.knows_lance or files.versions.was_made(files.path, new)
    except BrokenTable:
        if not files.holds(new.version):
            raise
        is_ours = False
    except (ServiceUnavailable, PermissionDenied) as error:
        why = f"{attempt} was made, and its storage does not answer: {error.message}"
        raise CommitStateUnknown(why) from error
    if not is_ours:
        raise _made_by_another(attempt)


def _made_by_another(attempt: Attempt) -> Conflict:
    if attempt.new is None:
        return ConcurrentModification(f"{attempt} was changed by another writer")
    return TableVersionAlreadyExists(f"{attempt} was made by another writer")


def _not_the_next(new: NewVersion, latest: int | None) -> Conflict:
    if new.version <= (latest or 0):
        return TableVersionAlreadyExists(f"Version {new.version} of {dotted(new.table)} already exists")
    return ConcurrentModification(
        f"Version {new.version} is not the next one of {dotted(new.table)}: its latest is {latest or 'none'}"
    )
