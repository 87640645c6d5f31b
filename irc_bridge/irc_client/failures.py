"""Failures of a server, or of the connection to it, as errors of this project."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError, ProtocolError

from irc_bridge.answers import Unreadable
from irc_bridge.errors import (
    BadGateway,
    BridgeError,
    CommitFailed,
    CommitStateUnknown,
    GatewayTimeout,
    Internal,
    InvalidInput,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableNotFound,
    Throttled,
    Unauthenticated,
    Unprocessable,
    Unsupported,
    ViewNotFound,
    WarehouseNotFound,
)

NO_LONGER_AUTHENTICATED = (401, 419)
_LONGEST_MESSAGE = 4000
_OUTCOME_UNKNOWN = (500, 502, 503, 504)
_BY_TYPE: Mapping[str, type[BridgeError]] = {
    error.iceberg_type: error
    for error in (
        WarehouseNotFound,
        NamespaceNotFound,
        TableNotFound,
        ViewNotFound,
        NamespaceNotEmpty,
        CommitStateUnknown,
        Unsupported,
    )
}
_BY_STATUS: Mapping[int, type[BridgeError]] = {
    400: InvalidInput,
    401: Unauthenticated,
    403: PermissionDenied,
    406: Unsupported,
    413: InvalidInput,
    419: Unauthenticated,
    422: Unprocessable,
    429: Throttled,
    501: Unsupported,
    502: ServiceUnavailable,
    503: ServiceUnavailable,
    504: ServiceUnavailable,
}


@dataclass(frozen=True, slots=True)
class Request:
    """`what` ends the sentence "Could not ..."; `missing` and `conflict` are what 404 and 409 mean here, for
    servers that leave the type of an error empty."""

    method: str
    path: str
    what: str
    missing: type[BridgeError] = NamespaceNotFound
    conflict: type[BridgeError] = CommitFailed
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    commits: bool = False
    """Whether a lost answer leaves open what became of a table."""

    @property
    def safe(self) -> bool:
        return self.method in ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes


def unreadable(request: Request, uri: str, error: Unreadable) -> BridgeError:
    """For an answer that came and cannot be used."""
    text = f"Could not {request.what}: the answer of {uri} {error}. Is it an Iceberg REST catalog?"
    if request.commits:
        return CommitStateUnknown(f"{text} Whether it was done is not known", 502)
    return BadGateway(text if request.safe else f"{text} Whether it was done is not known")


def error_of(request: Request, answer: Answer, said: Mapping[str, Any]) -> BridgeError:
    """`said` is the `error` object of the answer, empty where it has none."""
    kind = _kind(request, answer, said)
    message = said.get("message") or answer.content[:200].decode(errors="replace") or "nothing more"
    text = f"Could not {request.what}: the server answered {answer.status}: {str(message)[:_LONGEST_MESSAGE]}"
    if 300 <= answer.status < 400:
        text = f"Could not {request.what}: the server sends on to {answer.headers.get('location')}: use that uri"
    if issubclass(kind, CommitStateUnknown):
        text += ". Whether it was done is not known"
    return kind(text)


def _kind(request: Request, answer: Answer, said: Mapping[str, Any]) -> type[BridgeError]:
    status = answer.status
    if request.commits and status in _OUTCOME_UNKNOWN and not (status == 503 and "retry-after" in answer.headers):
        return CommitStateUnknown
    typed = _BY_TYPE.get(str(said.get("type")))
    if typed is not None and status >= 400:
        return typed
    if status == 404:
        return request.missing
    if status == 409:
        return request.conflict
    if not 400 <= status < 600:
        return BadGateway
    return _BY_STATUS.get(status, InvalidInput if status < 500 else Internal)


def lost(request: Request, uri: str, error: requests.RequestException) -> BridgeError:
    """No answer, or none that is whole."""
    why = _why(error)
    if not was_sent(error):
        return ServiceUnavailable(f"Could not {request.what}: {uri} cannot be reached: {why}. Nothing was changed")
    if request.commits:
        return CommitStateUnknown(
            f"Could not {request.what}: the answer of {uri} was lost: {why}. Whether it was done is not known"
        )
    unknown = "" if request.safe else ". Whether it was done is not known"
    kind = GatewayTimeout if isinstance(error, requests.Timeout) else BadGateway
    return kind(f"Could not {request.what}: {uri} did not answer: {why}{unknown}")


def was_sent(error: requests.RequestException) -> bool:
    """Whether the server may have got the request."""
    reason = error.args[0] if error.args else None
    if isinstance(reason, MaxRetryError):
        reason = reason.reason
    return not isinstance(reason, NewConnectionError | ConnectTimeoutError)


def _why(error: requests.RequestException) -> str:
    if isinstance(error, requests.ConnectTimeout):
        return "no connection in time (connect_timeout)"
    if isinstance(error, requests.Timeout):
        return "no answer in time (read_timeout)"
    reason = error.args[0] if error.args else error
    if isinstance(reason, MaxRetryError):
        reason = reason.reason or reason
    if isinstance(reason, ProtocolError) and reason.args:
        reason = reason.args[-1]
    return str(reason).rpartition(": ")[2] or type(error).__name__
