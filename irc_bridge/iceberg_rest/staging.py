"""Creation of a table in two steps: the answer to stage-create is the metadata of a table that does not exist yet,
and the commit with assert-create creates the table."""

import time
from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSnapshotUpdate,
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
from irc_bridge.errors import InvalidInput, TableAlreadyExists
from irc_bridge.iceberg_rest import properties
from irc_bridge.iceberg_rest.calls import IcebergCall, Identifier
from irc_bridge.translation.metadata import table_metadata
from irc_bridge.translation.schema import lance_field_ids, to_arrow, with_usable_ids

IMPLIED = (SetCurrentSchemaUpdate, SetDefaultSpecUpdate, SetDefaultSortOrderUpdate)


def staged_metadata(call: IcebergCall, table: Identifier, new: NewTable, schema: Schema) -> TableMetadata:
    """The metadata that the table would have. The server keeps nothing: the client sends the metadata back to
    create the table."""
    info = TableInfo(
        location=call.able(CanCreateTables).place_table(table.in_catalog, new.location),
        properties={**new.properties, TABLE_UUID: str(uuid4())},
        versions=(),
        tags={},
        updated_ms=time.time_ns() // 1_000_000,
        token=None,
    )
    maps = lance_field_ids(schema).count(None)
    own = {
        "schemas": [schema],
        "current_schema_id": schema.schema_id,
        # Lance gives each map one more id, above all other ids
        "last_column_id": schema.highest_field_id + maps,
    }
    return table_metadata(info, call.warehouse.view).model_copy(update=own)


def new_table(properties: Mapping[str, str], location: str | None, schema: Schema) -> NewTable:
    """The table that a client creates with a schema. The table keeps the schema's field ids."""
    return NewTable(properties, location, to_arrow(schema), field_ids=lance_field_ids(schema))


def create_staged(call: IcebergCall, table: Identifier, updates: tuple[TableUpdate, ...]) -> TableInfo:
    try:
        new = _new_table(updates)
    except InvalidInput:
        # a requirement that fails is the first error, here assert-create
        if call.catalog.table_exists(table.in_catalog):
            raise TableAlreadyExists(f"Requirement failed: table already exists: {table}") from None
        raise
    new = replace(new, properties=call.warehouse.properties_of_new(new.properties))
    return call.able(CanCreateTables).create_table(table.in_catalog, new)


def _new_table(updates: tuple[TableUpdate, ...]) -> NewTable:
    kept: dict[str, str] = {}
    uuid: dict[str, str] = {}
    location, schema = None, None
    for update in updates:
        match update:
            case AssignUUIDUpdate():
                uuid = {TABLE_UUID: str(update.uuid)}
            case AddSchemaUpdate():
                schema = with_usable_ids(update.schema_)
            case SetLocationUpdate():
                location = update.location
            case SetPropertiesUpdate():
                kept |= properties.kept(update.updates)
            case UpgradeFormatVersionUpdate():
                properties.check_format_version(str(update.format_version))
            case AddPartitionSpecUpdate():
                properties.refuse_layout("partition spec", update.spec.fields)
            case AddSortOrderUpdate():
                properties.refuse_layout("sort order", update.sort_order.fields)
            case AddSnapshotUpdate():
                raise InvalidInput(
                    "add-snapshot: Iceberg engines cannot write rows to a Lance table yet. Create the table alone "
                    "and write its rows with Lance"
                )
            case _ if not isinstance(update, IMPLIED):
                raise InvalidInput(f"A Lance table cannot be created with the update {update.action}")
    if schema is None:
        raise InvalidInput("updates: a commit that creates a table must add a schema")
    return new_table({**kept, **uuid}, location, schema)
