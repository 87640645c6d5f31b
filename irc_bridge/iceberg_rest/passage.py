"""One request on its way to the server behind a warehouse."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from anyio import to_thread
from starlette.responses import Response

from irc_bridge import names
from irc_bridge.answers import LARGE
from irc_bridge.catalog.forward import CanForward, ForwardRequest, ForwardResponse
from irc_bridge.catalog.models import Levels
from irc_bridge.catalog.warehouses import Warehouse
from irc_bridge.http import calls
from irc_bridge.iceberg_rest.calls import Call, Identifier
from irc_bridge.iceberg_rest.endpoints import Endpoint
from irc_bridge.iceberg_rest.seen import SeenTables
from irc_bridge.iceberg_rest.sent_on import as_it_is
from irc_bridge.iceberg_rest.strict_bodies import read_strictly
from irc_bridge.iceberg_rest.table_answers import (
    LARGEST_LANCE_ANSWER,
    Json,
    Loaded,
    content_of,
    lance_result,
    loaded,
)

_WHO_ASKS = (b"authorization", b"cookie", b"x-request-id")
_PLAIN = (b"accept-encoding", b"identity")


@dataclass(frozen=True)
class Target:
    warehouse: Warehouse
    behind: CanForward
    path: bytes
    """Raw: what follows the prefix, with a slash in front, or all of it."""
    below_prefix: bool


@dataclass(frozen=True)
class Look:
    """What the server behind says of a table before a change of it is sent on."""

    answered: ForwardResponse
    path: bytes
    """That under which the table was found."""
    lance: Json | None
    """The LoadTableResult if it is a Lance table."""
    metadata: object = None
    """The metadata of the table, where it was asked for."""

    @property
    def leaves_open(self) -> bool:
        """Whether the table's kind is not known, because the server did not say that there is none."""
        return self.answered.status not in (200, 404)


@dataclass
class Passage:
    call: Call
    endpoint: Endpoint | None
    target: Target
    asked: ForwardRequest
    seen: SeenTables

    @property
    def authorization(self) -> str | None:
        return self.call.headers.get("authorization")

    async def send(self, asked: ForwardRequest, whole: bool = False) -> tuple[ForwardResponse, ForwardRequest]:
        """Also gives what was sent in the end: clients that encode names more than once are understood where
        nothing of the literal name exists."""
        upstream = self.target.behind.upstream
        first = await upstream.send(asked, whole)
        if first.status == 404:
            for again in _decoded(asked):
                answered = await upstream.send(again, whole)
                if answered.status != 404:
                    return answered, again
        return first, asked

    async def pass_on(self) -> Response:
        answered, _ = await self.send(self.asked)
        return as_it_is(answered)

    async def pass_on_changed(self, content: Json) -> Response:
        """The same request with another body."""
        self.asked = replace(self.asked, body=json.dumps(content).encode())
        return await self.pass_on()

    async def content(self) -> Any:
        """The JSON of the client's body. InvalidInput for what another server may take for something else."""
        body, headers = self.call.body, self.call.headers
        return (
            await to_thread.run_sync(read_strictly, body, headers)
            if len(body) > LARGE
            else read_strictly(body, headers)
        )

    async def change(self) -> Json:
        """Empty for what is no JSON object: the server behind refuses it."""
        content = await self.content()
        return content if isinstance(content, dict) else {}

    async def look(self, path: bytes, with_metadata: bool = False) -> Look:
        who = [(name, value) for name, value in self.asked.headers if name in _WHO_ASKS]
        asked = ForwardRequest("GET", path, b"snapshots=refs", [*who, _PLAIN])
        answered, sent = await self.send(asked, whole=with_metadata)
        if answered.status != 200:
            return Look(answered, sent.path, None)
        if with_metadata:
            result = await to_thread.run_sync(content_of, answered, LARGEST_LANCE_ANSWER)
            metadata = result.get("metadata") if isinstance(result, dict) else None
            return Look(answered, sent.path, lance_result(result), metadata)
        found = await self.loaded(answered)
        found.close()
        return Look(answered, sent.path, found.lance)

    async def loaded(self, answered: ForwardResponse) -> Loaded:
        """The answer to a load. Remembers of which tables nobody need look again."""
        found = await loaded(answered)
        self.seen.saw(self.target.warehouse.name, found.uuids, found.lance is not None)
        return found

    async def handled(self, table: Levels | None = None, loaded: Json | None = None) -> Response:
        """By the handler that serves Lance tables everywhere."""
        assert self.endpoint is not None
        if table is not None:
            self.about(table, loaded)
        return await calls.run(self.endpoint.handler, self.call, self.endpoint.changes)

    def about(self, table: Levels, loaded: Json | None) -> None:
        self.call.table = Identifier(table[:-1], table[-1], table)
        if loaded is not None:
            self.call.catalog = self.target.behind.with_loaded(table, loaded, self.authorization)

    async def levels(self, path: bytes) -> Levels:
        """The table that a raw path leads to."""
        words = path.decode(errors="replace").split("/")
        at = words.index("namespaces")
        separator = await self.target.behind.upstream.separator(self.authorization)
        namespace = names.decode(words[at + 1]).replace(separator, names.SEPARATOR)
        return (*names.split(namespace), names.decode(words[at + 3]))


def _decoded(asked: ForwardRequest) -> Iterator[ForwardRequest]:
    """What a client may have meant that encodes more than once: a name in a path twice, one of a parent thrice."""
    path = asked.path.replace(b"%25", b"%")
    before = asked
    for _ in range(2):
        parts = before.query.split(b"&")
        query = b"&".join(part.replace(b"%25", b"%") if part.startswith(b"parent=") else part for part in parts)
        again = replace(asked, path=path, query=query)
        if again == before:
            return
        yield again
        before = again
