"""/v1/config of a warehouse that another server keeps: what that server says, as it is true of the bridge."""

from typing import Any
from urllib.parse import urlencode

from anyio import to_thread
from starlette.responses import Response

from irc_bridge.catalog.forward import CanForward, ForwardRequest
from irc_bridge.catalog.warehouses import Warehouse
from irc_bridge.errors import BadGateway
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import Call
from irc_bridge.iceberg_rest.sent_on import as_it_is
from irc_bridge.iceberg_rest.table_answers import Json, content_of

_WHERE = ("uri", "prefix", "warehouse")
"""They would lead clients past the bridge."""
_WHO = ("token", "credential", "oauth2-server-uri", "scope", "audience", "resource", "token-exchange-enabled")
_WHO_FAMILIES = ("rest.auth.", "rest.sigv4", "rest.signing-", "auth.")
_TABLES = ("defaults", "overrides")
_LARGEST = 8 * 1024 * 1024
_READS = ("GET ", "HEAD ")
_CHANGES_NOTHING = ("/metrics", "/plan", "/tasks", "/plan/{plan-id}")


async def get_config(warehouse: Warehouse, behind: CanForward, call: Call) -> Response:
    query = {name: value for name, value in call.query.multi_items() if name != "warehouse"}
    if behind.warehouse is not None:
        query["warehouse"] = behind.warehouse
    headers = [each for each in call.headers.raw if each[0] not in (b"host", b"accept-encoding", b"if-none-match")]
    asked = ForwardRequest("GET", b"/v1/config", urlencode(query).encode(), headers)
    answered = await behind.upstream.send(asked, whole=True)
    if answered.status != 200:
        return as_it_is(answered)
    content = await to_thread.run_sync(content_of, answered, _LARGEST)
    if not _is_configuration(content):
        raise BadGateway(
            f"The server behind warehouse {warehouse.name} did not answer /v1/config with a configuration: is it "
            f"an Iceberg REST catalog?"
        )
    return replies.ok(_true_here(content, warehouse, behind.forwards_identity))


def _is_configuration(content: object) -> bool:
    if not isinstance(content, dict) or not content:
        return False
    tables = [content.get(which) or {} for which in _TABLES]
    endpoints = content.get("endpoints") or []
    return all(isinstance(each, dict) for each in tables) and (
        isinstance(endpoints, list) and all(isinstance(each, str) for each in endpoints)
    )


def _true_here(said: dict[str, Any], warehouse: Warehouse, forwards_identity: bool) -> dict[str, Any]:
    true: dict[str, Any] = {key: value for key, value in said.items() if value is not None}
    for which in _TABLES:
        kept = {
            name: value for name, value in (said.get(which) or {}).items() if _is_kept(name, forwards_identity)
        }
        true[which] = {**kept, "prefix": warehouse.name}
    if "endpoints" in true and warehouse.read_only:
        true["endpoints"] = [each for each in true["endpoints"] if _reads(each)]
    return true


def _is_kept(name: str, forwards_identity: bool) -> bool:
    if name in _WHERE:
        return False
    return forwards_identity or not (name in _WHO or name.startswith(_WHO_FAMILIES))


def _reads(endpoint: str) -> bool:
    return endpoint.startswith(_READS) or endpoint.endswith(_CHANGES_NOTHING)


def fields_beside_metadata(said: Json, forwards_identity: bool) -> Json:
    """The fields of a LoadTableResult that may hold credentials, for the slot of another LoadTableResult."""
    config = {
        name: value for name, value in (said.get("config") or {}).items() if _is_kept(name, forwards_identity)
    }
    more = {"storage-credentials": said["storage-credentials"]} if said.get("storage-credentials") else {}
    return {"config": config, **more}
