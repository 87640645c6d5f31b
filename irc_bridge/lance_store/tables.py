"""Lance tables in the folders of one storage. No dataset stays open."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import lance
import pyarrow as pa

from irc_bridge.catalog.models import History, Schema, TableVersion
from irc_bridge.errors import BrokenTable, InvalidInput
from irc_bridge.lance_store.failures import Lost, Missing, broken, lance_errors
from irc_bridge.lance_store.history import HistoryCache, Newest, SchemaStarts
from irc_bridge.lance_store.latest import followed
from irc_bridge.lance_store.manifest_paths import require_inside
from irc_bridge.lance_store.manifests import head_of, with_field_ids, with_metadata
from irc_bridge.lance_store.metadata_change import Reshape, next_manifest
from irc_bridge.lance_store.mirror_layout import ManifestLists
from irc_bridge.lance_store.schemas import read_schema, require_readable
from irc_bridge.lance_store.table_folders import FirstFile
from irc_bridge.lance_store.tags import read_tags, tag_errors
from irc_bridge.storage.base import FileEntry, Storage, first_line
from irc_bridge.storage.layout import FIRST, VERSIONS, name_of, names_of, newest_of, staged_name, version_of
from irc_bridge.storage.locations import AllowedLocations

StorageVersion = Literal["stable", "2.2"]

_ATTEMPTS = 20
_METADATA_CACHE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a table with at least one version."""

    versions: tuple[TableVersion, ...]
    tags: Mapping[str, int]
    metadata: Mapping[str, str]
    schema_metadata: Mapping[str, str]
    mirrored: Mapping[int, str] = field(default_factory=dict)
    """The URIs of manifest lists. `read` looks for them, `read_version` does not."""
    schema_starts: tuple[tuple[int, Schema], ...] = ()
    """As in TableInfo."""
    empty_list: str | None = None
    """As in TableInfo."""


