"""A Lance table as Iceberg TableMetadata."""

import json
from collections.abc import Sequence

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from irc_bridge.catalog.identity import table_uuid
from irc_bridge.catalog.models import MANAGED_BY, TABLE_TYPE, IcebergView, TableInfo
from irc_bridge.catalog.properties import LATEST_VERSION, MIRRORED_VERSION, RESERVED_PREFIX, safe_properties
from irc_bridge.translation.schema import ITEM_ID_STEP, Translated
from irc_bridge.translation.schema_ids import table_schemas
from irc_bridge.translation.snapshots import guard, newest_mirrored, refs, shown, snapshot_log, snapshots

OMITTED_COLUMNS = "irc-bridge.omitted-columns"
CONVERTED_COLUMNS = "irc-bridge.converted-columns"


def table_metadata(info: TableInfo, view: IcebergView, *, full: bool = True) -> TableMetadataV2:
    """The table as Iceberg clients see it. `full` tells that every snapshot is listed; a full list may have the
    guard snapshot."""
    latest, current = info.latest, shown(info, view.mirror_lag)
    schemas = table_schemas(info, current, view.schema_ids)
    history = snapshots(info, schemas.ids)
    log = snapshot_log(info, current)
    guarded = full and view.guard_snapshot and current is not None
    return TableMetadataV2(
        location=info.location,
        table_uuid=table_uuid(info),
        last_updated_ms=max([info.updated_ms, *(entry.timestamp_ms for entry in log)]),
        last_column_id=last_column_id(info, schemas.schemas),
        schemas=list(schemas.schemas),
        current_schema_id=schemas.current.schema.schema_id,
        partition_specs=[UNPARTITIONED_PARTITION_SPEC],
        last_partition_id=PARTITION_FIELD_ID_START - 1,
        properties=_properties(info, schemas.current),
        current_snapshot_id=current.version if current else None,
        snapshots=[*([guard(info.location, schemas.current.schema)] if guarded else []), *history],
        snapshot_log=log,
        sort_orders=[UNSORTED_SORT_ORDER],
        refs=refs(info, current),
        last_sequence_number=latest.version if latest else 0,
    )


def with_schema_id(metadata: TableMetadataV2, schema_id: int) -> TableMetadataV2:
    """The metadata of a table with one schema, under another id for it."""
    (schema,) = metadata.schemas
    return metadata.model_copy(
        update={
            "schemas": [schema.model_copy(update={"schema_id": schema_id})],
            "current_schema_id": schema_id,
            "snapshots": [snapshot.model_copy(update={"schema_id": schema_id}) for snapshot in metadata.snapshots],
        }
    )


def last_column_id(info: TableInfo, schemas: Sequence[Schema]) -> int:
    """At least the highest id ever given, by Lance or to items of fixed-size lists, to which Lance gives none.
    It rises with every id of Lance's, because clients assert it to learn whether others added columns."""
    highest = max(schema.highest_field_id for schema in schemas)
    by_lance = max([highest % ITEM_ID_STEP, *(version.max_field_id + 1 for version in info.versions)])
    return by_lance + highest // ITEM_ID_STEP * ITEM_ID_STEP


def _properties(info: TableInfo, current: Translated) -> dict[str, str]:
    kept = (name for name in info.properties if not name.startswith(RESERVED_PREFIX))
    properties = {name: info.properties[name] for name in kept}
    properties[TABLE_TYPE] = "lance"
    properties[MANAGED_BY] = "impl" if info.managed_by == "impl" else "storage"
    properties |= safe_properties(info.location)
    if current.omitted:
        properties[OMITTED_COLUMNS] = json.dumps(current.omitted, ensure_ascii=False)
    if current.converted:
        properties[CONVERTED_COLUMNS] = json.dumps(current.converted, ensure_ascii=False)
    mirrored = newest_mirrored(info)
    if mirrored is not None and info.latest is not None:
        properties |= {LATEST_VERSION: str(info.latest.version), MIRRORED_VERSION: str(mirrored.version)}
    return dict(sorted(properties.items()))
