"""A Lance table as an IRC server keeps it (seed 004), and the bodies of requests that make and change one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from irc_bridge.answers import Unreadable
from irc_bridge.catalog.guard import GUARD_ID, GUARD_SEQUENCE_NUMBER, GUARD_SUMMARY, guard_list
from irc_bridge.catalog.models import TABLE_TYPE, managed_by
from irc_bridge.catalog.properties import GC_ENABLED, LATEST_VERSION, is_safe
from irc_bridge.errors import BadGateway, TableNotFound
from irc_bridge.irc_client import shapes
from irc_bridge.names import dotted

Json = Mapping[str, Any]

LOCATION = "irc-bridge.location"
"""Holds the Lance root where the server insists on a location of its own."""
MAIN = "main"
_NO_SNAPSHOT = -1
_DUMMY_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "dummy", "type": "string", "required": False}],
}
"""Tells a server that knows Lance that the table is only declared. The published Lance client sends it too."""


@dataclass(frozen=True, slots=True)
class LanceTable:
    uuid: str
    location: str
    properties: Mapping[str, str]
    current: int | None
    """The version that the branch main is on."""
    main: int | None
    """The snapshot that the branch main is on. Some servers put it on the guard, which is no version."""
    tags: Mapping[str, int]
    manifests: Mapping[int, str]
    """What the snapshots that the server told of name as their manifest list."""
    schema_id: int
    updated_ms: int
    sequence_number: int
    knows_lance: bool
    """Whether the server looks after the files: it leaves metadata-location out of a load, as seed 004 asks."""
    config: Mapping[str, str]
    """What the server vends for the table's files."""
    server_location: str
    """The location as the server has it; `location` is another one where a property holds the Lance root."""
    metadata_location: str | None
    """The server's own metadata file, if the server named one."""
    old_metadata: frozenset[str]
    """The server's metadata files of before, as far as it knows them."""

    @property
    def by_catalog(self) -> bool:
        """Whether the catalog decides about versions."""
        return managed_by(self.properties) == "impl"

    @property
    def is_guarded(self) -> bool:
        """Whether the server has a guard snapshot for the table. It is no part of `manifests` where only refs are
        loaded."""
        return self.properties.get(GUARD_SUMMARY) == "true"

    @property
    def latest(self) -> int | None:
        """The latest version that the server knows of. One that knows Lance may keep main on an earlier."""
        said = self.properties.get(LATEST_VERSION, "")
        return int(said) if self.knows_lance and said.isdigit() else self.current


def read_table(name: tuple[str, ...], result: Json, knows_lance: bool | None = None) -> LanceTable:
    """From a LoadTableResult, or from a CommitTableResponse when `knows_lance` says what a load said.
    TableNotFound when the server keeps no Lance table under the name, BadGateway when the answer is none."""
    metadata = result.get("metadata")
    properties = metadata.get("properties") if isinstance(metadata, dict) else None
    table_type = properties.get(TABLE_TYPE) if isinstance(properties, dict) else None
    if isinstance(metadata, dict) and not (isinstance(table_type, str) and table_type.lower() == "lance"):
        raise TableNotFound(f"{dotted(name)} is an Iceberg table, not a Lance table: it has no table_type=lance")
    try:
        return _table(shapes.read(shapes.TableResult, result), knows_lance)
    except Unreadable as error:
        raise BadGateway(f"What the server behind answers about {dotted(name)} {error}") from None


def _table(result: shapes.TableResult, knows_lance: bool | None) -> LanceTable:
    metadata, properties = result.metadata, result.metadata.properties or {}
    refs = metadata.refs or {}
    main = refs[MAIN].snapshot_id if MAIN in refs else metadata.current_snapshot_id
    main = None if main == _NO_SNAPSHOT else main
    server_location = metadata.location.rstrip("/")
    location = (properties.get(LOCATION) or server_location).rstrip("/")
    return LanceTable(
        uuid=metadata.table_uuid,
        location=location,
        properties=properties,
        current=None if main == GUARD_ID else main,
        main=main,
        tags={tag: ref.snapshot_id for tag, ref in refs.items() if ref.type == "tag"},
        manifests={each.snapshot_id: each.manifest_list or "" for each in metadata.snapshots or []},
        schema_id=metadata.current_schema_id or 0,
        updated_ms=metadata.last_updated_ms or 0,
        sequence_number=metadata.last_sequence_number or 0,
        knows_lance=_knows_lance(result, properties) if knows_lance is None else knows_lance,
        config=_vended(result, location),
        server_location=server_location,
        metadata_location=result.metadata_location,
        old_metadata=frozenset(each.metadata_file for each in metadata.metadata_log or []),
    )