class LanceTables:
    def __init__(self, storage: Storage, allowed_locations: Sequence[str] | None = ()) -> None:
        """Manifests may name files in their table's folder and in the allowed locations; anywhere with None."""
        self._storage = storage
        self.allowed_locations = tuple(allowed_locations or ())
        self.allowed = AllowedLocations(allowed_locations)
        self._cache = HistoryCache()
        self._session = lance.Session(  # type: ignore[attr-defined]
            index_cache_size_bytes=0, metadata_cache_size_bytes=_METADATA_CACHE_BYTES
        )

    def newest(self, path: str) -> FileEntry | None:
        """The manifest of the latest version. Lists the folder only when it changed by more than new versions."""
        folder = f"{path}/{VERSIONS}"
        known = self._cache.newest(path)
        for _ in range(_ATTEMPTS):
            stamp = self._storage.folder_stamp(folder)
            if known is not None and stamp is not None and stamp == known.stamp:
                return known.manifest
            manifest = followed(self._storage, folder, known.manifest) if known is not None else None
            if manifest is None:
                name = newest_of(self._storage.names(folder))
                if name is None:
                    return None
                manifest = self._entry(folder, name)
            if manifest is not None:
                self._cache.saw(path, Newest(stamp, manifest))
                return manifest
        raise broken(self._storage.location(path), "its versions come and go")

    def manifest(self, path: str, version: int) -> FileEntry | None:
        """The manifest of one version, under either naming scheme."""
        found = (self._entry(f"{path}/{VERSIONS}", name) for name in names_of(version).values())
        return next((entry for entry in found if entry is not None), None)

    def read(self, path: str, history: History, only: Collection[int] | None = None) -> Content | None:
        """None when there is no version yet. Versions that are not in `only` do not count. BrokenTable."""
        location = self._storage.location(path)
        missing: Missing | None = None
        for _ in range(3):
            newest = self.newest(path) if only is None else self._latest_of(path, only)
            if newest is None:
                return None
            try:
                with lance_errors(location):
                    return self._read(path, newest, history, only)
            except Missing as error:
                missing = error
                self._cache.forget(path)
        raise broken(location, first_line(missing) if missing else "its versions come and go")

    def read_version(self, path: str, version: int) -> Content | None:
        """The table as it was then. None when that version is not there."""
        location = self._storage.location(path)
        while (entry := self.manifest(path, version)) is not None:
            try:
                with lance_errors(location):
                    dataset = self.open(path, version)
                    tags = {name: each for name, each in read_tags(self._storage, path).items() if each == version}
                    described = self._described(path, entry.name, dataset)
                    return Content((described,), tags, dict(dataset.metadata), dict(dataset.schema_metadata))
            except Missing as error:
                if self.manifest(path, version) == entry:
                    raise broken(location, first_line(error)) from error
        return None

    def first_version(
        self,
        path: str,
        schema: pa.Schema,
        metadata: Mapping[str, str],
        data_storage_version: StorageVersion = "stable",
        field_ids: Sequence[int | None] = (),
    ) -> FirstFile:
        """Version 1 of an empty table, properties included: one file makes the table."""
        manifest = first_manifest(schema, data_storage_version)
        if field_ids:
            manifest = with_field_ids(manifest, field_ids)
        manifest = with_metadata(manifest, metadata)
        return FirstFile(self._storage, f"{path}/{FIRST}", manifest)

    def stage_next(self, path: str, base: TableVersion, wanted: Reshape) -> str | None:
        """Writes the manifest of the version after `base` under a name that makes no version yet, and gives its
        path. None when nothing changes. Raises Lost when `base` is gone."""
        folder, name = f"{path}/{VERSIONS}", base.manifest.rpartition("/")[2]
        location = self._storage.location(path)
        manifest = self._storage.read(f"{folder}/{name}")
        if manifest is None or head_of(manifest).timestamp_ms != base.timestamp_ms:
            raise Lost(f"{location} was changed by another writer")
        with lance_errors(location):
            content = next_manifest(manifest, name, base.version, wanted)
        if content is None:
            return None
        staged = f"{folder}/{staged_name(base.version + 1, like=name)}"
        self._storage.write(staged, content)
        return staged

    def require_own_files(self, path: str, version: int) -> None:
        """InvalidInput for a version that names files outside of its table and of the allowed locations."""
        entry = self.manifest(path, version)
        content = self._storage.read(f"{path}/{VERSIONS}/{entry.name}") if entry else None
        if content is not None:
            location = self._storage.location(path)
            require_inside(content, location, self.allowed, f"Version {version} of the table at {location}")

    def set_tag(self, path: str, name: str, version: int) -> None:
        self._storage.require_writable(path)
        with tag_errors(self._storage.location(path)):
            tags = self.open(path).tags
            if name not in read_tags(self._storage, path):
                tags.create(name, version)
            else:
                tags.update(name, version)

    def remove_tag(self, path: str, name: str) -> None:
        """A tag that is not there is no error."""
        self._storage.require_writable(path)
        if name in read_tags(self._storage, path):
            with tag_errors(self._storage.location(path)):
                self.open(path).tags.delete(name)

    def open(self, path: str, version: int | None = None) -> lance.LanceDataset:
        return lance.dataset(
            self._storage.lance_uri(path),
            version=version,
            session=self._session,
            storage_options=dict(self._storage.options) or None,
        )

    def forget(self, path: str) -> None:
        self._cache.forget(path)

    def _entry(self, folder: str, name: str) -> FileEntry | None:
        identity = self._storage.identity(f"{folder}/{name}")
        return None if identity is None else FileEntry(name, identity)

    def _manifests(self, path: str) -> list[FileEntry]:
        return [entry for entry in self._storage.files(f"{path}/{VERSIONS}") if version_of(entry.name)]

    def _latest_of(self, path: str, versions: Collection[int]) -> FileEntry | None:
        latest = versions.stop - 1 if isinstance(versions, range) else max(versions, default=0)
        entry = self.manifest(path, latest) if latest else None
        if latest and entry is None:
            raise broken(self._storage.location(path), f"the manifest of its version {latest} is gone")
        return entry

    def _read(self, path: str, newest: FileEntry, history: History, only: Collection[int] | None) -> Content:
        dataset = self.open(path, _number(newest.name))
        tags, lists = read_tags(self._storage, path), ManifestLists.at(self._storage, path)

        def counts(number: int) -> bool:
            return number < dataset.version and (only is None or number in only)

        entries = self._manifests(path) if history is History.ALL else self._named(path, newest, tags.values())
        counted = [*(each for each in entries if counts(_number(each.name))), newest]
        opened = self._opened(path, counted, dataset)
        if history is not History.ALL and not lists.of([opened[newest]]):
            mirrored = self._named(path, newest, filter(counts, lists.numbers()))
            opened |= self._first_mirrored(path, mirrored, dataset, lists, opened)
        self._cache.put(path, opened, keep_others=history is not History.ALL)
        starts = self._schema_starts(path, opened, history, dataset, only)
        versions = tuple(sorted(opened.values(), key=lambda version: version.version))
        present = {version.version for version in versions}
        return Content(
            versions,
            {name: number for name, number in tags.items() if number in present},
            dict(dataset.metadata),
            dict(dataset.schema_metadata),
            lists.of(versions),
            starts,
            lists.empty,
        )

    def _schema_starts(
        self,
        path: str,
        opened: Mapping[FileEntry, TableVersion],
        history: History,
        latest: lance.LanceDataset,
        only: Collection[int] | None,
    ) -> tuple[tuple[int, Schema], ...]:
        """`opened` are the versions that are asked for. Where they are not all there are, the starts of an earlier
        look are used while their manifests are there: versions before them may go, and none can come."""
        if history is History.HEADS:
            return ()
        if history is History.ALL:
            starts = SchemaStarts(_firsts(opened), latest.version)
        else:
            starts = self._starts_of(path, list(opened.values()), latest, only)
        self._cache.keep_starts(path, starts)
        return tuple((_number(entry.name), schema) for entry, schema in starts.firsts)

    def _starts_of(
        self, path: str, versions: Sequence[TableVersion], latest: lance.LanceDataset, only: Collection[int] | None
    ) -> SchemaStarts:
        known = self._cache.starts(path)
        if known is None or not self._are_there(path, known, only):
            known = None
        elif _covers(known, versions):
            return known
        entries = [entry for entry in self._manifests(path) if only is None or _number(entry.name) in only]
        entries = sorted((each for each in entries if _number(each.name) <= latest.version), key=_version_of_entry)
        if known is None:
            oldest = self._opened(path, entries[:1], latest)
            known = SchemaStarts(_firsts(oldest), 0)
            if _covers(known, versions):
                return known
        newer = [each for each in entries if _number(each.name) > known.through]
        opened = self._opened(path, newer, latest)
        self._cache.put(path, opened, keep_others=True)
        before = known.firsts if known.through else ()
        return SchemaStarts(_firsts(opened, before), latest.version)

    def _are_there(self, path: str, starts: SchemaStarts, only: Collection[int] | None) -> bool:
        """Whether the manifests of `starts` are still those of versions that count."""
        return all(
            self._entry(f"{path}/{VERSIONS}", entry.name) == entry
            and (only is None or _number(entry.name) in only)
            for entry, _ in starts.firsts
        )

    def _opened(
        self, path: str, entries: Iterable[FileEntry], latest: lance.LanceDataset
    ) -> dict[FileEntry, TableVersion]:
        versions = ((entry, self._version(path, entry, latest)) for entry in entries)
        return {entry: version for entry, version in versions if version is not None}

    def _first_mirrored(
        self,
        path: str,
        entries: Iterable[FileEntry],
        latest: lance.LanceDataset,
        lists: ManifestLists,
        opened: Mapping[FileEntry, TableVersion],
    ) -> dict[FileEntry, TableVersion]:
        for entry in entries:
            version = opened.get(entry) or self._version(path, entry, latest)
            if version is not None and lists.of([version]):
                return {entry: version}
        return {}

    def _named(self, path: str, newest: FileEntry, numbers: Iterable[int]) -> Iterator[FileEntry]:
        """The manifests of the numbered versions that are there."""
        for number in dict.fromkeys(numbers):
            entry = self._entry(f"{path}/{VERSIONS}", name_of(number, like=newest.name))
            if entry is not None:
                yield entry

    def _version(self, path: str, entry: FileEntry, latest: lance.LanceDataset) -> TableVersion | None:
        """None when a cleanup removed it since the folder was listed."""
        number = _number(entry.name)
        known = self._cache.get(path, entry)
        if known is not None:
            return known
        if number == latest.version:
            return self._described(path, entry.name, latest)
        try:
            with lance_errors(self._storage.location(path)):
                return self._described(path, entry.name, self.open(path, number))
        except Missing:
            return None

    def _described(self, path: str, name: str, dataset: lance.LanceDataset) -> TableVersion:
        # get_version() answers naive local time, which is wrong in the hour when clocks go back
        current: dict[str, Any] = dict(dataset._ds.current_version())
        schema = read_schema(dataset.lance_schema.fields(), dataset.schema)
        return TableVersion(
            version=dataset.version,
            timestamp_ms=current["timestamp"] // 1_000_000,
            schema=self._cache.shared(path, schema),
            operation=_operation(dataset),
            summary=current["metadata"],
            manifest=self._storage.location(f"{path}/{VERSIONS}/{name}"),
            max_field_id=dataset.max_field_id,
        )


