"""Storage options for clients that ask for them, under the names that Iceberg's file readers know."""

from collections.abc import Mapping

from starlette.responses import Response

from irc_bridge.catalog.models import History, TableInfo
from irc_bridge.catalog.ports import CanVendCredentials
from irc_bridge.errors import TableNotFound
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import Call, Identifier

ICEBERG_NAMES = {
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
    "endpoint": "s3.endpoint",
    "region": "client.region",
}


def vended(call: Call, table: Identifier) -> Mapping[str, str]:
    """The options of the table's storage if the request delegates access and the warehouse vends, else none."""
    delegation = call.headers.get("x-iceberg-access-delegation", "")
    if not call.warehouse.vend_credentials or "vended-credentials" not in delegation:
        return {}
    return _options(call, table)


def load_credentials(call: Call) -> Response:
    identifier = call.table
    if not call.catalog.table_exists(identifier.in_catalog):
        raise TableNotFound(f"Table does not exist: {identifier}")
    if not call.warehouse.vend_credentials:
        return replies.ok({"storage-credentials": []})
    info = call.catalog.load_table(identifier.in_catalog, History.REFS)
    assert isinstance(info, TableInfo)
    content = {"storage-credentials": [{"prefix": info.location, "config": _options(call, identifier)}]}
    response = replies.ok(content)
    response.headers["cache-control"] = "no-store, private"
    return response


def _options(call: Call, table: Identifier) -> Mapping[str, str]:
    if not isinstance(call.catalog, CanVendCredentials):
        return {}
    options = call.catalog.storage_options(table.in_catalog)
    return {**options, **_iceberg_options(options)}


def _iceberg_options(options: Mapping[str, str]) -> dict[str, str]:
    named = {}
    for key, value in options.items():
        iceberg = ICEBERG_NAMES.get(key.lower().removeprefix("aws_"))
        if iceberg:
            named[iceberg] = value
    if "s3.endpoint" in named and options.get("aws_virtual_hosted_style_request", "false") != "true":
        named["s3.path-style-access"] = "true"
    return named
