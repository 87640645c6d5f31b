"""Create in two steps: stage-create answers with what would be, the assert-create commit makes it."""

import time
from dataclasses import replace
from uuid import uuid4

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssignUUIDUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)

from irc_bridge.catalog.models import TABLE_UUID, NewTable, TableInfo
from irc_bridge.catalog.ports import CanCreateTables
from irc_bridge.errors import InvalidInput
from irc_bridge.iceberg_rest import properties
from irc_bridge.iceberg_rest.calls import Call, Identifier
from irc_bridge.translation.metadata import table_metadata
from irc_bridge.translation.schema import to_arrow

SAID_BY_OTHERS = (SetCurrentSchemaUpdate, SetDefaultSpecUpdate, SetDefaultSortOrderUpdate)


def staged_metadata(call: Call, table: Identifier, new: NewTable, schema: Schema) -> TableMetadata:
    """The metadata that a table would have. Nothing is kept: the client sends it back to make the table."""
    info = TableInfo(
        location=call.able(CanCreateTables).place_table(table.in_catalog, new.location),
        properties={**new.properties, TABLE_UUID: str(uuid4())},
        versions=(),
        tags={},
        updated_ms=time.time_ns() // 1_000_000,
        token=None,
    )
    current = Schema(*schema.fields, schema_id=1, identifier_field_ids=schema.identifier_field_ids)
    shown = {"schemas": [current], "current_schema_id": 1, "last_column_id": current.highest_field_id}
    return table_metadata(info, call.warehouse.mirror_lag).model_copy(update=shown)


def create_staged(call: Call, table: Identifier, updates: tuple[TableUpdate, ...]) -> TableInfo:
    new = _new_table(updates)
    new = replace(new, properties=call.warehouse.properties_of_new(new.properties))
    return call.able(CanCreateTables).create_table(table.in_catalog, new)


def _new_table(updates: tuple[TableUpdate, ...]) -> NewTable:
    wanted: dict[str, str] = {}
    uuid: dict[str, str] = {}
    location, schema = None, None
    for update in updates:
        match update:
            case AssignUUIDUpdate():
                uuid = {TABLE_UUID: str(update.uuid)}
            case AddSchemaUpdate():
                schema = to_arrow(update.schema_)
            case SetLocationUpdate():
                location = update.location
            case SetPropertiesUpdate():
                wanted |= properties.kept(update.updates)
            case UpgradeFormatVersionUpdate():
                properties.check_format_version(str(update.format_version))
            case AddPartitionSpecUpdate():
                properties.refuse_layout("partition spec", update.spec.fields)
            case AddSortOrderUpdate():
                properties.refuse_layout("sort order", update.sort_order.fields)
            case _ if not isinstance(update, SAID_BY_OTHERS):
                raise InvalidInput(f"A Lance table cannot be created with the update {update.action}")
    if schema is None:
        raise InvalidInput("updates: a commit that creates a table must add a schema")
    return NewTable({**wanted, **uuid}, location, schema)
