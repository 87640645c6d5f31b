"""One request on its way to the server behind a warehouse."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from anyio import to_thread
from starlette.responses import Response

from irc_bridge import names
from irc_bridge.answers import LARGE
from irc_bridge.catalog.forward import CanForward, ForwardRequest, ForwardResponse
from irc_bridge.catalog.models import Levels
from irc_bridge.catalog.warehouses import Warehouse
from irc_bridge.http.calls import run
from irc_bridge.iceberg_rest.calls import IcebergCall, Identifier
from irc_bridge.iceberg_rest.endpoints import IcebergEndpoint
from irc_bridge.iceberg_rest.forward.detect import (
    LARGEST_LANCE_RESULT,
    KnownTables,
    LoadResponse,
    content_of,
    lance_result,
    load_response,
)
from irc_bridge.iceberg_rest.forward.responses import client_response
from irc_bridge.iceberg_rest.forward.strict_json import Json, read_strictly

_IDENTITY = (b"authorization", b"cookie", b"x-request-id")
_UNCOMPRESSED = (b"accept-encoding", b"identity")


@dataclass(frozen=True)
class ForwardTarget:
    """The server behind a warehouse, and the path of the request there."""

    warehouse: Warehouse
    behind: CanForward
    path: bytes
    """The raw path: all of it, or with `below_prefix` the part that follows the prefix, with a slash in front."""
    below_prefix: bool


@dataclass(frozen=True)
class TableLook:
    """The state of a table at the server behind, before a change of the table is forwarded."""

    response: ForwardResponse
    path: bytes
    """The path under which the server has the table."""
    lance: Json | None
    """The LoadTableResult of a Lance table, None for any other table."""
    metadata: object = None
    """The metadata of the table, if `with_metadata` was set."""

    @property
    def kind_is_unknown(self) -> bool:
        """Whether the server neither answered with the table nor that there is none."""
        return self.response.status not in (200, 404)


@dataclass
class Forwarding:
    """A client's request, its target, and the request that the target gets."""

    call: IcebergCall
    endpoint: IcebergEndpoint | None
    target: ForwardTarget
    request: ForwardRequest
    known_tables: KnownTables

    @property
    def authorization(self) -> str | None:
        return self.call.http.headers.get("authorization")

    async def send(self, request: ForwardRequest, whole: bool = False) -> tuple[ForwardResponse, ForwardRequest]:
        """The response and the request that got it. Where the literal name does not exist, the names are decoded
        once or twice more: some clients encode them more than once."""
        upstream = self.target.behind.upstream
        first = await upstream.send(request, whole)
        if first.status == 404:
            for decoded in _decoded(request):
                response = await upstream.send(decoded, whole)
                if response.status != 404:
                    return response, decoded
        return first, request

    async def forward(self) -> Response:
        """The response of the server behind, for the client."""
        response, _ = await self.send(self.request)
        return client_response(response)

    async def forward_changed(self, content: Json) -> Response:
        """As `forward`, with this content as the body of the request."""
        self.request = replace(self.request, body=json.dumps(content).encode())
        return await self.forward()

    async def handle(self, table: Levels | None = None, loaded: Json | None = None) -> Response:
        """The response of the bridge's own handler, which serves the Lance tables of every warehouse."""
        assert self.endpoint is not None
        if table is not None:
            self.set_table(table, loaded)
        return await run(partial(self.endpoint.handler, self.call), self.call.http, self.endpoint.changes)

    def set_table(self, table: Levels, loaded: Json | None) -> None:
        """Tells the handler the table, and the LoadTableResult that the server behind has sent."""
        self.call.table = Identifier(table[:-1], table[-1], table)
        if loaded is not None:
            self.call.http.catalog = self.target.behind.with_loaded(table, loaded, self.authorization)

    async def content(self) -> Any:
        """The JSON of the client's body. InvalidInput for a body that another server may read differently."""
        body, headers = self.call.http.body, self.call.http.headers
        return (
            await to_thread.run_sync(read_strictly, body, headers)
            if len(body) > LARGE
            else read_strictly(body, headers)
        )

    async def json_object(self) -> Json:
        """As `content`; empty where the body is no JSON object, which the server behind refuses."""
        content = await self.content()
        return content if isinstance(content, dict) else {}

    async def look_at_table(self, path: bytes, with_metadata: bool = False) -> TableLook:
        identity = [(name, value) for name, value in self.request.headers if name in _IDENTITY]
        request = ForwardRequest("GET", path, b"snapshots=refs", [*identity, _UNCOMPRESSED])
        response, sent = await self.send(request, whole=with_metadata)
        if response.status != 200:
            return TableLook(response, sent.path, None)
        if with_metadata:
            result = await to_thread.run_sync(content_of, response, LARGEST_LANCE_RESULT)
            metadata = result.get("metadata") if isinstance(result, dict) else None
            return TableLook(response, sent.path, lance_result(result), metadata)
        loaded = await self.load_response(response)
        loaded.close()
        return TableLook(response, sent.path, loaded.lance)

    async def load_response(self, response: ForwardResponse) -> LoadResponse:
        """The response to a load, searched for the mark of a Lance table. Remembers the tables that are Iceberg's,
        which need no further look."""
        loaded = await load_response(response)
        self.known_tables.remember(self.target.warehouse.name, loaded.uuids, loaded.lance is not None)
        return loaded

    async def levels(self, path: bytes) -> Levels:
        """The table of a raw path."""
        words = path.decode(errors="replace").split("/")
        at = words.index("namespaces")
        separator = await self.target.behind.upstream.separator(self.authorization)
        namespace = names.decode(words[at + 1]).replace(separator, names.SEPARATOR)
        return (*names.split(namespace), names.decode(words[at + 3]))


def _decoded(request: ForwardRequest) -> Iterator[ForwardRequest]:
    """The requests that a client may mean that encodes more than once: a name in a path twice, the name of a
    parent three times."""
    path = request.path.replace(b"%25", b"%")
    before = request
    for _ in range(2):
        parts = before.query.split(b"&")
        query = b"&".join(part.replace(b"%25", b"%") if part.startswith(b"parent=") else part for part in parts)
        decoded = replace(request, path=path, query=query)
        if decoded == before:
            return
        yield decoded
        before = decoded