def _number(name: str) -> int:
    number = version_of(name)
    assert number is not None
    return number


def _version_of_entry(entry: FileEntry) -> int:
    return _number(entry.name)


def _firsts(
    opened: Mapping[FileEntry, TableVersion], before: Sequence[tuple[FileEntry, Schema]] = ()
) -> tuple[tuple[FileEntry, Schema], ...]:
    """The first version of each schema, those `before` included."""
    firsts = list(before)
    previous: Schema | None = None
    for entry in sorted(opened, key=_version_of_entry):
        schema = opened[entry].schema
        if schema is not previous and all(known != schema for _, known in firsts):
            firsts.append((entry, schema))
        previous = schema
    return tuple(firsts)


def _covers(starts: SchemaStarts, versions: Iterable[TableVersion]) -> bool:
    """Whether `starts` tell where the schema of each version begins."""
    return all(any(version.schema == schema for _, schema in starts.firsts) for version in versions)


def _operation(dataset: lance.LanceDataset) -> str:
    try:
        with lance_errors(dataset.uri):
            transaction: Any = dataset.read_transaction(dataset.version)
    except (BrokenTable, Missing):
        transaction = None
    return "Unknown" if transaction is None else type(transaction.operation).__name__


def first_manifest(schema: pa.Schema, data_storage_version: StorageVersion = "stable") -> bytes:
    """InvalidInput for a schema that Lance cannot store."""
    with TemporaryDirectory(prefix="irc-bridge-") as folder:
        table = Path(folder, "table")
        try:
            with lance_errors(folder):
                rows = pa.RecordBatchReader.from_batches(schema, [])
                lance.write_dataset(rows, table, mode="create", data_storage_version=data_storage_version)
                require_readable(table)
        except BrokenTable as error:
            cause = error.__cause__ or error
            raise InvalidInput(f"Lance cannot store this schema: {first_line(cause)}") from error
        return (table / FIRST).read_bytes()
