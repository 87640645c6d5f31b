"""/v1/config of a warehouse that another server keeps: the configuration of that server, made right for clients of
the bridge."""

from typing import Any
from urllib.parse import urlencode

from anyio import to_thread
from starlette.responses import Response

from irc_bridge.catalog.forward import CanForward, ForwardRequest
from irc_bridge.catalog.warehouses import Warehouse
from irc_bridge.errors import BadGateway
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import IcebergCall
from irc_bridge.iceberg_rest.forward.detect import content_of
from irc_bridge.iceberg_rest.forward.responses import client_response
from irc_bridge.iceberg_rest.forward.strict_json import Json

_ADDRESS = ("uri", "prefix", "warehouse")
"""Properties that would lead clients past the bridge."""
_IDENTITY = ("token", "credential", "oauth2-server-uri", "scope", "audience", "resource", "token-exchange-enabled")
_IDENTITY_FAMILIES = ("rest.auth.", "rest.sigv4", "rest.signing-", "auth.")
_TABLES = ("defaults", "overrides")
_LARGEST = 8 * 1024 * 1024
_READS = ("GET ", "HEAD ")
_CHANGES_NOTHING = ("/metrics", "/plan", "/tasks", "/plan/{plan-id}")
_NOT_FORWARDED = (b"host", b"accept-encoding", b"if-none-match")


async def get_config(warehouse: Warehouse, behind: CanForward, call: IcebergCall) -> Response:
    query = {name: value for name, value in call.http.query.multi_items() if name != "warehouse"}
    if behind.warehouse is not None:
        query["warehouse"] = behind.warehouse
    headers = [header for header in call.http.headers.raw if header[0] not in _NOT_FORWARDED]
    request = ForwardRequest("GET", b"/v1/config", urlencode(query).encode(), headers)
    response = await behind.upstream.send(request, whole=True)
    if response.status != 200:
        return client_response(response)
    content = await to_thread.run_sync(content_of, response, _LARGEST)
    if not _is_configuration(content):
        raise BadGateway(
            f"The server behind warehouse {warehouse.name} did not answer /v1/config with a configuration: is it "
            f"an Iceberg REST catalog?"
        )
    return replies.ok(_configuration(content, warehouse, behind.forwards_identity))


def fields_beside_metadata(result: Json, forwards_identity: bool) -> Json:
    """The fields of a LoadTableResult that may hold credentials, for the slot of another LoadTableResult."""
    fields = {"config": _kept(result.get("config"), forwards_identity)}
    if result.get("storage-credentials"):
        fields["storage-credentials"] = result["storage-credentials"]
    return fields


def _is_configuration(content: object) -> bool:
    if not isinstance(content, dict) or not content:
        return False
    tables = [content.get(table) or {} for table in _TABLES]
    endpoints = content.get("endpoints") or []
    return all(isinstance(table, dict) for table in tables) and (
        isinstance(endpoints, list) and all(isinstance(endpoint, str) for endpoint in endpoints)
    )


def _configuration(content: dict[str, Any], warehouse: Warehouse, forwards_identity: bool) -> dict[str, Any]:
    configuration: dict[str, Any] = {key: value for key, value in content.items() if value is not None}
    for table in _TABLES:
        configuration[table] = {**_kept(content.get(table), forwards_identity), "prefix": warehouse.name}
    if "endpoints" in configuration and warehouse.read_only:
        configuration["endpoints"] = [endpoint for endpoint in configuration["endpoints"] if _is_read(endpoint)]
    return configuration


def _kept(config: Json | None, forwards_identity: bool) -> dict[str, Any]:
    return {name: value for name, value in (config or {}).items() if _is_kept(name, forwards_identity)}


def _is_kept(name: str, forwards_identity: bool) -> bool:
    if name in _ADDRESS:
        return False
    return forwards_identity or not (name in _IDENTITY or name.startswith(_IDENTITY_FAMILIES))


def _is_read(endpoint: str) -> bool:
    return endpoint.startswith(_READS) or endpoint.endswith(_CHANGES_NOTHING)
