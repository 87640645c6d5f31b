"""Changes of a table's own properties, wherever its name is kept."""

from collections.abc import Callable, Mapping
from uuid import uuid4

from irc_bridge.catalog.models import TABLE_UUID, Commit, NewTable
from irc_bridge.lance_store.next_version import Decider
from irc_bridge.lance_store.tables import LanceTables

Keep = Callable[[Mapping[str, str]], None]


def first_properties(new: NewTable) -> dict[str, str]:
    return {TABLE_UUID: str(uuid4()), **new.properties}


def its_uuid(properties: Mapping[str, str]) -> dict[str, str]:
    return {TABLE_UUID: properties[TABLE_UUID]}


def commit_properties(
    tables: LanceTables,
    path: str,
    commit: Commit,
    kept: Mapping[str, str],
    keep: Keep,
    decider: Decider | None = None,
) -> None:
    """`kept` waits for the first version: a declared table changes it, a table with versions moves it into its
    Lance metadata."""
    has_versions = decider.latest() > 0 if decider else tables.newest(path) is not None
    if not has_versions:
        changed = {**kept, **commit.set_properties}
        keep({key: value for key, value in changed.items() if key not in commit.remove_properties})
        return
    tables.update_metadata(path, commit.set_properties, commit.remove_properties, kept, decider)
    if kept:
        keep({})
