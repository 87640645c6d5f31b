"""Server-side scan planning is not offered: no plan can exist, and none can be made."""

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.errors import PlanNotFound, PlanTaskNotFound, Unsupported
from irc_bridge.iceberg_rest.calls import Call


def plan_table_scan(call: Call) -> Response:
    raise Unsupported(f"Warehouse {call.warehouse.name} does not plan scans: {call.table}")


def no_such_plan(call: Call) -> Response:
    plan = names.decode(call.params["plan-id"])
    raise PlanNotFound(f"Plan does not exist: {plan}. Warehouse {call.warehouse.name} does not plan scans")


def no_such_task(call: Call) -> Response:
    raise PlanTaskNotFound(f"Plan task does not exist: warehouse {call.warehouse.name} does not plan scans")
