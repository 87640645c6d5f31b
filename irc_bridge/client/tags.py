"""Tags of tables, as the tags among Iceberg's refs."""

from collections.abc import Mapping

from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.backends.upstream.versions import Versions
from irc_bridge.catalog.models import Levels
from irc_bridge.errors import (
    CommitFailed,
    InvalidInput,
    TableVersionNotFound,
    TagAlreadyExists,
    TagNotFound,
    Unsupported,
)
from irc_bridge.irc_client.lance_tables import MAIN, LanceTable, change, on_version, set_ref
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.names import dotted


class Tags:
    def __init__(self, tables: Tables, versions: Versions) -> None:
        self._tables = tables
        self._versions = versions

    def list(self, table: Levels) -> Mapping[str, tuple[int, int]]:
        """Version and size of its manifest, 0 where that is gone."""
        found = self._load(table)
        files = self._tables.files(found)
        return {name: (version, _size(files, version)) for name, version in sorted(found.tags.items())}

    def version(self, table: Levels, tag: str) -> int:
        return self._existing(self._load(table), table, tag)

    def create(self, table: Levels, tag: str, version: int) -> None:
        found = self._load(table)
        if tag in found.tags:
            raise TagAlreadyExists(f"{dotted(table)} has a tag {tag} already, on version {found.tags[tag]}")
        self._put(table, found, tag, version)

    def update(self, table: Levels, tag: str, version: int) -> None:
        found = self._load(table)
        self._existing(found, table, tag)
        self._put(table, found, tag, version)

    def delete(self, table: Levels, tag: str) -> None:
        found = self._load(table)
        same = on_version(tag, self._existing(found, table, tag))
        update = {"action": "remove-snapshot-ref", "ref-name": tag}
        self._tables.commit(table, found, change(found, [same], update))

    def _put(self, table: Levels, found: LanceTable, tag: str, version: int) -> None:
        if tag == MAIN:
            raise InvalidInput(f"A tag cannot be called {MAIN}: that is the branch of all versions")
        self._versions.describe(table, version)
        same = on_version(tag, found.tags.get(tag))
        try:
            self._tables.commit(table, found, change(found, [same], set_ref(tag, "tag", version)))
        except CommitFailed:
            if tag not in found.tags and tag in self._load(table).tags:
                raise TagAlreadyExists(f"{dotted(table)} has a tag {tag} already") from None
            raise

    def _load(self, table: Levels) -> LanceTable:
        found = self._tables.load(table)
        if not found.by_catalog and not found.knows_lance:
            raise Unsupported(
                f"{dotted(table)} says managed_by=storage and its catalog does not know Lance: its tags are those "
                f"of lance.dataset(...).tags"
            )
        return found

    def _existing(self, found: LanceTable, table: Levels, tag: str) -> int:
        if tag not in found.tags:
            raise TagNotFound(f"{dotted(table)} has no tag {tag}")
        return found.tags[tag]


def _size(files: TableFiles, version: int) -> int:
    try:
        return files.record(version).manifest_size
    except TableVersionNotFound:
        return 0
