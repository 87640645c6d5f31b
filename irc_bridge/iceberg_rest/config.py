"""The first requests of a client: the configuration of a warehouse, and a token."""

from starlette.responses import Response

from irc_bridge.http.replies import failure
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import IcebergCall


def get_config(call: IcebergCall) -> Response:
    from irc_bridge.iceberg_rest.endpoints import advertised

    warehouse = call.http.choose(call.http.query.get("warehouse") or None)
    prefix = {"prefix": warehouse.name}
    return replies.ok({"defaults": prefix, "overrides": prefix, "endpoints": advertised(warehouse)})


def get_token(call: IcebergCall) -> Response:
    """A refusal in the words of OAuth."""
    content = {
        "error": "unsupported_grant_type",
        "error_description": "This server gives out no tokens: configure the client's token property",
    }
    return failure(content, 400)
