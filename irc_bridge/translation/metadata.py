"""A Lance table as Iceberg TableMetadata."""

import json
from collections.abc import Sequence

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from irc_bridge.catalog import models
from irc_bridge.catalog.models import MANAGED_BY, TABLE_TYPE, MirrorLag, TableInfo, TableVersion
from irc_bridge.catalog.properties import LATEST_VERSION, MIRRORED_VERSION, RESERVED_PREFIX
from irc_bridge.translation.identity import table_uuid
from irc_bridge.translation.schema import ITEM_ID_STEP, Translated, to_iceberg
from irc_bridge.translation.snapshots import newest_mirrored, refs, shown, snapshot_log, snapshots

CURRENT_SCHEMA_ID = 1
OMITTED_COLUMNS = "irc-bridge.omitted-columns"
CONVERTED_COLUMNS = "irc-bridge.converted-columns"


def table_metadata(info: TableInfo, lag: MirrorLag) -> TableMetadataV2:
    latest, current = info.latest, shown(info, lag)
    schema = current.schema if current else ()
    translated = to_iceberg(schema, CURRENT_SCHEMA_ID)
    schemas, schema_ids = _schemas(info.versions, schema, translated.schema)
    history = snapshots(info, schema_ids)
    return TableMetadataV2(
        location=info.location,
        table_uuid=table_uuid(info),
        last_updated_ms=max([info.updated_ms, *(snapshot.timestamp_ms for snapshot in history[-1:])]),
        last_column_id=last_column_id(info, schemas),
        schemas=schemas,
        current_schema_id=CURRENT_SCHEMA_ID,
        partition_specs=[UNPARTITIONED_PARTITION_SPEC],
        last_partition_id=PARTITION_FIELD_ID_START - 1,
        properties=_properties(info, translated),
        current_snapshot_id=current.version if current else None,
        snapshots=history,
        snapshot_log=snapshot_log(history, current),
        sort_orders=[UNSORTED_SORT_ORDER],
        refs=refs(info, current),
        last_sequence_number=latest.version if latest else 0,
    )


def last_column_id(info: TableInfo, schemas: Sequence[Schema]) -> int:
    """At least the highest id ever given, by Lance or to items of fixed-size lists, to which Lance gives none.
    It rises with every id of Lance's, because clients assert it to learn whether others added columns."""
    highest = max(schema.highest_field_id for schema in schemas)
    by_lance = max([highest % ITEM_ID_STEP, *(version.max_field_id + 1 for version in info.versions)])
    return by_lance + highest // ITEM_ID_STEP * ITEM_ID_STEP


def _schemas(
    versions: Sequence[TableVersion], current: models.Schema, translated: Schema
) -> tuple[list[Schema], dict[int, int]]:
    """The current schema and the others that differ, oldest first; and the schema id of each version."""
    schemas = [translated]
    seen: list[tuple[models.Schema, int]] = [(current, CURRENT_SCHEMA_ID)]
    schema_ids: dict[int, int] = {}
    for version in versions:
        schema_id = next((known_id for known, known_id in reversed(seen) if known == version.schema), None)
        if schema_id is None:
            schema_id = _schema_id(version.schema, schemas)
            seen.append((version.schema, schema_id))
        schema_ids[version.version] = schema_id
    return schemas, schema_ids


def _schema_id(schema: models.Schema, schemas: list[Schema]) -> int:
    """Lance schemas may differ where Iceberg shows no difference."""
    other = to_iceberg(schema, len(schemas) + 1).schema
    for known in schemas:
        if (known.fields, known.identifier_field_ids) == (other.fields, other.identifier_field_ids):
            return known.schema_id
    schemas.append(other)
    return other.schema_id


def _properties(info: TableInfo, current: Translated) -> dict[str, str]:
    kept = (name for name in info.properties if not name.startswith(RESERVED_PREFIX))
    properties = {name: info.properties[name] for name in kept}
    properties[TABLE_TYPE] = "lance"
    properties[MANAGED_BY] = "impl" if info.managed_by == "impl" else "storage"
    if current.omitted:
        properties[OMITTED_COLUMNS] = json.dumps(current.omitted, ensure_ascii=False)
    if current.converted:
        properties[CONVERTED_COLUMNS] = json.dumps(current.converted, ensure_ascii=False)
    mirrored = newest_mirrored(info)
    if mirrored is not None and info.latest is not None:
        properties |= {LATEST_VERSION: str(info.latest.version), MIRRORED_VERSION: str(mirrored.version)}
    return dict(sorted(properties.items()))
