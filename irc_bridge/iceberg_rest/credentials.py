"""Storage options for clients, under the names of Lance and of Iceberg's file readers."""

from collections.abc import Mapping

from starlette.responses import Response

from irc_bridge.catalog.models import History, TableInfo
from irc_bridge.catalog.ports import CanVendCredentials
from irc_bridge.errors import TableNotFound
from irc_bridge.http.replies import NO_STORE
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import IcebergCall, Identifier
from irc_bridge.translation.storage_options import iceberg_options


def vended(call: IcebergCall, table: Identifier) -> Mapping[str, str]:
    """The storage options of the table if the request delegates access and the warehouse vends credentials, empty
    otherwise."""
    delegation = call.http.headers.get("x-iceberg-access-delegation", "")
    if not call.warehouse.vend_credentials or "vended-credentials" not in delegation:
        return {}
    return _options(call, table)


def load_credentials(call: IcebergCall) -> Response:
    identifier = call.table
    if not call.catalog.table_exists(identifier.in_catalog):
        raise TableNotFound(f"Table does not exist: {identifier}")
    if not call.warehouse.vend_credentials:
        return replies.ok({"storage-credentials": []})
    info = call.catalog.load_table(identifier.in_catalog, History.HEADS)
    assert isinstance(info, TableInfo)
    content = {"storage-credentials": [{"prefix": info.location, "config": _options(call, identifier)}]}
    return replies.ok(content, NO_STORE)


def _options(call: IcebergCall, table: Identifier) -> Mapping[str, str]:
    if not isinstance(call.catalog, CanVendCredentials):
        return {}
    options = call.catalog.storage_options(table.in_catalog)
    return {**options, **iceberg_options(options)}
