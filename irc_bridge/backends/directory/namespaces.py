"""Changes to the namespaces of `__manifest`."""

from collections.abc import Mapping
from itertools import islice

from irc_bridge.backends.directory.manifest import (
    NAMESPACE,
    Manifest,
    Row,
    Snapshot,
    children,
    metadata_text,
    values,
)
from irc_bridge.backends.directory.name_errors import namespace_exists, no_namespace, table_exists
from irc_bridge.backends.directory.names import DELIMITER, is_valid, object_id, require_valid
from irc_bridge.catalog.models import Levels, PropertyChanges
from irc_bridge.errors import InvalidInput, NamespaceNotEmpty, NamespaceNotFound
from irc_bridge.lance_store.rows import KeyedTable
from irc_bridge.names import dotted

_NAMED = 5


def require_namespace(snapshot: Snapshot, namespace: Levels) -> None:
    if namespace and (not is_valid(namespace) or snapshot.namespace(object_id(namespace)) is None):
        raise no_namespace(namespace)


def require_free(snapshot: Snapshot, levels: Levels) -> None:
    row = snapshot.row(object_id(levels))
    if row is not None:
        raise namespace_exists(levels) if row.object_type == NAMESPACE else table_exists(levels)


def create_namespace(manifest: Manifest, namespace: Levels, properties: Mapping[str, str]) -> None:
    if not namespace:
        raise namespace_exists(namespace)
    require_valid(namespace, "namespace")

    def insert(snapshot: Snapshot, table: KeyedTable) -> None:
        require_namespace(snapshot, namespace[:-1])
        require_free(snapshot, namespace)
        assert snapshot.state is not None
        table.insert(snapshot.state, values(object_id(namespace), NAMESPACE, None, properties))

    manifest.change(insert)
    confirm_parent(manifest, namespace)


def confirm_parent(manifest: Manifest, levels: Levels) -> None:
    """Two commits on different rows never conflict: a parent dropped in between shows only afterwards."""
    try:
        require_namespace(manifest.snapshot(), levels[:-1])
    except NamespaceNotFound:
        manifest.change(lambda snapshot, table: delete_row(snapshot, table, object_id(levels)))
        raise


def delete_row(snapshot: Snapshot, table: KeyedTable, key: str) -> Row | None:
    row = snapshot.row(key)
    if row is not None and snapshot.state is not None:
        table.delete(snapshot.state, key)
    return row


def drop_namespace(manifest: Manifest, namespace: Levels) -> None:
    if not namespace:
        raise InvalidInput("The root namespace cannot be dropped")

    def delete(snapshot: Snapshot, table: KeyedTable) -> Row:
        require_namespace(snapshot, namespace)
        _require_empty(snapshot, namespace)
        row = delete_row(snapshot, table, object_id(namespace))
        assert row is not None
        return row

    require_namespace(manifest.snapshot(), namespace)
    row = manifest.change(delete)
    try:
        _require_empty(manifest.snapshot(), namespace)
    except NamespaceNotEmpty:
        manifest.change(lambda snapshot, table: _restore(snapshot, table, row))
        raise


def update_properties(
    manifest: Manifest, namespace: Levels, removals: frozenset[str], updates: Mapping[str, str]
) -> PropertyChanges:
    if not namespace:
        raise InvalidInput("The root namespace holds no properties")

    def update(snapshot: Snapshot, table: KeyedTable) -> PropertyChanges:
        row = snapshot.namespace(object_id(namespace))
        if row is None or snapshot.state is None:
            raise no_namespace(namespace)
        old = row.properties
        new = {key: value for key, value in {**old, **updates}.items() if key not in removals}
        if new != old:
            table.update(snapshot.state, row.object_id, {"metadata": metadata_text(row.metadata, new)})
        return PropertyChanges(
            updated=tuple(updates),
            removed=tuple(sorted(removals & old.keys())),
            missing=tuple(sorted(removals - old.keys())),
        )

    require_namespace(manifest.snapshot(), namespace)
    return manifest.change(update)


def _restore(snapshot: Snapshot, table: KeyedTable, row: Row) -> None:
    if snapshot.row(row.object_id) is None and snapshot.state is not None:
        table.insert(
            snapshot.state,
            {"object_id": row.object_id, "object_type": row.object_type, "metadata": row.metadata},
        )


def _require_empty(snapshot: Snapshot, namespace: Levels) -> None:
    prefix = object_id(namespace) + DELIMITER
    held = list(islice(children(snapshot.ids, prefix, None), _NAMED + 1))
    if held or any(True for _ in snapshot.below(prefix)):
        names = ", ".join(held[:_NAMED]) + (", ..." if len(held) > _NAMED else "")
        raise NamespaceNotEmpty(f"Namespace {dotted(namespace)} is not empty: it holds {names}")
