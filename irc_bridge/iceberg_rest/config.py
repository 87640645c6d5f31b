from starlette.responses import Response

from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import Call


def get_config(call: Call) -> Response:
    from irc_bridge.iceberg_rest.endpoints import advertised

    warehouse = call.choose(call.query.get("warehouse") or None)
    prefix = {"prefix": warehouse.name}
    return replies.ok({"defaults": prefix, "overrides": prefix, "endpoints": advertised(warehouse)})
