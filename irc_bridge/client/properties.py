"""The properties that a user gives to `lance_namespace.connect(...)`."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from irc_bridge.errors import InvalidInput
from irc_bridge.irc_client.opening import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, SCOPE, open_server
from irc_bridge.irc_client.server import IrcServer
from irc_bridge.names import DELIMITER

_KEYS = (
    "uri",
    "warehouse",
    "prefix",
    "token",
    "credential",
    "oauth2-server-uri",
    "scope",
    "connect_timeout",
    "read_timeout",
    "root",
    "managed_by",
    "delimiter",
)
_FAMILIES = ("header.", "storage.")


@dataclass(frozen=True, slots=True)
class Properties:
    given: Mapping[str, str]
    storage: Mapping[str, str]
    """Lance's storage options."""
    root: str | None
    """Below which tables are declared where the server does not say."""
    managed_by: str | None
    """Of new tables that do not say; None leaves it to the server."""
    delimiter: str

    @property
    def uri(self) -> str:
        return self.given["uri"]

    def open_server(self) -> IrcServer:
        given = self.given
        return open_server(
            self.uri,
            warehouse=given.get("warehouse"),
            prefix=given.get("prefix"),
            token=given.get("token"),
            credential=given.get("credential"),
            oauth2_server_uri=given.get("oauth2-server-uri"),
            scope=given.get("scope", SCOPE),
            headers=_family(given, "header."),
            connect_timeout=_seconds(given, "connect_timeout", CONNECT_TIMEOUT_S),
            read_timeout=_seconds(given, "read_timeout", READ_TIMEOUT_S),
        )


def read_properties(given: Mapping[str, str]) -> Properties:
    for key in given:
        if key not in _KEYS and not key.startswith(_FAMILIES):
            raise InvalidInput(f"Unknown property {key}{_nearest(key)}")
    if not given.get("uri", "").startswith(("http://", "https://")):
        raise InvalidInput("The property uri must be the http(s) address of an Iceberg REST catalog")
    if "token" in given and "credential" in given:
        raise InvalidInput("Give the property token or the property credential, not both")
    managed_by = given.get("managed_by")
    if managed_by is not None and managed_by.lower() not in ("storage", "impl"):
        raise InvalidInput(f"The property managed_by must be storage or impl: {managed_by}")
    return Properties(
        given=dict(given),
        storage=_family(given, "storage."),
        root=given.get("root"),
        managed_by=managed_by and managed_by.lower(),
        delimiter=given.get("delimiter") or DELIMITER,
    )


def _family(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): each for key, each in given.items() if key.startswith(prefix)}


def _seconds(given: Mapping[str, str], key: str, otherwise: float) -> float:
    try:
        seconds = float(given.get(key, otherwise))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidInput(f"The property {key} is a number of seconds above 0: {given[key]}")
    return seconds


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key.replace("-", "_"), [each.replace("-", "_") for each in _KEYS], n=1)
    if not near:
        return f": there are {', '.join(_KEYS)}, header.* and storage.*"
    return f": did you mean {next(each for each in _KEYS if each.replace('-', '_') == near[0])}?"
