"""The one table of endpoints. The router, `/v1/config` and the conformance tests are derived from it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog import ports
from irc_bridge.catalog.warehouses import Warehouse
from irc_bridge.errors import NamespaceNotFound, TableNotFound
from irc_bridge.iceberg_rest import absent, commits, config, credentials, loads, namespaces, tables
from irc_bridge.iceberg_rest.calls import IcebergCall
from irc_bridge.iceberg_rest.load_cache import LOAD_TABLE

NAMESPACES = "/v1/{prefix}/namespaces"
NAMESPACE = NAMESPACES + "/{namespace}"
TABLES = NAMESPACE + "/tables"
TABLE = TABLES + "/{table}"
VIEWS = NAMESPACE + "/views"
VIEW = VIEWS + "/{view}"

Handler = Callable[[IcebergCall], Response]


@dataclass(frozen=True, slots=True)
class IcebergEndpoint:
    operation: str
    method: str
    path: str
    handler: Handler
    needs: type[Any] | None = None
    """The ability without which a warehouse does not advertise the endpoint."""
    changes: bool = False
    advertised: bool = True
    reads_body: bool = True
    """False where at most the server behind a warehouse reads the body."""
    takes_form: bool = False


def _of_table(handler: Handler) -> Handler:
    """The handler with TableNotFound in place of NamespaceNotFound. At TableNotFound Java clients look for the
    metadata table: `ns.t.snapshots` may be one of `ns.t`."""

    @wraps(handler)
    def answer(call: IcebergCall) -> Response:
        try:
            return handler(call)
        except NamespaceNotFound as error:
            namespace, table = (names.decode(call.http.params[name]) for name in ("namespace", "table"))
            missing = names.dotted((*names.split(namespace), table))
            raise TableNotFound(f"Table does not exist: {missing}. {error}") from error

    return answer


def _read(operation: str, method: str, path: str, handler: Handler) -> IcebergEndpoint:
    return IcebergEndpoint(operation, method, path, handler)


def _change(operation: str, method: str, path: str, handler: Handler, needs: type[Any]) -> IcebergEndpoint:
    return IcebergEndpoint(operation, method, path, handler, needs, changes=True)


def _absent(operation: str, method: str, path: str, handler: Handler, changes: bool = False) -> IcebergEndpoint:
    return IcebergEndpoint(operation, method, path, handler, changes=changes, advertised=False, reads_body=False)


ENDPOINTS = (
    _absent("getConfig", "GET", "/v1/config", config.get_config),
    replace(_absent("getToken", "POST", "/v1/oauth/tokens", config.get_token), takes_form=True),
    _read("listNamespaces", "GET", NAMESPACES, namespaces.list_namespaces),
    _change("createNamespace", "POST", NAMESPACES, namespaces.create_namespace, ports.CanChangeNamespaces),
    _read("loadNamespaceMetadata", "GET", NAMESPACE, namespaces.load_namespace),
    _read("namespaceExists", "HEAD", NAMESPACE, namespaces.namespace_exists),
    _change("dropNamespace", "DELETE", NAMESPACE, namespaces.drop_namespace, ports.CanChangeNamespaces),
    _change(
        "updateProperties",
        "POST",
        NAMESPACE + "/properties",
        namespaces.update_properties,
        ports.CanChangeNamespaces,
    ),
    _read("listTables", "GET", TABLES, tables.list_tables),
    _change("createTable", "POST", TABLES, tables.create_table, ports.CanCreateTables),
    _change("registerTable", "POST", NAMESPACE + "/register", tables.register_table, ports.CanRegisterTables),
    _read(LOAD_TABLE, "GET", TABLE, _of_table(loads.load_table)),
    _read("tableExists", "HEAD", TABLE, _of_table(loads.table_exists)),
    _change("updateTable", "POST", TABLE, commits.update_table, ports.CanCommit),
    _change("dropTable", "DELETE", TABLE, _of_table(tables.drop_table), ports.CanDropTables),
    _read("loadCredentials", "GET", TABLE + "/credentials", _of_table(credentials.load_credentials)),
    _read("reportMetrics", "POST", TABLE + "/metrics", _of_table(tables.report_metrics)),
    _absent("planTableScan", "POST", TABLE + "/plan", absent.plan_table_scan),
    _absent("fetchPlanningResult", "GET", TABLE + "/plan/{plan-id}", absent.no_such_plan),
    _absent("cancelPlanning", "DELETE", TABLE + "/plan/{plan-id}", absent.no_such_plan),
    _absent("fetchScanTasks", "POST", TABLE + "/tasks", absent.no_such_task),
    _change("renameTable", "POST", "/v1/{prefix}/tables/rename", tables.rename_table, ports.CanRenameTables),
    _change(
        "commitTransaction",
        "POST",
        "/v1/{prefix}/transactions/commit",
        commits.commit_transaction,
        ports.CanCommitTogether,
    ),
    _absent("listViews", "GET", VIEWS, absent.list_views),
    _absent("createView", "POST", VIEWS, absent.create_view, changes=True),
    _absent("loadView", "GET", VIEW, absent.no_such_view),
    _absent("replaceView", "POST", VIEW, absent.no_such_view, changes=True),
    _absent("dropView", "DELETE", VIEW, absent.no_such_view, changes=True),
    _absent("viewExists", "HEAD", VIEW, absent.no_such_view),
    _absent("renameView", "POST", "/v1/{prefix}/views/rename", absent.rename_view, changes=True),
)


def advertised(warehouse: Warehouse) -> list[str]:
    return [
        f"{endpoint.method} {endpoint.path}"
        for endpoint in ENDPOINTS
        if endpoint.advertised
        and (endpoint.needs is None or isinstance(warehouse.catalog, endpoint.needs))
        and not (endpoint.changes and warehouse.read_only)
    ]
