"""Properties are the server's own. Those that hand a table over to the catalog say which version it is at."""

from collections.abc import Callable, Iterable
from contextlib import suppress

from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.backends.upstream.version_commit import Attempt
from irc_bridge.catalog.models import COMMITS, TABLE_TYPE, Commit, Levels, managed_by
from irc_bridge.errors import BridgeError
from irc_bridge.irc_client.lance_tables import (
    MAIN,
    Json,
    LanceTable,
    change,
    next_version,
    on_version,
    set_ref,
)
from irc_bridge.lance_catalog.commits import remembered
from irc_bridge.lance_catalog.names import ResolvedTable


def property_updates(table: LanceTable, commit: Commit, identity: str) -> tuple[Json, ...]:
    """None where nothing changes."""
    given = {key: each for key, each in commit.set_properties.items() if table.properties.get(key) != each}
    removed = sorted(key for key in commit.remove_properties - {TABLE_TYPE} if key in table.properties)
    if not given and not removed:
        return ()
    given[COMMITS] = remembered(table.properties.get(COMMITS, ""), identity)
    setting = {"action": "set-properties", "updates": given}
    return (setting, {"action": "remove-properties", "removals": removed}) if removed else (setting,)


def hands_over(table: LanceTable, commit: Commit) -> bool:
    """Whether the storage decided about versions until now, and the catalog does from now on."""
    return not table.by_catalog and managed_by(commit.set_properties) == "impl"


def properties_attempt(
    tables: Tables, found: ResolvedTable, commit: Commit, updates: Iterable[Json], identity: str
) -> Attempt:
    if hands_over(found.entry, commit):
        body = _at_newest(tables.load(found.name, "all"), found, updates)
    else:
        body = change(found.entry, [on_version(MAIN, found.entry.main)], *updates)
    return Attempt(found.name, found.entry, found.files, body, identity=identity)


def adopt_late(tables: Tables, find: Callable[[Levels], ResolvedTable], name: Levels) -> None:
    """A version that a writer made by its file while the catalog took over. Another who did the same, or went on
    from there, is as good."""
    with suppress(BridgeError):
        found = find(name)
        while found.entry.by_catalog and (found.files.newest() or 0) > (found.entry.current or 0):
            tables.commit(name, found.entry, _at_newest(found.entry, found, ()))
            found = find(name)


def _at_newest(table: LanceTable, found: ResolvedTable, updates: Iterable[Json]) -> Json:
    """`table` with all snapshots that the server has."""
    newest = found.files.newest()
    if newest is None or newest == table.current:
        return change(table, [on_version(MAIN, table.main)], *updates)
    if newest in table.manifests:
        moved = set_ref(MAIN, "branch", newest)
        return change(table, [on_version(MAIN, table.main)], moved, *updates)
    record = found.files.record(newest)
    return next_version(table, newest, record.manifest_path, record.timestamp_ms, updates)
