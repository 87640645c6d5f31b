"""/v1/config of a warehouse that another server keeps: what that server says, as it is true of the bridge."""

import json
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from irc_bridge.catalog.passing import CanPass, Passed
from irc_bridge.catalog.warehouses import Warehouse
from irc_bridge.errors import BadGateway
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import Call
from irc_bridge.iceberg_rest.lance_or_not import Json, parsed, plain
from irc_bridge.iceberg_rest.sent_on import as_it_is

_WHERE = ("uri", "prefix", "warehouse")
"""They would lead clients past the bridge."""
_WHO = ("token", "credential", "oauth2-server-uri", "scope", "audience", "resource", "token-exchange-enabled")
_WHO_FAMILIES = ("rest.auth.", "rest.sigv4", "rest.signing-", "auth.")
_READS = ("GET ", "HEAD ")
_CHANGES_NOTHING = ("/metrics", "/plan", "/tasks", "/plan/{plan-id}")


async def get_config(warehouse: Warehouse, behind: CanPass, call: Call) -> Response:
    query = {name: value for name, value in call.query.multi_items() if name != "warehouse"}
    if behind.warehouse is not None:
        query["warehouse"] = behind.warehouse
    headers = [each for each in call.headers.raw if each[0] not in (b"host", b"accept-encoding", b"if-none-match")]
    asked = Passed("GET", b"/v1/config", urlencode(query).encode(), headers)
    answered = await behind.upstream.send(asked, whole=True)
    if answered.status != 200:
        return as_it_is(answered)
    said = parsed(plain(answered, answered.content))
    if not said:
        raise BadGateway(f"The server behind warehouse {warehouse.name} did not answer /v1/config with JSON")
    return replies.ok(_true_here(dict(said), warehouse, behind.passes_identity))


def _true_here(said: dict[str, Any], warehouse: Warehouse, passes_identity: bool) -> dict[str, Any]:
    for which in ("defaults", "overrides"):
        kept = {name: value for name, value in (said.get(which) or {}).items() if _is_kept(name, passes_identity)}
        said[which] = {**kept, "prefix": warehouse.name}
    if said.get("endpoints") is not None and warehouse.read_only:
        said["endpoints"] = [each for each in said["endpoints"] if _reads(each)]
    return said


def _is_kept(name: str, passes_identity: bool) -> bool:
    if name in _WHERE:
        return False
    return passes_identity or not (name in _WHO or name.startswith(_WHO_FAMILIES))


def _reads(endpoint: str) -> bool:
    return endpoint.startswith(_READS) or endpoint.endswith(_CHANGES_NOTHING)


def vended(said: Json, passes_identity: bool) -> bytes:
    """What a LoadTableResult says beside the metadata, credentials above all, as the end of another one."""
    config = {name: value for name, value in (said.get("config") or {}).items() if _is_kept(name, passes_identity)}
    more = {"storage-credentials": said["storage-credentials"]} if said.get("storage-credentials") else {}
    return json.dumps({"config": config, **more}, separators=(",", ":")).encode()[1:]
