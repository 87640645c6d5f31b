"""Which tables have rows for their versions: those that say `managed_by=impl`, in a root that manages versions.
A table goes over when it is next looked at after it began, or ceased, to say so."""

import logging
from dataclasses import replace

from irc_bridge.backends.directory.loading import Found
from irc_bridge.backends.directory.managed import ManagedVersions
from irc_bridge.backends.directory.manifest import Change, Manifest, Snapshot
from irc_bridge.backends.directory.names import object_id
from irc_bridge.backends.directory.objects import Objects, Row, is_impl, metadata_text, version_id
from irc_bridge.backends.directory.table_rows import require_row
from irc_bridge.backends.directory.version_rows import row_of, staged_path, was_staged_at
from irc_bridge.catalog.models import MANAGED_BY, TableInfo
from irc_bridge.errors import NotFound, PermissionDenied
from irc_bridge.lance_store.version_files import VersionFiles
from irc_bridge.names import dotted

log = logging.getLogger(__name__)


def governing_rows(snapshot: Snapshot, row: Row) -> dict[int, Row] | None:
    """The rows of a table's versions; None where its files are the versions. Rows of Lance 4 to 7, whose numbers
    are padded, only tell what the files tell."""
    if not snapshot.manages_versions:
        return None
    versions = snapshot.objects.versions(row.object_id)
    latest = max(versions, default=0)
    if latest and versions[latest].object_id == version_id(row.object_id, latest):
        return dict(versions)
    return {} if not versions and is_impl(row.properties) else None


class Governing:
    def __init__(self, manifest: Manifest, files: VersionFiles, managed: ManagedVersions) -> None:
        self._manifest = manifest
        self._files = files
        self._managed = managed

    def settle(self, found: Found, info: TableInfo) -> bool:
        """True when the table went over."""
        if found.row is None or (info.managed_by == "impl") == (found.versions is not None):
            return False
        try:
            if found.versions is None:
                self.adopt(found)
            else:
                self._release(found)
        except (PermissionDenied, NotFound):
            # who may only read sees what is there
            return False
        return True

    def adopt(self, found: Found) -> None:
        """Rows for the versions that the table has. Looks again, because a version that is made without a row
        while this goes on counts too."""
        while added := self._manifest.change(lambda objects: self._adopted(objects, found)):
            log.info("%s: %d versions are now kept in the manifest", dotted(found.table), added)

    def counts(self, found: Found, version: int) -> bool:
        """Whether a version that its file just made is one, of a table that went over meanwhile."""
        self.adopt(found)
        row = self._manifest.objects().versions(object_id(found.table)).get(version)
        return row is not None and not was_staged_at(row)

    def _adopted(self, objects: Objects, found: Found) -> Change[int]:
        require_row(objects, found.table, found.path)
        table_id = object_id(found.table)
        versions = objects.versions(table_id)
        ours = [each for each, row in versions.items() if row.object_id == version_id(table_id, each)]
        padded = tuple(row.object_id for each, row in versions.items() if each not in ours)
        records = self._files.list(found.path, descending=False, after=max(ours, default=0), limit=None).items
        return Change(len(records), put=tuple(row_of(each, found.table) for each in records), drop=padded)

    def _release(self, found: Found) -> None:
        """From here on the files are the versions again."""
        while not self._manifest.change(lambda objects: _released(objects, found)):
            self._managed.synchronise(found.table, found.path)


def _released(objects: Objects, found: Found) -> Change[bool]:
    """False when a version must be finished first."""
    row = require_row(objects, found.table, found.path)
    versions = objects.versions(row.object_id).values()
    if any(staged_path(each) is not None for each in versions):
        return Change(False)
    kept = {key: value for key, value in row.properties.items() if key != MANAGED_BY}
    without = replace(row, metadata=metadata_text(row.metadata, kept))
    return Change(True, put=(without,), drop=tuple(each.object_id for each in versions))
