"""Which requests go to the server behind a warehouse, and what happens to a request on the way."""

from collections.abc import Awaitable, Callable, Mapping, Set
from urllib.parse import quote, unquote

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.forward import CanForward, ForwardRequest, Headers
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.errors import PermissionDenied, RouteNotFound, WarehouseNotFound
from irc_bridge.http.calls import WAREHOUSE
from irc_bridge.iceberg_rest.calls import IcebergCall
from irc_bridge.iceberg_rest.endpoints import IcebergEndpoint
from irc_bridge.iceberg_rest.forward import config
from irc_bridge.iceberg_rest.forward.commits import commit_transaction, forward_unless_lance, update_table
from irc_bridge.iceberg_rest.forward.detect import KnownTables
from irc_bridge.iceberg_rest.forward.load_table import load_table
from irc_bridge.iceberg_rest.forward.request import Forwarding, ForwardTarget
from irc_bridge.iceberg_rest.forward.strict_json import marks_lance

_COMMITS = ("updateTable", "commitTransaction", "replaceView")
_READS = ("GET", "HEAD")
_OF_THE_SERVER = frozenset(("oauth", "config"))
"""Below these words a server gives tokens, and the addresses of servers. The bridge answers both itself."""
_MOST_DECODINGS = 4


class Dispatch:
    def __init__(self, warehouses: Warehouses, collections: Set[str]) -> None:
        """`collections` are the words that follow a warehouse in a path."""
        self._behind = {
            name: warehouse.catalog
            for name, warehouse in warehouses.items()
            if isinstance(warehouse.catalog, CanForward)
        }
        self._warehouses = warehouses
        self._collections = collections
        self._known_tables = KnownTables()

    def target(
        self, request: Request, endpoint: IcebergEndpoint | None, prefix: str | None
    ) -> ForwardTarget | None:
        """The server that gets the request, None where the bridge answers itself. `prefix` is that of a known
        endpoint."""
        path: bytes = request.scope["raw_path"]
        if not self._behind or not path.startswith(b"/v1/"):
            return None
        if endpoint is None:
            _require_catalog_path(in_plain_words(path), self._warehouses.keys(), self._collections)
        first, slash, rest = path.removeprefix(b"/v1/").partition(b"/")
        if endpoint is not None and "{prefix}" not in endpoint.path:
            return self._target(request.query_params.get("warehouse"), path, below_prefix=False)
        name = names.decode(first.decode(errors="replace") if endpoint is None else prefix or "")
        if name in self._warehouses:
            return self._target(name, slash + rest)
        if endpoint is None:
            return self._target(None, path, below_prefix=False)
        return None if name else self._target(None, path.removeprefix(b"/v1"))

    async def answer(self, target: ForwardTarget, endpoint: IcebergEndpoint | None, call: IcebergCall) -> Response:
        call.http.state[WAREHOUSE] = target.warehouse.name
        operation = endpoint.operation if endpoint is not None else ""
        changes = endpoint.changes if endpoint is not None else call.http.method not in _READS
        if changes and target.warehouse.read_only:
            raise PermissionDenied(
                f"Warehouse {target.warehouse.name} is read-only: {call.http.operation} is refused"
            )
        path = target.path
        if target.below_prefix:
            path = b"/v1" + await target.behind.upstream.prefix(call.http.headers.get("authorization")) + path
        request = ForwardRequest(
            method=call.http.method,
            path=path,
            query=call.target[1],
            headers=_with_readable_encoding(call.http.headers.raw),
            body=call.http.body,
            commits=operation in _COMMITS,
        )
        step = _STEPS.get(operation, Forwarding.forward)
        return await step(Forwarding(call, endpoint, target, request, self._known_tables))

    def _target(self, name: str | None, path: bytes, below_prefix: bool = True) -> ForwardTarget | None:
        if not name and len(self._warehouses) != 1:
            return None
        warehouse = self._warehouses[name] if name else self._warehouses.only()
        behind = self._behind.get(warehouse.name)
        return None if behind is None else ForwardTarget(warehouse, behind, path, below_prefix)


def in_plain_words(path: bytes) -> str:
    """The path as a server reads it that decodes more than once, cuts words at a semicolon, and ignores their
    case."""
    return "/".join(quote(_plain(word), safe="") for word in path.decode("latin-1").split("/"))


def _plain(word: str) -> str:
    for _ in range(_MOST_DECODINGS):
        word = unquote(word, "latin-1")
    return word.partition(";")[0].lower()


def _require_catalog_path(plain_path: str, warehouses: Set[str], collections: Set[str]) -> None:
    """RouteNotFound or WarehouseNotFound for a path to tokens, or to another warehouse of the server behind. The
    server behind would answer with the rights of the bridge. `collections` are the words that follow a
    warehouse."""
    words = [word for word in plain_path.split("/")[2:] if word]
    if words and words[0] in {name.lower() for name in warehouses}:
        words = words[1:]
    if words[:1] and words[0] in _OF_THE_SERVER:
        raise RouteNotFound(f"No such route: {plain_path}")
    if words[1:] and words[0] not in collections and words[1] in collections | _OF_THE_SERVER:
        raise WarehouseNotFound(f"Warehouse does not exist: {words[0]}")


def _with_readable_encoding(headers: Headers) -> Headers:
    """The headers, with gzip as the only compression that the client accepts: the bridge can look into gzip."""
    return [
        (name, b"gzip" if b"gzip" in value else b"identity") if name == b"accept-encoding" else (name, value)
        for name, value in headers
    ]


async def _get_config(forwarding: Forwarding) -> Response:
    return await config.get_config(forwarding.target.warehouse, forwarding.target.behind, forwarding.call)


async def _get_token(forwarding: Forwarding) -> Response:
    if not forwarding.target.behind.forwards_identity:
        return await forwarding.handle()
    return await forwarding.forward()


async def _create_table(forwarding: Forwarding) -> Response:
    if marks_lance(await forwarding.content()):
        return await forwarding.handle()
    return await forwarding.forward()


async def _register_table(forwarding: Forwarding) -> Response:
    location = (await forwarding.json_object()).get("metadata-location")
    behind = forwarding.target.behind
    if isinstance(location, str) and await to_thread.run_sync(behind.names_lance, location):
        return await forwarding.handle()
    return await forwarding.forward()


async def _change_namespace(forwarding: Forwarding) -> Response:
    await forwarding.content()  # refuses the bridge's own properties
    return await forwarding.forward()


async def _drop_table(forwarding: Forwarding) -> Response:
    if forwarding.call.http.query.get("purgeRequested", "").lower() != "true":
        return await forwarding.forward()
    return await forward_unless_lance(forwarding, forwarding.request.path)


async def _plan_table_scan(forwarding: Forwarding) -> Response:
    return await forward_unless_lance(forwarding, forwarding.request.path.removesuffix(b"/plan"))


_STEPS: Mapping[str, Callable[[Forwarding], Awaitable[Response]]] = {
    "getConfig": _get_config,
    "getToken": _get_token,
    "createNamespace": _change_namespace,
    "updateProperties": _change_namespace,
    "loadTable": load_table,
    "createTable": _create_table,
    "registerTable": _register_table,
    "updateTable": update_table,
    "dropTable": _drop_table,
    "planTableScan": _plan_table_scan,
    "commitTransaction": commit_transaction,
}
"""The operations that are not forwarded at once."""
