from starlette.responses import Response

from irc_bridge.http.replies import failure
from irc_bridge.iceberg_rest.calls import Call


def get_token(call: Call) -> Response:
    """This route answers in OAuth's own words."""
    content = {
        "error": "unsupported_grant_type",
        "error_description": "This server gives out no tokens: configure the client's token property",
    }
    return failure(content, 400)
