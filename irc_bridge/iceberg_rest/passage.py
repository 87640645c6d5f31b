"""One request on its way to the server behind a warehouse."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from starlette.responses import Response

from irc_bridge import names, wire
from irc_bridge.catalog.models import Levels
from irc_bridge.catalog.passing import Answered, CanPass, Passed
from irc_bridge.catalog.warehouses import Warehouse
from irc_bridge.iceberg_rest import lance_or_not
from irc_bridge.iceberg_rest.calls import Call, Identifier
from irc_bridge.iceberg_rest.endpoints import Endpoint
from irc_bridge.iceberg_rest.seen import SeenTables
from irc_bridge.iceberg_rest.sent_on import as_it_is

_WHO_ASKS = (b"authorization", b"cookie", b"x-request-id")


@dataclass(frozen=True)
class Target:
    warehouse: Warehouse
    behind: CanPass
    path: bytes
    """Raw: what follows the prefix, with a slash in front, or all of it."""
    below_prefix: bool


@dataclass
class Passage:
    call: Call
    endpoint: Endpoint | None
    target: Target
    asked: Passed
    seen: SeenTables

    @property
    def authorization(self) -> str | None:
        return self.call.headers.get("authorization")

    async def send(self, asked: Passed, whole: bool = False) -> tuple[Answered, Passed]:
        """Also gives what was sent in the end: clients that encode names more than once are understood where
        nothing of the literal name exists."""
        first = await self.target.behind.upstream.send(asked, whole)
        if first.status == 404:
            for again in _decoded(asked):
                answered = await self.target.behind.upstream.send(again, whole)
                if answered.status != 404:
                    return answered, again
        return first, asked

    async def pass_on(self) -> Response:
        answered, _ = await self.send(self.asked)
        return as_it_is(answered)

    async def look(self, path: bytes) -> tuple[lance_or_not.Json | None, bytes]:
        """The LoadTableResult of a Lance table if it is one, and the path under which it was found."""
        who = [(name, value) for name, value in self.asked.headers if name in _WHO_ASKS]
        answered, sent = await self.send(Passed("GET", path, b"snapshots=refs", who), whole=True)
        if answered.status != 200:
            return None, path
        return self.lance_result(answered), sent.path

    def lance_result(self, answered: Answered) -> lance_or_not.Json | None:
        """From the answer to a load. Remembers of which tables nobody need look again."""
        content = lance_or_not.plain(answered, answered.content)
        result = lance_or_not.lance_result(content)
        self.seen.saw(self.target.warehouse.name, content, result is not None)
        return result

    async def handled(self, table: Levels | None = None, loaded: lance_or_not.Json | None = None) -> Response:
        """By the handler that serves Lance tables everywhere."""
        assert self.endpoint is not None
        if table is not None:
            self.about(table, loaded)
        return await wire.run(self.endpoint.handler, self.call, self.endpoint.changes)

    def about(self, table: Levels, loaded: lance_or_not.Json | None) -> None:
        self.call.table = Identifier(table[:-1], table[-1], table)
        if loaded is not None:
            self.call.catalog = self.target.behind.knowing(table, loaded, self.authorization)

    async def levels(self, path: bytes) -> Levels:
        """The table that a raw path leads to."""
        words = path.decode(errors="replace").split("/")
        at = words.index("namespaces")
        separator = await self.target.behind.upstream.separator(self.authorization)
        namespace = names.decode(words[at + 1]).replace(separator, names.SEPARATOR)
        return (*names.split(namespace), names.decode(words[at + 3]))


def _decoded(asked: Passed) -> Iterator[Passed]:
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
