"""Which hosts a request may name, and which web pages may send requests.

A web page that the user visits can send requests to this server from inside the user's network. The browser marks
such requests: `Origin` and `Sec-Fetch-Site` name the page, and `Host` is the domain of the page if its owner made
that domain point at this machine (DNS rebinding).
"""

import ipaddress
import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from irc_bridge.errors import BridgeError, InvalidInput, PermissionDenied

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[^:\[\]]+)(?::[0-9]{0,5})?", re.ASCII)
_LONGEST_HOST = 300
_OWN_PAGES = (b"same-origin", b"none")
"""The values of Sec-Fetch-Site for a page of this server, and for an address that the user typed."""


class Origins:
    """`any_host` is for a server with a token, which no page knows, and for a server that was started with
    --insecure."""

    def __init__(self, any_host: bool, allowed: Collection[str]) -> None:
        self._any_host = any_host
        self._allowed = frozenset(origin.lower().encode("latin-1") for origin in allowed)

    def refusal(self, headers: Mapping[bytes, bytes], http_version: str) -> BridgeError | None:
        """Why a request with these headers is refused, None if it is not. Names of headers are in lower case."""
        host = headers.get(b"host")
        if host is None:
            if http_version == "1.1":  # browsers always send a host; in HTTP/1.0 it may be missing
                return InvalidInput("The request has no Host header: HTTP/1.1 requires one")
        elif not self._any_host and not is_loopback(host):
            return PermissionDenied(
                f"Host {_shown(host)} is not this machine, and without a token this server answers only requests "
                "to localhost, 127.0.0.1 or [::1]: use one of these, set server.token, or start it with --insecure"
            )
        origin = headers.get(b"origin")
        if origin is not None:
            if self.allows(origin) or _is_of_host(origin, host):
                return None
            return PermissionDenied(
                f"Web pages of {_shown(origin)} may not use this server: name the origin in server.allowed_origins"
            )
        site = headers.get(b"sec-fetch-site")
        if site is not None and site not in _OWN_PAGES:
            return PermissionDenied(
                f"Web pages of other origins may not use this server (Sec-Fetch-Site is {_shown(site)}): "
                "name the origin in server.allowed_origins"
            )
        return None

    def allows(self, origin: bytes | None) -> bool:
        """Whether the settings name the origin."""
        return origin is not None and origin.lower() in self._allowed


@lru_cache(256)
def is_loopback(host: bytes) -> bool:
    """Whether a Host header names this machine: an address of 127.0.0.0/8, ::1, localhost or a name below it
    (which no name server may give another address, RFC 6761), with any port."""
    if len(host) > _LONGEST_HOST:
        return False
    match = _HOST.fullmatch(host.decode("latin-1").lower())
    if match is None:
        return False
    name = match[1].removesuffix(".")
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _is_of_host(origin: bytes, host: bytes | None) -> bool:
    scheme, separator, authority = origin.lower().partition(b"://")
    return bool(separator) and scheme in (b"http", b"https") and host is not None and authority == host.lower()


def _shown(value: bytes) -> str:
    return value[:_LONGEST_HOST].decode("latin-1")
