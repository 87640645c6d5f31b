"""Operations of the specification that no warehouse offers: views, and the planning of scans. Clients ask for
both, and must learn that there are none."""

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.errors import (
    InvalidInput,
    NamespaceNotFound,
    PlanNotFound,
    PlanTaskNotFound,
    Unsupported,
    ViewNotFound,
)
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import IcebergCall
from irc_bridge.iceberg_rest.requests import RenameTableRequest


def list_views(call: IcebergCall) -> Response:
    if not call.catalog.namespace_exists(call.to_catalog(call.namespace)):
        raise NamespaceNotFound(f"Namespace does not exist: {names.dotted(call.namespace)}")
    return replies.ok({"identifiers": []})


def create_view(call: IcebergCall) -> Response:
    raise InvalidInput(f"Warehouse {call.warehouse.name} has no views and cannot create one")


def no_such_view(call: IcebergCall) -> Response:
    view = (*call.namespace, names.decode(call.http.params["view"]))
    raise ViewNotFound(f"View does not exist: {names.dotted(view)}. Warehouse {call.warehouse.name} has no views")


def rename_view(call: IcebergCall) -> Response:
    source = call.read(RenameTableRequest).source
    view = names.dotted((*source.namespace, source.name))
    raise ViewNotFound(f"View does not exist: {view}. Warehouse {call.warehouse.name} has no views")


def plan_table_scan(call: IcebergCall) -> Response:
    raise Unsupported(f"Warehouse {call.warehouse.name} does not plan scans: {call.table}")


def no_such_plan(call: IcebergCall) -> Response:
    plan = names.decode(call.http.params["plan-id"])
    raise PlanNotFound(f"Plan does not exist: {plan}. Warehouse {call.warehouse.name} does not plan scans")


def no_such_task(call: IcebergCall) -> Response:
    raise PlanTaskNotFound(f"Plan task does not exist: warehouse {call.warehouse.name} does not plan scans")
