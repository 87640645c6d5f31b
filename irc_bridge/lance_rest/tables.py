"""Tables: list, declare, register, rename and drop. Rows and versions are other files."""

from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog import properties
from irc_bridge.catalog.models import Commit, History, Levels, NewTable, Page, PageRequest, TableInfo
from irc_bridge.catalog.ports import (
    CanCommit,
    CanCreateTables,
    CanDropTables,
    CanKeepVersions,
    CanRegisterTables,
    CanRenameTables,
)
from irc_bridge.errors import BrokenTable, InvalidInput, TableNotFound, Unsupported
from irc_bridge.lance_rest import replies
from irc_bridge.lance_rest.calls import LanceCall
from irc_bridge.lance_rest.describing import is_managed, properties_of, vended
from irc_bridge.lance_rest.namespaces import all_tables
from irc_bridge.lance_rest.requests import (
    DeclareTableRequest,
    LanceRequest,
    RegisterTableRequest,
    RenameTableRequest,
)


def list_tables(call: LanceCall) -> Response:
    page = call.page
    if call.flag("include_declared") is not False:
        return replies.page("tables", call.catalog.list_tables(call.id, page))
    tables = (table for table in call.catalog.list_tables(call.id, PageRequest(page.after)).items)
    made = (table for table in tables if _has_versions(call, (*call.id, table)))
    return replies.page("tables", _page(list(islice(made, _one_more(page.limit))), page.limit))


def list_all_tables(call: LanceCall) -> Response:
    after = names.levels_of(call.after, call.delimiter)
    tables = all_tables(call.catalog, (), after)
    if call.flag("include_declared") is False:
        tables = (table for table in tables if _has_versions(call, table))
    identifiers = [names.identifier(table, call.delimiter) for table in islice(tables, _one_more(call.limit))]
    return replies.page("tables", _page(identifiers, call.limit))


def declare_table(call: LanceCall) -> Response:
    request = call.read(DeclareTableRequest)
    new = call.warehouse.properties_of_new(properties.kept(request.properties or {}))
    info = call.able(CanCreateTables).create_table(call.table, NewTable(new, request.location))
    return replies.ok(
        {
            "location": info.location,
            "properties": properties_of(info),
            "managed_versioning": is_managed(info),
            "storage_options": vended(call, call.table, request.vend_credentials),
        }
    )


def register_table(call: LanceCall) -> Response:
    request = call.read(RegisterTableRequest)
    mode = request.mode or "create"
    if mode == "overwrite":
        raise Unsupported("mode Overwrite is not supported: deregister the table first, then register it")
    if mode != "create":
        raise InvalidInput(f"mode must be Create or Overwrite: {mode}")
    new = properties.kept(request.properties or {})
    info = call.able(CanRegisterTables).register_table(call.table, request.location)
    if new.items() - info.properties.items():
        call.able(CanCommit).commit(call.table, lambda _: Commit(set_properties=new))
    return replies.ok({"location": info.location, "properties": {**properties_of(info), **new}})


def drop_table(call: LanceCall) -> Response:
    return _removed(call, call.able(CanDropTables).drop_table)


def deregister_table(call: LanceCall) -> Response:
    return _removed(call, call.able(CanDropTables).deregister_table)


def rename_table(call: LanceCall) -> Response:
    request = call.read(RenameTableRequest)
    namespace = call.table[:-1] if request.new_namespace_id is None else request.new_namespace_id
    call.able(CanRenameTables).rename_table(call.table, (*namespace, request.new_table_name))
    return replies.ok({})


def _removed(call: LanceCall, remove: Callable[[Levels], None]) -> Response:
    call.read(LanceRequest)
    info: object = None
    # a table that is broken or half removed can be dropped too
    with suppress(BrokenTable, TableNotFound):
        info = call.catalog.load_table(call.table, History.HEADS)
    remove(call.table)
    if not isinstance(info, TableInfo):
        return replies.ok({"id": list(call.table)})
    return replies.ok({"id": list(call.table), "location": info.location, "properties": properties_of(info)})


def _has_versions(call: LanceCall, table: Levels) -> bool:
    with suppress(TableNotFound):
        return bool(call.able(CanKeepVersions).list_table_versions(table, limit=1).items)
    return False


def _one_more(limit: int | None) -> int | None:
    return None if limit is None else limit + 1


def _page(items: list[str], limit: int | None) -> Page[str]:
    return Page(tuple(items[:limit]), limit is not None and len(items) > limit)
