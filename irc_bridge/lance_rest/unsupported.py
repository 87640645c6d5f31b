"""Operations on the rows of a table: Lance does them in the client's own process."""

from starlette.responses import Response

from irc_bridge.errors import Unsupported
from irc_bridge.lance_rest.calls import Call


def in_the_client(call: Call) -> Response:
    raise Unsupported(
        f"{call.operation} is not done by this server: open the table with pylance and do it there, by "
        f"lance.dataset(namespace_client=..., table_id=...) or at the location that DescribeTable tells"
    )


def not_kept(call: Call) -> Response:
    raise Unsupported(f"{call.operation} is not supported: this server keeps no such things")
