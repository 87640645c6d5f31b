"""The meaning of a lost answer to a forwarded request, as errors of this project."""

from irc_bridge.catalog.forward import ForwardRequest
from irc_bridge.errors import BadGateway, BridgeError, CommitStateUnknown, GatewayTimeout, ServiceUnavailable
from irc_bridge.irc_client.exchange import Lost

CHANGES_NOTHING = frozenset(("GET", "HEAD"))


def lost(asked: ForwardRequest, uri: str, error: Lost) -> BridgeError:
    what = f"Could not pass on {asked.method} {asked.path.decode(errors='replace')}"
    if not error.sent:
        return ServiceUnavailable(f"{what}: {uri} cannot be reached: {error.why}. Nothing was changed")
    if asked.commits:
        text = f"{what}: the answer of {uri} was lost: {error.why}. Whether it was done is not known"
        return CommitStateUnknown(text, 502 if error.in_time else 504)
    unknown = "" if asked.method in CHANGES_NOTHING else ". Whether it was done is not known"
    kind = BadGateway if error.in_time else GatewayTimeout
    return kind(f"{what}: {uri} did not answer: {error.why}{unknown}")
