"""Commits where another server keeps the tables. Those of Iceberg tables go there as they came; what they change
tells that they are such, or one request more does.

A commit that moves an Iceberg table, or makes it a Lance table, is looked at more closely. The bridge judges the
place of a Lance table, and no client may bring a table to another one: neither before it becomes a Lance table,
nor in the same commit, nor between the look at it and the commit.
"""

from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from irc_bridge.catalog.forward import CanForward
from irc_bridge.catalog.models import Levels
from irc_bridge.errors import BadGateway, InvalidInput
from irc_bridge.http import calls
from irc_bridge.iceberg_rest.calls import Call
from irc_bridge.iceberg_rest.commits import commit_mixed_transaction
from irc_bridge.iceberg_rest.passage import Look, Passage
from irc_bridge.iceberg_rest.sent_on import as_it_is
from irc_bridge.iceberg_rest.strict_bodies import Json, asserted_uuid, commit_creates, locations_in, marks_lance


async def update_table(passage: Passage) -> Response:
    change = await passage.change()
    if commit_creates(change):
        if marks_lance(change):
            return await passage.handled(await passage.levels(passage.asked.path))
        return await passage.pass_on()
    is_special = _moves(change)
    if _is_iceberg(passage, change) and not is_special:
        return await passage.pass_on()
    look = await passage.look(passage.asked.path, with_metadata=is_special)
    if look.lance is not None:
        return await passage.handled(await passage.levels(look.path), look.lance)
    if look.leaves_open or (is_special and look.answered.status == 404):
        return as_it_is(look.answered)
    if is_special:
        return await passage.pass_on_changed(_held_in_place(change, look, passage.target.behind))
    return await passage.pass_on()


async def pass_unless_lance(passage: Passage, table: bytes) -> Response:
    """For what is done in one way to a Lance table and in another to any other."""
    look = await passage.look(table)
    if look.lance is not None:
        return await passage.handled(await passage.levels(look.path), look.lance)
    return as_it_is(look.answered) if look.leaves_open else await passage.pass_on()


async def commit_transaction(passage: Passage) -> Response:
    content = await passage.change()
    named = content.get("table-changes")
    changes: list[Any] = named if isinstance(named, list) else []
    names = [_table_of(number, change) for number, change in enumerate(changes)]
    if len(changes) == 1 and commit_creates(changes[0]) and marks_lance(changes[0]):
        return await passage.handled()
    lance: dict[int, Json] = {}
    others: list[Json] = []
    for number, change in enumerate(changes):
        look = await _look_at(passage, names[number], change)
        if look is not None and look.lance is not None:
            lance[number] = look.lance
            continue
        if look is None:
            others.append(change)
        elif look.leaves_open or (_moves(change) and look.answered.status == 404):
            return as_it_is(look.answered)
        else:
            others.append(_held_in_place(change, look, passage.target.behind) if _moves(change) else change)
    if not lance:
        return await (
            passage.pass_on()
            if others == changes
            else passage.pass_on_changed({**content, "table-changes": others})
        )
    if len(changes) == 1:
        passage.about(names[0], lance[0])
    ours = [changes[number] for number in lance]

    def handler(call: Call) -> Response:
        return commit_mixed_transaction(call, ours, others)

    return await calls.run(handler, passage.call, True)


async def _look_at(passage: Passage, table: Levels, change: Json) -> Look | None:
    """None where the change itself tells that no Lance table is meant."""
    if commit_creates(change):
        if marks_lance(change):
            raise InvalidInput(
                "table-changes: a Lance table is created by a commit of its own, with no other in it"
            )
        return None
    if _is_iceberg(passage, change) and not _moves(change):
        return None
    return await passage.look(await _path(passage, table), with_metadata=_moves(change))


async def _path(passage: Passage, table: Levels) -> bytes:
    upstream, who = passage.target.behind.upstream, passage.authorization
    prefix, separator = await upstream.prefix(who), await upstream.separator(who)
    namespace = quote(separator.join(table[:-1]), safe="")
    return b"/v1" + prefix + f"/namespaces/{namespace}/tables/{quote(table[-1], safe='')}".encode()


def _table_of(number: int, change: object) -> Levels:
    """InvalidInput where another server could take another table to be meant."""
    identifier = change.get("identifier") if isinstance(change, dict) else None
    if isinstance(identifier, dict) and isinstance(identifier.get("namespace"), list):
        levels = [*identifier["namespace"], identifier.get("name")]
        if len(levels) > 1 and all(isinstance(each, str) and each for each in levels):
            return tuple(levels)
    raise InvalidInput(f"table-changes.{number}.identifier: an object with namespace, a list of names, and name")


def _moves(change: Json) -> bool:
    """Whether a commit sets a location, or makes its table a Lance table."""
    return bool(locations_in(change)) or marks_lance(change)


def _held_in_place(change: Json, look: Look, behind: CanForward) -> Json:
    """The commit to an Iceberg table with what keeps others from moving it meanwhile: its uuid as a requirement,
    and its place as a property that only the bridge can set, if it becomes a Lance table."""
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


def _is_iceberg(passage: Passage, change: Json) -> bool:
    return passage.seen.is_iceberg((passage.target.warehouse.name, asserted_uuid(change)))
