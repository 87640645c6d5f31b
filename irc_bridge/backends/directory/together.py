"""A root that manages versions: several tables change in one commit of the manifest."""

import random
import time
from collections.abc import Mapping

from irc_bridge.backends.directory.loading import Found
from irc_bridge.backends.directory.manifest_catalog import ManifestCatalog
from irc_bridge.catalog.models import Commit, History, Levels, NewVersion, TableInfo
from irc_bridge.catalog.ports import Decide
from irc_bridge.errors import CommitFailed, ConcurrentModification, InvalidInput, TableVersionAlreadyExists
from irc_bridge.lance_store.failures import Lost
from irc_bridge.names import dotted

_ATTEMPTS = 50

_Entry = tuple[Found, NewVersion]


class ManagedCatalog(ManifestCatalog):
    def commit_together(self, changes: Mapping[Levels, Decide], history: History = History.HEADS) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                self._commit_together(changes, history)
                return
            except (Lost, TableVersionAlreadyExists, ConcurrentModification):
                time.sleep(random.uniform(0, min(0.02, 0.002 * attempt)))
        names = ", ".join(map(dotted, changes))
        raise CommitFailed(f"Other writers kept committing to {names}: nothing was changed, try again")

    def _commit_together(self, changes: Mapping[Levels, Decide], history: History) -> None:
        entries: list[_Entry] = []
        ours: list[_Entry] = []
        try:
            for table, decide in changes.items():
                found, info = self._found_with_info(table, history)
                commit = decide(info)
                _require_a_version(found, info, commit)
                new = commit.new_version or self._staged(found, info, commit)
                entries += [(found, new)] if new else []
                ours += [(found, new)] if new and not commit.new_version else []
            self._managed.create(entries)
        except Exception:
            for found, new in ours:
                self._discard(found, new)
            raise
        for found, _ in ours:
            self._moved_in(found)


def _require_a_version(found: Found, info: TableInfo, commit: Commit) -> None:
    """What makes no version takes no part."""
    why = None
    if found.versions is None:
        why = "it is not managed_by=impl, so its storage decides about its versions"
    elif commit.new_version is None and info.latest is None:
        why = "it has no version yet"
    elif commit.set_tags or commit.remove_tags or commit.remove_versions:
        why = "tags and removals of snapshots make no version"
    if why is not None:
        raise InvalidInput(
            f"table-changes: {dotted(found.table)} cannot change in one commit with other tables: {why}. Commit "
            f"to it alone"
        )
