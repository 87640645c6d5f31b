"""Commits where another server keeps the tables. Those of Iceberg tables go there as they came; what they change
tells that they are such, or one request more does."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from irc_bridge import wire
from irc_bridge.catalog.models import Levels
from irc_bridge.errors import InvalidInput
from irc_bridge.iceberg_rest.calls import Call
from irc_bridge.iceberg_rest.commits import commit_transaction_beside
from irc_bridge.iceberg_rest.lance_or_not import (
    Json,
    asserted_uuid,
    commit_creates,
    commit_creates_lance,
    parsed,
)
from irc_bridge.iceberg_rest.passage import Passage


async def update_table(passage: Passage) -> Response:
    change = parsed(passage.call.body)
    if commit_creates_lance(change):
        return await passage.handled(await passage.levels(passage.asked.path))
    if commit_creates(change) or _is_iceberg(passage, change):
        return await passage.pass_on()
    return await pass_unless_lance(passage, passage.asked.path)


async def pass_unless_lance(passage: Passage, table: bytes) -> Response:
    """For what is done in one way to a Lance table and in another to any other."""
    loaded, found_at = await passage.look(table)
    if loaded is not None:
        return await passage.handled(await passage.levels(found_at), loaded)
    return await passage.pass_on()


async def commit_transaction(passage: Passage) -> Response:
    said = parsed(passage.call.body).get("table-changes")
    changes: list[Any] = said if isinstance(said, list) else []
    if len(changes) == 1 and isinstance(changes[0], Mapping) and commit_creates_lance(changes[0]):
        return await passage.handled()
    lance = {
        number: loaded
        for number, change in enumerate(changes)
        if (loaded := await _lance_table_of(passage, change)) is not None
    }
    if not lance:
        return await passage.pass_on()
    if len(changes) == 1:
        passage.about(_named(changes[0]), lance[0])
    ours = [changes[number] for number in lance]
    others = [change for number, change in enumerate(changes) if number not in lance]

    def handler(call: Call) -> Response:
        return commit_transaction_beside(call, ours, others)

    return await wire.run(handler, passage.call, True)


async def _lance_table_of(passage: Passage, change: object) -> Json | None:
    """What the server says of the Lance table that a change names. None for any other table."""
    if not isinstance(change, Mapping) or _is_iceberg(passage, change):
        return None
    if commit_creates_lance(change):
        raise InvalidInput("table-changes: a Lance table is created by a commit of its own, with no other in it")
    if commit_creates(change):
        return None
    try:
        path = await _path(passage, _named(change))
    except (KeyError, TypeError):
        return None  # whoever understands the request has to refuse it
    loaded, _ = await passage.look(path)
    return loaded


async def _path(passage: Passage, table: Levels) -> bytes:
    upstream, who = passage.target.behind.upstream, passage.authorization
    prefix, separator = await upstream.prefix(who), await upstream.separator(who)
    namespace = quote(separator.join(table[:-1]), safe="")
    return b"/v1" + prefix + f"/namespaces/{namespace}/tables/{quote(table[-1], safe='')}".encode()


def _named(change: Json) -> Levels:
    return (*change["identifier"]["namespace"], change["identifier"]["name"])


def _is_iceberg(passage: Passage, change: Json) -> bool:
    return passage.seen.is_iceberg((passage.target.warehouse.name, asserted_uuid(change)))
