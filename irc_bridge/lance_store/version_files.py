"""The versions of a table as the files that they are. Put-if-absent of the final name decides who made one."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress

from irc_bridge.catalog.models import NewVersion, Page, VersionRange, VersionRecord
from irc_bridge.errors import (
    BridgeError,
    CommitStateUnknown,
    ConcurrentModification,
    Internal,
    InvalidInput,
    NotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableVersionAlreadyExists,
    TableVersionNotFound,
)
from irc_bridge.lance_store.latest import forget_hint, hint
from irc_bridge.lance_store.manifest_paths import require_inside
from irc_bridge.lance_store.staged import (
    Staged,
    read_staged,
    remove_abandoned,
    require_of_table,
    retire,
    staged_path,
    was_retired,
)
from irc_bridge.lance_store.tables import LanceTables
from irc_bridge.storage.base import FileAttributes, FileEntry, Storage
from irc_bridge.storage.layout import VERSIONS, name_of, names_of, version_of

log = logging.getLogger(__name__)

StillThere = Callable[[], bool]
"""Whether the name still leads to the folder. It may raise NotFound."""


class VersionFiles:
    def __init__(self, storage: Storage, tables: LanceTables) -> None:
        self._storage = storage
        self._tables = tables

    def finalise(self, path: str, new: NewVersion, still_there: StillThere) -> VersionRecord:
        """Makes a staged manifest the next version. Who dies before the final name is there leaves a staged file,
        who dies after that leaves the version with the staged file beside it: a repeat succeeds."""
        staged_at = staged_path(self._storage, path, new.staged_path)
        staged = self._read_staged(path, staged_at, new.version)
        if staged is None:
            return self._answered_before(path, new, staged_at)
        newest = self._tables.newest(path)
        latest = _number(newest)
        if new.version > latest + 1:
            raise ConcurrentModification(
                f"Version {new.version} is not the next one of {self._storage.location(path)}: "
                f"its latest version is {latest}"
            )
        if new.version <= latest:
            final = self._made_before(path, new.version, staged)
        else:
            require_of_table(self._storage, path, staged, newest)
            final = self._make(path, new, staged, newest, still_there)
        with self._unknown_if_silent(path, new.version):
            made = self._attributes(path, final)
        with self._made_anyway(path, new.version):
            retire(self._storage, path, new.version, staged.path)
            remove_abandoned(self._storage, f"{path}/{VERSIONS}", max(latest, new.version), made)
        return self._record(path, made, staged.head.timestamp_ms)

    @contextmanager
    def _made_anyway(self, path: str, version: int) -> Iterator[None]:
        """Turns failures of the block into a log line: the version is made, and a repeat or a later version tidies
        up."""
        try:
            yield
        except (Internal, ServiceUnavailable, PermissionDenied) as error:
            location = self._storage.location(path)
            log.warning("version %d of %s was made, and not all tidied up: %s", version, location, error.message)

    def was_made(self, path: str, new: NewVersion) -> bool:
        """CommitStateUnknown when the version has come and gone."""
        at, staged = self.staged(path, new)
        if was_retired(self._storage, path, new.version, at):
            return True
        if staged is None:
            return False
        entry = self._tables.manifest(path, new.version)
        if entry is not None:
            return self._storage.read(f"{path}/{VERSIONS}/{entry.name}") == staged.content
        if new.version > _number(self._tables.newest(path)):
            return False
        raise CommitStateUnknown(
            f"Version {new.version} of the table at {self._storage.location(path)} is no longer there: nobody can "
            f"tell whether {new.staged_path} became it. Compare the rows of a later version"
        )

    def list(self, path: str, descending: bool, after: int | None, limit: int | None) -> Page[VersionRecord]:
        folder = f"{path}/{VERSIONS}"
        if limit == 1 and descending and after is None:
            newest = self._tables.newest(path)
            names = [newest.name] if newest else []
            more = self._storage.holds(folder, lambda name: name not in names and version_of(name) is not None)
        else:
            by_version = self._names(path)
            wanted = [
                each for each in by_version if after is None or (each < after if descending else each > after)
            ]
            names = [by_version[each] for each in sorted(wanted, reverse=descending)]
            more = limit is not None and len(names) > limit
        found = self._storage.attributes(folder, names[:limit])
        return Page(tuple(self._record(path, each, each.modified_ms) for each in found), more)

    def describe(self, path: str, version: int | None) -> VersionRecord:
        """TableVersionNotFound, BrokenTable."""
        wanted = _number(self._tables.newest(path)) if version is None else version
        content = self._tables.read_version(path, wanted)
        if content is None:
            raise self.no_version(path, version)
        found = content.versions[0]
        made = self._attributes(path, found.manifest.rpartition("/")[2])
        return self._record(path, made, found.timestamp_ms, found.summary)

    def delete(
        self, path: str, ranges: Sequence[VersionRange], ignore_missing: bool, emptying: Callable[[], object]
    ) -> int:
        """The oldest go first: whoever dies on the way leaves the latest. `emptying` is called before all go."""
        present = sorted(self._names(path))
        wanted, missing = versions_in(ranges, present)
        if missing is not None and not ignore_missing:
            raise self.no_version(path, missing)
        if wanted and len(wanted) == len(present):
            emptying()
        self.remove(path, wanted, present)
        return len(wanted)

    def remove(self, path: str, wanted: Set[int], present: Iterable[int]) -> None:
        folder = f"{path}/{VERSIONS}"
        left = set(present) - wanted
        if left and wanted and max(left) > min(wanted):
            hint(self._storage, folder, max(left))
        for version in sorted(wanted):
            for name in names_of(version).values():
                self._storage.delete(f"{folder}/{name}")
        if wanted and not left:
            forget_hint(self._storage, folder)
        self._tables.forget(path)

    def staged_at(self, path: str, new: NewVersion) -> str:
        return staged_path(self._storage, path, new.staged_path)

    def staged(self, path: str, new: NewVersion) -> tuple[str, Staged | None]:
        """Where the staged manifest lies, and what it says if it does."""
        at = self.staged_at(path, new)
        return at, self._read_staged(path, at, new.version)

    def _read_staged(self, path: str, at: str, version: int) -> Staged | None:
        staged = read_staged(self._storage, at, version)
        if staged is not None:
            location = self._storage.location(path)
            require_inside(staged.content, location, self._tables.allowed, f"The staged manifest {staged.path}")
        return staged

    def final_name(self, path: str, new: NewVersion, staged: Staged | None) -> str:
        newest = self._tables.newest(path)
        if staged is not None:
            require_of_table(self._storage, path, staged, newest)
        return _final_name(new, newest)

    def manifest_of(self, path: str, version: int) -> str | None:
        entry = self._tables.manifest(path, version)
        return entry.name if entry else None

    def no_version(self, path: str, version: int | None) -> TableVersionNotFound:
        if version is None:
            return TableVersionNotFound(f"The table at {self._storage.location(path)} has no version yet")
        return TableVersionNotFound(f"The table at {self._storage.location(path)} has no version {version}")

    def _make(
        self, path: str, new: NewVersion, staged: Staged, newest: FileEntry | None, still_there: StillThere
    ) -> str:
        """The name of the manifest that is now the version."""
        names = names_of(new.version)
        final = _final_name(new, newest)
        other = next(name for name in names.values() if name != final)
        if self._is_there(path, other) or not self.promote(path, staged.path, staged.content, final):
            if still_there() and (self._is_there(path, final) or self._is_there(path, other)):
                raise self._exists(path, new.version)
            raise self._replaced(path, new.version)
        with self._unknown_if_silent(path, new.version):
            # the first version may be made under both names at once; each maker looks for the other's
            both = newest is None and self._is_there(path, other)
            try:
                if not both and still_there() and self._is_base(path, newest, staged):
                    return final
            except NotFound:
                self._take_back(path, final, staged)
                raise
            self._take_back(path, final, staged)
        raise self._replaced(path, new.version)

    def promote(self, path: str, staged: str, content: bytes, final: str) -> bool:
        """Gives a staged manifest its final name, False when a file of other content has that."""
        target = f"{path}/{VERSIONS}/{final}"
        try:
            return self._storage.promote(staged, target)
        except (Internal, ServiceUnavailable) as error:
            # another process made the same version of the same file meanwhile, or the table is gone
            if self._is_gone(staged):
                return self._storage.read(target) == content
            if self._storage.local:
                raise
            return self._read_back(target, content, error)

    @contextmanager
    def _unknown_if_silent(self, path: str, version: int) -> Iterator[None]:
        try:
            yield
        except ServiceUnavailable as error:
            raise CommitStateUnknown(
                f"Version {version} of the table at {self._storage.location(path)} was made, and the storage did "
                f"not answer afterwards: {error.message}. Look for it before trying again"
            ) from error

    def _is_gone(self, path: str) -> bool:
        with suppress(BridgeError):
            return self._storage.identity(path) is None
        return False

    def _read_back(self, target: str, content: bytes, error: BridgeError) -> bool:
        """Of a request without an answer."""
        found = None
        with suppress(BridgeError):
            found = self._storage.read(target)
        if found is None:
            raise CommitStateUnknown(
                f"Nobody can tell whether {self._storage.location(target)} will be there, because the storage did "
                f"not answer: {error.message}. Look for it before trying again"
            ) from error
        return found == content

    def remove_abandoned(self, path: str, latest: int, final: str) -> None:
        folder = f"{path}/{VERSIONS}"
        for made in self._storage.attributes(folder, [final]):
            remove_abandoned(self._storage, folder, latest, made)

    def _is_base(self, path: str, newest: FileEntry | None, staged: Staged) -> bool:
        """Whether the version before is still that of this table, or went because it was old. A drop takes the
        staged file too, and the rows."""
        data_file = staged.head.data_file
        if data_file is not None and self._storage.identity(f"{path}/{data_file}") is None:
            return False
        if newest is None:
            return True
        identity = self._storage.identity(f"{path}/{VERSIONS}/{newest.name}")
        return identity == newest.identity or (
            identity is None and self._storage.identity(staged.path) is not None
        )

    def _take_back(self, path: str, final: str, staged: Staged) -> None:
        """Unless others have built upon it."""
        latest = _number(self._tables.newest(path))
        target = f"{path}/{VERSIONS}/{final}"
        if latest == staged.head.version and self._storage.read(target) == staged.content:
            self._storage.delete(target)
        self._tables.forget(path)

    def _made_before(self, path: str, version: int, staged: Staged) -> str:
        entry = self._tables.manifest(path, version)
        if entry is None or self._storage.read(f"{path}/{VERSIONS}/{entry.name}") != staged.content:
            raise self._exists(path, version)
        return entry.name

    def _answered_before(self, path: str, new: NewVersion, staged_at: str) -> VersionRecord:
        """Of a call whose answer was lost the version is left, and the note of what became it. A version made past
        the bridge has none: the e_tag tells."""
        if not was_retired(self._storage, path, new.version, staged_at):
            entry = self._tables.manifest(path, new.version)
            if entry is None or new.e_tag is None or self._attributes(path, entry.name).e_tag != new.e_tag:
                raise InvalidInput(f"There is no staged manifest at {self._storage.location(staged_at)}")
        return self.describe(path, new.version)

    def _exists(self, path: str, version: int) -> TableVersionAlreadyExists:
        return TableVersionAlreadyExists(
            f"Version {version} of the table at {self._storage.location(path)} already exists"
        )

    def _replaced(self, path: str, version: int) -> ConcurrentModification:
        return ConcurrentModification(
            f"The table at {self._storage.location(path)} was changed by others while version {version} was made"
        )

    def _names(self, path: str) -> dict[int, str]:
        names = self._storage.names(f"{path}/{VERSIONS}")
        return {version: name for name in names if (version := version_of(name)) is not None}

    def _is_there(self, path: str, name: str) -> bool:
        return self._storage.identity(f"{path}/{VERSIONS}/{name}") is not None

    def _attributes(self, path: str, name: str) -> FileAttributes:
        found = self._storage.attributes(f"{path}/{VERSIONS}", [name])
        if not found:
            raise self.no_version(path, version_of(name))
        return found[0]

    def _record(
        self, path: str, made: FileAttributes, timestamp_ms: int, metadata: Mapping[str, str] | None = None
    ) -> VersionRecord:
        version = version_of(made.name)
        assert version is not None
        location = self._storage.location(f"{path}/{VERSIONS}/{made.name}")
        return VersionRecord(version, location, made.size, made.e_tag, timestamp_ms, metadata or {})


def _final_name(new: NewVersion, newest: FileEntry | None) -> str:
    if newest is not None:
        return name_of(new.version, newest.name)
    names = names_of(new.version)
    like = next((each for each in names.values() if f"/{each}-" in f"/{new.staged_path}"), names["V2"])
    return names[new.naming_scheme] if new.naming_scheme else like


def _number(newest: FileEntry | None) -> int:
    return (version_of(newest.name) or 0) if newest else 0


_TO_LATEST = -1


def versions_in(ranges: Sequence[VersionRange], present: Sequence[int]) -> tuple[set[int], int | None]:
    """The present versions that lie in a range, and the first version that a range names and that is not present.
    `present` is in rising order."""
    found: set[int] = set()
    missing: list[int] = []
    for each in ranges:
        if each.start < 0 or (each.end <= each.start and each.end != _TO_LATEST):
            raise InvalidInput(
                f"Not a range of versions: [{each.start}, {each.end}). It goes from its start up to but not "
                f"including its end; [0, {_TO_LATEST}) are all"
            )
        inside = [version for version in present if version >= each.start]
        if each.end != _TO_LATEST:
            inside = [version for version in inside if version < each.end]
            missing.extend(_first_missing(each, inside))
        found.update(inside)
    return found, min(missing, default=None)


def _first_missing(asked: VersionRange, inside: Sequence[int]) -> list[int]:
    if asked.start == 0 and not inside:
        return []
    expected = asked.start or inside[0]
    for version in inside:
        if version != expected:
            break
        expected += 1
    return [expected] if expected < asked.end else []
