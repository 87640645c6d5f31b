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
from irc_bridge.backends.directory.version_rows import staged_path, was_staged_at
from irc_bridge.catalog.models import MANAGED_BY, TableInfo
from irc_bridge.errors import NotFound, PermissionDenied
from irc_bridge.lance_store.version_files import VersionFiles

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
                self._managed.adopt(found)
            else:
                self._release(found)
        except (PermissionDenied, NotFound):
            # who may only read sees what is there
            return False
        return True

    def counts(self, found: Found, version: int) -> bool:
        """Whether a version that its file just made is one, of a table that went over meanwhile."""
        self._managed.adopt(found)
        row = self._manifest.objects().versions(object_id(found.table)).get(version)
        return row is not None and not was_staged_at(row)

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
