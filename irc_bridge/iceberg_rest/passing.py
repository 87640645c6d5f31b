"""Requests to a warehouse that another server keeps: they go there as they are, unless a Lance table is meant."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.passing import CanPass, Passed
from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.errors import PermissionDenied
from irc_bridge.iceberg_rest import lance_or_not, passed_config
from irc_bridge.iceberg_rest.calls import Call
from irc_bridge.iceberg_rest.endpoints import Endpoint
from irc_bridge.iceberg_rest.passage import Passage, Target
from irc_bridge.iceberg_rest.passed_commits import commit_transaction, pass_unless_lance, update_table
from irc_bridge.iceberg_rest.passed_loads import load_table
from irc_bridge.iceberg_rest.seen import SeenTables

_COMMITS = ("updateTable", "commitTransaction", "replaceView")
_READS = ("GET", "HEAD")


class Passing:
    def __init__(self, warehouses: Warehouses) -> None:
        self._behind = {
            name: warehouse.catalog
            for name, warehouse in warehouses.items()
            if isinstance(warehouse.catalog, CanPass)
        }
        self._warehouses = warehouses
        self._seen = SeenTables()

    def target(self, request: Request, endpoint: Endpoint | None, prefix: str | None) -> Target | None:
        """None for what this server answers by itself. `prefix` is that of a known endpoint."""
        path: bytes = request.scope["raw_path"]
        if not self._behind or not path.startswith(b"/v1/"):
            return None
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
        operation = endpoint.operation if endpoint is not None else ""
        changes = endpoint.changes if endpoint is not None else call.method not in _READS
        if changes and target.warehouse.read_only:
            raise PermissionDenied(f"Warehouse {target.warehouse.name} is read-only: {call.operation} is refused")
        path = target.path
        if target.below_prefix:
            path = b"/v1" + await target.behind.upstream.prefix(call.headers.get("authorization")) + path
        asked = Passed(
            method=call.method,
            path=path,
            query=call.asked[1],
            headers=call.headers.raw,
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


async def _get_config(passage: Passage) -> Response:
    return await passed_config.get_config(passage.target.warehouse, passage.target.behind, passage.call)


async def _get_token(passage: Passage) -> Response:
    if not passage.target.behind.passes_identity:
        return await passage.handled()
    return await passage.pass_on()


async def _create_table(passage: Passage) -> Response:
    if lance_or_not.creates_lance(passage.call.body):
        return await passage.handled()
    return await passage.pass_on()


async def _register_table(passage: Passage) -> Response:
    if lance_or_not.registers_lance(passage.call.body):
        return await passage.handled()
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
    "loadTable": load_table,
    "createTable": _create_table,
    "registerTable": _register_table,
    "updateTable": update_table,
    "dropTable": _drop_table,
    "planTableScan": _plan_table_scan,
    "commitTransaction": commit_transaction,
}
"""What is not simply passed on."""
