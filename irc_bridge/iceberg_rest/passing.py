"""Requests to a warehouse that another server keeps: they go there as they are, unless a Lance table is meant."""

from collections.abc import Awaitable, Callable, Mapping, Set

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.forward import CanForward, ForwardRequest, Headers
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.errors import PermissionDenied
from irc_bridge.http.calls import WAREHOUSE
from irc_bridge.iceberg_rest import passed_config
from irc_bridge.iceberg_rest.calls import Call
from irc_bridge.iceberg_rest.endpoints import Endpoint
from irc_bridge.iceberg_rest.forwarded_paths import in_plain_words, require_of_catalog
from irc_bridge.iceberg_rest.passage import Passage, Target
from irc_bridge.iceberg_rest.passed_commits import commit_transaction, pass_unless_lance, update_table
from irc_bridge.iceberg_rest.passed_loads import load_table
from irc_bridge.iceberg_rest.seen import SeenTables
from irc_bridge.iceberg_rest.strict_bodies import marks_lance

_COMMITS = ("updateTable", "commitTransaction", "replaceView")
_READS = ("GET", "HEAD")


class Passing:
    def __init__(self, warehouses: Warehouses, collections: Set[str]) -> None:
        """`collections` are the words that follow a warehouse in a path."""
        self._behind = {
            name: warehouse.catalog
            for name, warehouse in warehouses.items()
            if isinstance(warehouse.catalog, CanForward)
        }
        self._warehouses = warehouses
        self._collections = collections
        self._seen = SeenTables()

    def target(self, request: Request, endpoint: Endpoint | None, prefix: str | None) -> Target | None:
        """None for what this server answers by itself. `prefix` is that of a known endpoint."""
        path: bytes = request.scope["raw_path"]
        if not self._behind or not path.startswith(b"/v1/"):
            return None
        if endpoint is None:
            require_of_catalog(in_plain_words(path), self._warehouses.keys(), self._collections)
        first, slash, rest = path.removeprefix(b"/v1/").partition(b"/")
        if endpoint is not None and "{prefix}" not in endpoint.path:
            return self._to(request.query_params.get("warehouse"), path, below_prefix=False)
        named = names.decode(first.decode(errors="replace") if endpoint is None else prefix or "")
        if named in self._warehouses:
            return self._to(named, slash + rest)
        if endpoint is None:
            return self._to(None, path, below_prefix=False)
        return None if named else self._to(None, path.removeprefix(b"/v1"))

    async def answer(self, target: Target, endpoint: Endpoint | None, call: Call) -> Response:
        call.state[WAREHOUSE] = target.warehouse.name
        operation = endpoint.operation if endpoint is not None else ""
        changes = endpoint.changes if endpoint is not None else call.method not in _READS
        if changes and target.warehouse.read_only:
            raise PermissionDenied(f"Warehouse {target.warehouse.name} is read-only: {call.operation} is refused")
        path = target.path
        if target.below_prefix:
            path = b"/v1" + await target.behind.upstream.prefix(call.headers.get("authorization")) + path
        asked = ForwardRequest(
            method=call.method,
            path=path,
            query=call.target[1],
            headers=_readable(call.headers.raw),
            body=call.body,
            commits=operation in _COMMITS,
        )
        return await _STEPS.get(operation, Passage.pass_on)(Passage(call, endpoint, target, asked, self._seen))

    def _to(self, name: str | None, path: bytes, below_prefix: bool = True) -> Target | None:
        if not name and len(self._warehouses) != 1:
            return None
        warehouse = self._warehouses[name] if name else self._warehouses.only()
        behind = self._behind.get(warehouse.name)
        return None if behind is None else Target(warehouse, behind, path, below_prefix)


def _readable(headers: Headers) -> Headers:
    """So that an answer can be looked into, of the ways to compress it gzip is left."""
    return [
        (name, b"gzip" if b"gzip" in value else b"identity") if name == b"accept-encoding" else (name, value)
        for name, value in headers
    ]


async def _get_config(passage: Passage) -> Response:
    return await passed_config.get_config(passage.target.warehouse, passage.target.behind, passage.call)


async def _get_token(passage: Passage) -> Response:
    if not passage.target.behind.forwards_identity:
        return await passage.handled()
    return await passage.pass_on()


async def _create_table(passage: Passage) -> Response:
    if marks_lance(await passage.content()):
        return await passage.handled()
    return await passage.pass_on()


async def _register_table(passage: Passage) -> Response:
    location = (await passage.change()).get("metadata-location")
    behind = passage.target.behind
    if isinstance(location, str) and await to_thread.run_sync(behind.names_lance, location):
        return await passage.handled()
    return await passage.pass_on()


async def _change_namespace(passage: Passage) -> Response:
    await passage.content()  # with none of the bridge's own properties
    return await passage.pass_on()


async def _drop_table(passage: Passage) -> Response:
    if passage.call.query.get("purgeRequested", "").lower() != "true":
        return await passage.pass_on()
    return await pass_unless_lance(passage, passage.asked.path)


async def _plan_table_scan(passage: Passage) -> Response:
    return await pass_unless_lance(passage, passage.asked.path.removesuffix(b"/plan"))


_STEPS: Mapping[str, Callable[[Passage], Awaitable[Response]]] = {
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
"""What is not simply passed on."""
