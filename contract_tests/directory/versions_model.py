"""The version operations of seed 001 in memory, on top of the model of names and properties."""

from collections.abc import Sequence
from dataclasses import dataclass

from contract_tests.directory.model import Model
from contract_tests.directory.model_rules import (
    Errors,
    Files,
    Loaded,
    Manifest,
    Staged,
    is_impl,
    refuse,
)
from irc_bridge.catalog.models import Levels, VersionRange
from irc_bridge.errors import (
    ConcurrentModification,
    InvalidInput,
    TableVersionAlreadyExists,
    TableVersionNotFound,
)

Recorded = tuple[int, str]
"""A version and where its manifest lies."""


@dataclass(frozen=True)
class Asked:
    table: Levels
    version: int
    staged: str
    """The name of the staged file."""
    e_tag: str | None


class VersionsModel(Model):
    def __init__(self, *, manifest: bool, listing: bool, managing: bool) -> None:
        super().__init__(manifest=manifest, listing=listing)
        self.managing = managing

    # what is there

    def is_governed(self, table: Levels) -> bool:
        row = self.rows.get(table)
        return row is not None and row.made_by is not None

    def is_governed_folder(self, folder: str) -> bool:
        return any(row.folder == folder and row.made_by is not None for row in self.rows.values())

    def settle(self) -> None:
        """A table goes over when it is next looked at after it began, or ceased, to say managed_by=impl."""
        for row in self.rows.values() if self.managing else ():
            files = self.folders.get(row.folder)
            if files is None:
                continue
            if not is_impl({**row.waiting, **files.metadata}):
                row.made_by = None
            elif row.made_by is None:
                row.made_by = dict.fromkeys(files.versions, "")

    def listed(
        self, table: Levels, descending: bool, after: int | None, limit: int | None
    ) -> tuple[list[Recorded], bool]:
        numbers = sorted(self.files_of(table).versions, reverse=descending)
        if after is not None:
            numbers = [each for each in numbers if (each < after if descending else each > after)]
        chosen = numbers[:limit]
        return [self.recorded(table, each) for each in chosen], len(chosen) < len(numbers)

    def described(self, table: Levels, version: int | None) -> Recorded:
        files = self.files_of(table)
        wanted = files.latest if version is None else version
        refuse([] if wanted in files.versions else [TableVersionNotFound])
        return self.recorded(table, wanted)

    def load_version(self, table: Levels, version: int) -> Loaded:
        files = self.files_of(table)
        refuse([] if version in files.versions else [TableVersionNotFound])
        latest = self.load(table)
        properties = {**self._waiting(table, files), **files.versions[version].metadata}
        return Loaded(latest.folder, properties, [version])

    def recorded(self, table: Levels, version: int) -> Recorded:
        return version, f"{self.folder_of(table)}/_versions/{2**64 - 1 - version:020}.manifest"

    # versions made and deleted

    def stage(self, folder: str, name: str, version: int, e_tag: str) -> None:
        files = self.folders[folder]
        assert version == files.latest + 1
        files.staged[name] = Staged(version, Manifest(dict(files.metadata), e_tag))

    def put_back(self, folder: str, name: str) -> None:
        """What a writer leaves that made a version and died before it removed the staged file."""
        staged = self.folders[folder].staged[name]
        staged.there = True
        staged.manifest.e_tag = None

    def create_versions(self, entries: Sequence[Asked]) -> list[Recorded]:
        """All or none of those that rows make; the others one after the other."""
        by_row = [each for each in entries if self.is_governed(each.table)]
        errors = [error for each in by_row for error in self._not_makeable(each)]
        if len({each.table for each in by_row}) < len(by_row):
            errors.append(InvalidInput)
        if self.managing:
            errors += [error for each in entries for error in self._not_found(each.table)]
        refuse(errors)
        for each in by_row:
            self._make(each)
        for each in entries:
            if each not in by_row:
                refuse(self._not_makeable(each))
                self._make(each)
        return [self.recorded(each.table, each.version) for each in entries]

    def delete_versions(self, table: Levels, ranges: Sequence[VersionRange], ignore_missing: bool) -> int:
        no_range = any(0 <= each.end <= each.start for each in ranges)
        refuse(self._not_found(table) + ([InvalidInput] if no_range else []))
        files = self.files_of(table)
        there = files.versions.keys()
        asked: set[int] = set()
        for each in ranges:
            start = each.start or min(there, default=each.end)
            asked.update(range(start, each.end) if each.end >= 0 else (one for one in there if one >= start))
        refuse([TableVersionNotFound] if asked - there and not ignore_missing else [])
        gone = asked & there
        row = self.rows.get(table)
        for version in gone:
            del files.versions[version]
            if row is not None and row.made_by is not None:
                del row.made_by[version]
        return len(gone)

    # rules

    def _not_makeable(self, asked: Asked) -> Errors:
        if self._not_found(asked.table):
            return self._not_found(asked.table)
        files = self.files_of(asked.table)
        staged = files.staged.get(asked.staged)
        if self._is_repeat(asked, files, staged):
            return []
        if not self.is_governed(asked.table) and self._is_retired(asked, files):
            return [TableVersionNotFound]
        errors: Errors = []
        if staged is None or not staged.there or staged.version != asked.version:
            errors.append(InvalidInput)
        if asked.version > files.latest + 1:
            errors.append(ConcurrentModification)
        if asked.version <= files.latest:
            errors.append(TableVersionAlreadyExists)
        return errors

    def _is_repeat(self, asked: Asked, files: Files, staged: Staged | None) -> bool:
        made = files.versions.get(asked.version)
        if made is None or staged is None or staged.version != asked.version:
            return False
        row = self.rows.get(asked.table)
        if row is not None and row.made_by is not None:
            name = row.made_by[asked.version]
            return name == asked.staged or (not name and staged.there and staged.manifest is made)
        same = staged.manifest is made and (staged.there or asked.e_tag is not None)
        return same or self._is_retired(asked, files)

    def _is_retired(self, asked: Asked, files: Files) -> bool:
        """Known by its name after the staged file is gone."""
        return (asked.version, asked.staged) in files.retired and not files.staged[asked.staged].there

    def _make(self, asked: Asked) -> None:
        files = self.files_of(asked.table)
        staged = files.staged[asked.staged]
        if asked.version not in files.versions:
            files.versions[asked.version] = staged.manifest
            self.made_by_row(asked.table, asked.version, asked.staged)
            staged.there = False
            files.retired.add((asked.version, asked.staged))
        elif not self.is_governed(asked.table):
            staged.there = False
            files.retired.add((asked.version, asked.staged))
