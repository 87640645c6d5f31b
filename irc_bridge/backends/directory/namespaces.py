"""Changes to the namespaces of `__manifest`."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from irc_bridge.backends.directory.manifest import Change, Manifest
from irc_bridge.backends.directory.names import DELIMITER, is_valid, object_id, require_valid_namespace
from irc_bridge.backends.directory.objects import CREATED_AT, NAMESPACE, Objects, Row, metadata_text
from irc_bridge.catalog.models import Levels, PropertyChanges
from irc_bridge.errors import InvalidInput, NamespaceNotEmpty
from irc_bridge.lance_catalog.errors import namespace_exists, no_namespace, table_exists
from irc_bridge.names import dotted

_NAMED = 5


def require_namespace(objects: Objects, namespace: Levels) -> None:
    if namespace and (not is_valid(namespace) or objects.namespace(object_id(namespace)) is None):
        raise no_namespace(namespace)


def require_free(objects: Objects, levels: Levels) -> None:
    row = objects.row(object_id(levels))
    if row is not None:
        raise namespace_exists(levels) if row.object_type == NAMESPACE else table_exists(levels)


def create_namespace(manifest: Manifest, namespace: Levels, properties: Mapping[str, str]) -> None:
    if not namespace:
        raise namespace_exists(namespace)
    require_valid_namespace(namespace)
    _require_settable(properties)
    metadata = json.dumps({CREATED_AT: datetime.now(UTC).isoformat(), **properties}, ensure_ascii=False)

    def insert(objects: Objects) -> Change[None]:
        require_namespace(objects, namespace[:-1])
        require_free(objects, namespace)
        return Change(None, put=(Row(object_id(namespace), NAMESPACE, metadata=metadata),))

    manifest.change(insert)


def drop_namespace(manifest: Manifest, namespace: Levels) -> None:
    if not namespace:
        raise InvalidInput("The root namespace cannot be dropped")

    def delete(objects: Objects) -> Change[None]:
        require_namespace(objects, namespace)
        _require_empty(objects, namespace)
        return Change(None, drop=(object_id(namespace),))

    delete(manifest.objects())
    manifest.change(delete)


def update_properties(
    manifest: Manifest, namespace: Levels, removals: frozenset[str], updates: Mapping[str, str]
) -> PropertyChanges:
    if not namespace:
        raise InvalidInput("The root namespace holds no properties")
    _require_settable(updates)

    def update(objects: Objects) -> Change[PropertyChanges]:
        require_namespace(objects, namespace)
        row = objects.namespace(object_id(namespace))
        if row is None:
            raise no_namespace(namespace)
        old = row.properties
        new = {key: value for key, value in {**old, **updates}.items() if key not in removals}
        changes = PropertyChanges(
            updated=tuple(updates),
            removed=tuple(sorted(removals & old.keys())),
            missing=tuple(sorted(removals - old.keys())),
        )
        if new == old:
            return Change(changes)
        return Change(changes, put=(replace(row, metadata=metadata_text(row.metadata, new)),))

    update(manifest.objects())
    return manifest.change(update)


def _require_settable(properties: Mapping[str, str]) -> None:
    if CREATED_AT in properties:
        raise InvalidInput(f"The property {CREATED_AT} of a namespace is kept by the catalog: leave it out")


def _require_empty(objects: Objects, namespace: Levels) -> None:
    prefix = object_id(namespace) + DELIMITER
    held = list(islice(objects.children(prefix), _NAMED + 1))
    if held or objects.any_below(prefix):
        names = ", ".join(held[:_NAMED]) + (", ..." if len(held) > _NAMED else "")
        raise NamespaceNotEmpty(f"Namespace {dotted(namespace)} is not empty: it holds {names}")
