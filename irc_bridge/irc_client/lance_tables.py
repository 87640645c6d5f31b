"""A Lance table as an IRC server keeps it (seed 004), and the bodies of requests that make and change one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from irc_bridge.catalog.models import TABLE_TYPE, managed_by
from irc_bridge.catalog.properties import LATEST_VERSION
from irc_bridge.errors import Internal, TableNotFound
from irc_bridge.names import dotted

Json = Mapping[str, Any]

LOCATION = "irc-bridge.location"
"""Holds the Lance root where the server insists on a location of its own."""
MAIN = "main"
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

    @property
    def by_catalog(self) -> bool:
        """Whether the catalog decides about versions."""
        return managed_by(self.properties) == "impl"

    @property
    def latest(self) -> int | None:
        """The latest version that the server knows of. One that knows Lance may keep main on an earlier."""
        said = self.properties.get(LATEST_VERSION, "")
        return int(said) if self.knows_lance and said.isdigit() else self.current


def read_table(name: tuple[str, ...], result: Json, knows_lance: bool | None = None) -> LanceTable:
    """From a LoadTableResult, or from a CommitTableResponse when `knows_lance` says what a load said.
    TableNotFound when the server keeps no Lance table under the name."""
    try:
        return _table(name, result, result["metadata"], knows_lance)
    except KeyError as error:
        raise Internal(f"What the server says of {dotted(name)} lacks the field {error}") from None


def _table(name: tuple[str, ...], result: Json, metadata: Json, knows_lance: bool | None) -> LanceTable:
    properties = metadata.get("properties") or {}
    if properties.get(TABLE_TYPE, "").lower() != "lance":
        raise TableNotFound(f"{dotted(name)} is an Iceberg table, not a Lance table: it has no table_type=lance")
    refs = metadata.get("refs") or {}
    current = refs[MAIN]["snapshot-id"] if MAIN in refs else metadata.get("current-snapshot-id")
    location = (properties.get(LOCATION) or metadata["location"]).rstrip("/")
    snapshots = metadata.get("snapshots") or []
    return LanceTable(
        uuid=metadata["table-uuid"],
        location=location,
        properties=properties,
        current=current if current not in (None, -1) else None,
        tags={tag: ref["snapshot-id"] for tag, ref in refs.items() if ref["type"] == "tag"},
        manifests={each["snapshot-id"]: each.get("manifest-list", "") for each in snapshots},
        schema_id=metadata.get("current-schema-id", 0),
        updated_ms=metadata.get("last-updated-ms", 0),
        sequence_number=metadata.get("last-sequence-number", 0),
        knows_lance=not result.get("metadata-location") if knows_lance is None else knows_lance,
        config=_vended(result, location),
    )


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
        "properties": {**properties, TABLE_TYPE: "lance"},
    }


def change(table: LanceTable, requirements: Iterable[Json], *updates: Json) -> Json:
    same = {"type": "assert-table-uuid", "uuid": table.uuid}
    return {"requirements": [same, *requirements], "updates": list(updates)}


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
    return change(table, [on_version(MAIN, table.current)], added, set_ref(MAIN, "branch", version), *also)


def on_version(ref: str, version: int | None) -> Json:
    return {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": version}


def set_ref(ref: str, kind: str, version: int) -> Json:
    return {"action": "set-snapshot-ref", "ref-name": ref, "type": kind, "snapshot-id": version}


def _vended(result: Json, location: str) -> Mapping[str, str]:
    """Of several credentials the one with the longest prefix of the location counts, before the config."""
    config: dict[str, str] = dict(result.get("config") or {})
    found = [each for each in result.get("storage-credentials") or [] if location.startswith(each["prefix"])]
    for each in sorted(found, key=lambda each: len(each["prefix"])):
        config |= each["config"]
    return config