def _knows_lance(result: shapes.TableResult, properties: Mapping[str, str]) -> bool:
    """A server that knows Lance leaves out metadata-location (seed 004). irc-bridge names one where it answers a
    create, and is known by the properties that it sets on every Lance table."""
    return not result.metadata_location or is_safe(properties)


def declaration(name: str, location: str | None, properties: Mapping[str, str]) -> Json:
    """Every field is sent: some servers want them all."""
    placed = {} if location is None else {"location": location}
    return {
        "name": name,
        **placed,
        "schema": _DUMMY_SCHEMA,
        "partition-spec": {"spec-id": 0, "fields": []},
        "write-order": {"order-id": 0, "fields": []},
        "stage-create": False,
        "properties": {**properties, TABLE_TYPE: "lance", GC_ENABLED: "false"},
    }


def change(table: LanceTable, requirements: Iterable[Json], *updates: Json) -> Json:
    """A commit to the table. One that a server keeps without knowing Lance says from then on that Iceberg clients
    must not delete its files."""
    same = {"type": "assert-table-uuid", "uuid": table.uuid}
    is_safe = table.knows_lance or table.properties.get(GC_ENABLED) == "false"
    safe = [] if is_safe else [{"action": "set-properties", "updates": {GC_ENABLED: "false"}}]
    return {"requirements": [same, *requirements], "updates": [*updates, *safe]}


def guard_commit(table: LanceTable) -> Json:
    """The commit that adds the guard snapshot. Servers take none that is much older than the last change."""
    snapshot = {
        "snapshot-id": GUARD_ID,
        "sequence-number": GUARD_SEQUENCE_NUMBER,
        "timestamp-ms": table.updated_ms,
        "manifest-list": guard_list(table.location),
        "summary": {"operation": "replace", GUARD_SUMMARY: "true"},
        "schema-id": table.schema_id,
    }
    noted = {"action": "set-properties", "updates": {GUARD_SUMMARY: "true"}}
    return change(table, [], {"action": "add-snapshot", "snapshot": snapshot}, noted)


def next_version(
    table: LanceTable, version: int, manifest: str, timestamp_ms: int, also: Iterable[Json] = ()
) -> Json:
    """The commit by which a manifest becomes the version, with other updates in it."""
    snapshot = {
        "snapshot-id": version,
        **({} if table.current is None else {"parent-snapshot-id": table.current}),
        "sequence-number": max(version, table.sequence_number + 1),
        "timestamp-ms": max(timestamp_ms, table.updated_ms),
        "manifest-list": manifest,
        "summary": {"operation": "overwrite"},
        "schema-id": table.schema_id,
    }
    added = {"action": "add-snapshot", "snapshot": snapshot}
    return change(table, [on_version(MAIN, table.main)], added, set_ref(MAIN, "branch", version), *also)


def on_version(ref: str, version: int | None) -> Json:
    return {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": version}


def set_ref(ref: str, kind: str, version: int) -> Json:
    return {"action": "set-snapshot-ref", "ref-name": ref, "type": kind, "snapshot-id": version}


def _vended(result: shapes.TableResult, location: str) -> Mapping[str, str]:
    """Of several credentials the one with the longest prefix of the location counts, before the config."""
    config = dict(result.config or {})
    found = [each for each in result.storage_credentials or [] if location.startswith(each.prefix)]
    for each in sorted(found, key=lambda each: len(each.prefix)):
        config |= each.config
    return config
