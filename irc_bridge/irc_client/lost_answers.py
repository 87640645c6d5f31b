"""What it means that a request which was passed on has no answer, as errors of this project."""

import os

from aiohttp import (
    ClientConnectionError,
    ClientConnectorError,
    ClientError,
    ClientOSError,
    ClientPayloadError,
    ClientResponseError,
    ClientSSLError,
    ConnectionTimeoutError,
    ServerDisconnectedError,
    ServerTimeoutError,
)

from irc_bridge.catalog.passing import Passed
from irc_bridge.errors import BadGateway, BridgeError, CommitStateUnknown, GatewayTimeout, ServiceUnavailable

LOSSES = (ClientError, OSError)
"""All that a request can end in; a time-out is an OSError."""
CHANGES_NOTHING = frozenset(("GET", "HEAD"))


def lost(asked: Passed, uri: str, error: Exception) -> BridgeError:
    what = f"Could not pass on {asked.method} {asked.path.decode(errors='replace')}"
    if isinstance(error, ClientConnectorError | ConnectionTimeoutError):
        return ServiceUnavailable(f"{what}: {uri} cannot be reached: {_why(error)}. Nothing was changed")
    in_time = not isinstance(error, TimeoutError)
    if asked.commits:
        text = f"{what}: the answer of {uri} was lost: {_why(error)}. Whether it was done is not known"
        return CommitStateUnknown(text, 502 if in_time else 504)
    unknown = "" if asked.method in CHANGES_NOTHING else ". Whether it was done is not known"
    kind = BadGateway if in_time else GatewayTimeout
    return kind(f"{what}: {uri} did not answer: {_why(error)}{unknown}")


def came_to_nothing(error: Exception) -> bool:
    """Whether the connection failed before an answer came, which may go better at once."""
    return isinstance(error, ClientConnectionError) and not isinstance(error, ServerTimeoutError | ClientSSLError)


def _why(error: Exception) -> str:
    if isinstance(error, ConnectionTimeoutError):
        return "no connection in time (connect_timeout)"
    if isinstance(error, TimeoutError):
        return "no answer in time (read_timeout)"
    if isinstance(error, ServerDisconnectedError):
        return "it closed the connection"
    if isinstance(error, ClientPayloadError):
        return "its answer broke off"
    if isinstance(error, ClientResponseError):
        return f"what it said is not HTTP ({error.message})"
    if isinstance(error, ClientConnectorError) and not isinstance(error, ClientSSLError):
        error = error.os_error
    if isinstance(error, ClientOSError | OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
