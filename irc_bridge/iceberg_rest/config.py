from starlette.responses import Response

from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import Call


def get_config(call: Call) -> Response:
    from irc_bridge.iceberg_rest.endpoints import advertised

    name = call.query.get("warehouse")
    warehouse = call.warehouses[name] if name else call.warehouses.only()
    prefix = {"prefix": warehouse.name}
    return replies.ok({"defaults": prefix, "overrides": prefix, "endpoints": advertised(warehouse)})
