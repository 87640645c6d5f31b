"""Tables: list, create, register, rename and drop."""

from dataclasses import replace

from pyiceberg.schema import Schema
from pyiceberg.types import StringType
from starlette.responses import Response

from irc_bridge.catalog.models import CREATED_SCHEMA_ID, TABLE_TYPE, IcebergView, NewTable
from irc_bridge.catalog.ports import CanCreateTables, CanDropTables, CanRegisterTables, CanRenameTables
from irc_bridge.errors import InvalidInput, TableNotFound
from irc_bridge.http.replies import SlottedReply
from irc_bridge.iceberg_rest import properties, replies
from irc_bridge.iceberg_rest.calls import IcebergCall, Identifier
from irc_bridge.iceberg_rest.loads import NO_CONFIG, create_result, load_result
from irc_bridge.iceberg_rest.requests import (
    CreateTableRequest,
    RegisterTableRequest,
    RenameTableRequest,
    ReportMetricsRequest,
    TableIdentifier,
)
from irc_bridge.iceberg_rest.staging import new_table, staged_metadata
from irc_bridge.translation.schema import with_usable_ids


def list_tables(call: IcebergCall) -> Response:
    page = call.catalog.list_tables(call.to_catalog(call.namespace), call.page)
    entries = [{"namespace": list(call.namespace), "name": name} for name in page.items]
    return replies.page("identifiers", entries, page)


def create_table(call: IcebergCall) -> Response:
    request = call.read(CreateTableRequest)
    properties.refuse_layout("partition spec", (request.partition_spec or {}).get("fields"))
    properties.refuse_layout("sort order", (request.write_order or {}).get("fields"))
    kept = call.warehouse.properties_of_new(properties.kept(request.properties))
    table = call.identifier(call.namespace, request.name)
    schema = with_usable_ids(request.table_schema)
    new = NewTable(kept, request.location) if _is_dummy(request) else new_table(kept, request.location, schema)
    if request.stage_create:
        return _staged(call, table, new, schema)
    schema_id = _answered_id(schema, call.warehouse.view)
    if new.schema is not None:
        new = replace(new, properties={**new.properties, CREATED_SCHEMA_ID: str(schema_id)})
    info = call.able(CanCreateTables).create_table(table.in_catalog, new)
    if new.schema is None:
        return load_result(call, table, info)
    return create_result(call, table, info, schema_id)


def _answered_id(schema: Schema, view: IcebergView) -> int:
    """The id of the schema in the answer to the create request. Later schemas have the ids above 1, so the
    client's own id is kept only if it is 0, the id that clients give to a first schema."""
    return 0 if schema.schema_id == 0 and view.schema_ids == "first-version" else 1


def _staged(call: IcebergCall, table: Identifier, new: NewTable, schema: Schema) -> Response:
    metadata = staged_metadata(call, table, new, schema).model_dump_json().encode()
    return SlottedReply({"metadata": metadata}, NO_CONFIG)


def drop_table(call: IcebergCall) -> Response:
    purge = call.http.query.get("purgeRequested", "false").lower()
    if purge not in ("true", "false"):
        raise InvalidInput(f"purgeRequested must be true or false: {purge}")
    catalog, table = call.able(CanDropTables), call.table.in_catalog
    if purge == "true":
        catalog.purge_table(table, call.warehouse.purge_after_ms)
        call.http.warehouses.purge_made.set()
    else:
        catalog.deregister_table(table)
    return replies.no_content()


def register_table(call: IcebergCall) -> Response:
    request = call.read(RegisterTableRequest)
    if request.overwrite:
        raise InvalidInput("overwrite is not supported: drop the table first, without purge, then register it")
    table = call.identifier(call.namespace, request.name)
    info = call.able(CanRegisterTables).register_table(table.in_catalog, request.metadata_location)
    return load_result(call, table, info)


def rename_table(call: IcebergCall) -> Response:
    request = call.read(RenameTableRequest)
    source, destination = _identified(call, request.source), _identified(call, request.destination)
    call.able(CanRenameTables).rename_table(source.in_catalog, destination.in_catalog)
    return replies.no_content()


def report_metrics(call: IcebergCall) -> Response:
    call.read(ReportMetricsRequest)
    if not call.catalog.table_exists(call.table.in_catalog):
        raise TableNotFound(f"Table does not exist: {call.table}")
    return replies.no_content()


def _identified(call: IcebergCall, identifier: TableIdentifier) -> Identifier:
    return call.identifier(identifier.namespace, identifier.name)


def _is_dummy(request: CreateTableRequest) -> bool:
    """Whether the request declares a Lance table: the published Lance client for IRC creates a table with one
    column named dummy then."""
    return TABLE_TYPE in request.properties and _is_dummy_schema(request.table_schema)


def _is_dummy_schema(schema: Schema) -> bool:
    if len(schema.fields) != 1:
        return False
    field = schema.fields[0]
    return field.name == "dummy" and isinstance(field.field_type, StringType) and not field.required
