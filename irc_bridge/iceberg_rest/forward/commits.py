"""Commits to tables that another server keeps. The commit to an Iceberg table goes there unchanged. Whether the
table is one tells the uuid that the commit asserts, or one request more.

A commit that moves an Iceberg table, or makes a Lance table of it, is looked at more closely. The bridge judges
the location of a Lance table, and no client may bring a table to another location: neither before it becomes a
Lance table, nor in the same commit, nor between the look at the table and the commit.
"""

from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from irc_bridge.catalog.forward import CanForward
from irc_bridge.catalog.models import Levels
from irc_bridge.errors import BadGateway, InvalidInput
from irc_bridge.http.calls import run
from irc_bridge.iceberg_rest.commits import commit_mixed_transaction
from irc_bridge.iceberg_rest.forward.request import Forwarding, TableLook
from irc_bridge.iceberg_rest.forward.responses import client_response
from irc_bridge.iceberg_rest.forward.strict_json import (
    Json,
    asserted_uuid,
    commit_creates,
    locations_in,
    marks_lance,
)


async def update_table(forwarding: Forwarding) -> Response:
    change = await forwarding.json_object()
    if commit_creates(change):
        if marks_lance(change):
            return await forwarding.handle(await forwarding.levels(forwarding.request.path))
        return await forwarding.forward()
    moves = _moves(change)
    if _is_iceberg(forwarding, change) and not moves:
        return await forwarding.forward()
    look = await forwarding.look_at_table(forwarding.request.path, with_metadata=moves)
    if look.lance is not None:
        return await forwarding.handle(await forwarding.levels(look.path), look.lance)
    if look.kind_is_unknown or (moves and look.response.status == 404):
        return client_response(look.response)
    if moves:
        return await forwarding.forward_changed(_held_in_place(change, look, forwarding.target.behind))
    return await forwarding.forward()


async def forward_unless_lance(forwarding: Forwarding, table: bytes) -> Response:
    """For an operation that the bridge does for Lance tables and the server behind for all other tables."""
    look = await forwarding.look_at_table(table)
    if look.lance is not None:
        return await forwarding.handle(await forwarding.levels(look.path), look.lance)
    return client_response(look.response) if look.kind_is_unknown else await forwarding.forward()


async def commit_transaction(forwarding: Forwarding) -> Response:
    content = await forwarding.json_object()
    table_changes = content.get("table-changes")
    changes: list[Any] = table_changes if isinstance(table_changes, list) else []
    tables = [_table_of(number, change) for number, change in enumerate(changes)]
    if len(changes) == 1 and commit_creates(changes[0]) and marks_lance(changes[0]):
        return await forwarding.handle()
    lance: dict[int, Json] = {}
    others: list[Json] = []
    for number, change in enumerate(changes):
        look = await _look_at(forwarding, tables[number], change)
        if look is not None and look.lance is not None:
            lance[number] = look.lance
        elif look is None:
            others.append(change)
        elif look.kind_is_unknown or (_moves(change) and look.response.status == 404):
            return client_response(look.response)
        else:
            moves = _moves(change)
            others.append(_held_in_place(change, look, forwarding.target.behind) if moves else change)
    if lance:
        if len(changes) == 1:
            forwarding.set_table(tables[0], lance[0])
        return await _commit_mixed(forwarding, [changes[number] for number in lance], others)
    if others == changes:
        return await forwarding.forward()
    return await forwarding.forward_changed({**content, "table-changes": others})


async def _commit_mixed(forwarding: Forwarding, lance: list[Json], others: list[Json]) -> Response:
    call = forwarding.call
    return await run(partial(commit_mixed_transaction, call, lance, others), call.http, changes=True)


async def _look_at(forwarding: Forwarding, table: Levels, change: Json) -> TableLook | None:
    """None where the change itself tells that the table is no Lance table."""
    if commit_creates(change):
        if marks_lance(change):
            raise InvalidInput(
                "table-changes: a Lance table is created by a commit of its own, with no other in it"
            )
        return None
    if _is_iceberg(forwarding, change) and not _moves(change):
        return None
    return await forwarding.look_at_table(await _path(forwarding, table), with_metadata=_moves(change))


async def _path(forwarding: Forwarding, table: Levels) -> bytes:
    upstream, authorization = forwarding.target.behind.upstream, forwarding.authorization
    prefix, separator = await upstream.prefix(authorization), await upstream.separator(authorization)
    namespace = quote(separator.join(table[:-1]), safe="")
    return b"/v1" + prefix + f"/namespaces/{namespace}/tables/{quote(table[-1], safe='')}".encode()


def _table_of(number: int, change: object) -> Levels:
    """InvalidInput for an identifier in which another server could read another table."""
    identifier = change.get("identifier") if isinstance(change, dict) else None
    if isinstance(identifier, dict) and isinstance(identifier.get("namespace"), list):
        levels = [*identifier["namespace"], identifier.get("name")]
        if len(levels) > 1 and all(isinstance(level, str) and level for level in levels):
            return tuple(levels)
    raise InvalidInput(f"table-changes.{number}.identifier: an object with namespace, a list of names, and name")


def _moves(change: Json) -> bool:
    """Whether a commit sets a location, or makes its table a Lance table."""
    return bool(locations_in(change)) or marks_lance(change)


def _held_in_place(change: Json, look: TableLook, behind: CanForward) -> Json:
    """The commit to an Iceberg table with two additions that keep others from moving the table meanwhile: its uuid
    as a requirement, and, for a table that becomes a Lance table, its location as a property that only the bridge
    can set."""
    metadata = look.metadata if isinstance(look.metadata, dict) else {}
    uuid, location = metadata.get("table-uuid"), [metadata.get("location"), *locations_in(change)][-1]
    if not isinstance(uuid, str) or not isinstance(location, str):
        raise BadGateway(
            "The server behind did not say which uuid and location the table has: nothing was changed"
        )
    requirements, updates = _list_of(change, "requirements"), _list_of(change, "updates")
    if marks_lance(change):
        properties = behind.properties_of_lance(location)
        updates = [*updates, {"action": "set-properties", "updates": dict(properties)}]
    return {
        **change,
        "requirements": [{"type": "assert-table-uuid", "uuid": uuid}, *requirements],
        "updates": updates,
    }


def _list_of(change: Json, field: str) -> list[Any]:
    values = change.get(field)
    if values is not None and not isinstance(values, list):
        raise InvalidInput(f"{field} must be a list")
    return values or []


def _is_iceberg(forwarding: Forwarding, change: Json) -> bool:
    return forwarding.known_tables.is_iceberg(forwarding.target.warehouse.name, asserted_uuid(change))
