from collections.abc import Mapping

from irc_bridge.catalog.models import Levels
from irc_bridge.catalog.ports import CanVendCredentials
from irc_bridge.lance_rest.calls import Call


def vended(call: Call, table: Levels, wanted: bool | None) -> Mapping[str, str] | None:
    """The table's storage options as Lance names them, where the warehouse gives them out; unless the client says
    that it wants none."""
    if wanted is False or not call.warehouse.vend_credentials:
        return None
    return dict(call.able(CanVendCredentials).storage_options(table))
