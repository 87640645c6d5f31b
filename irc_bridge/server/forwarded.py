"""Scheme, host and path prefix of a request as a proxy before this server got it.

Anyone can send `X-Forwarded-*` headers. They count only where the connection comes from an address that the
settings name in `server.trusted_proxies`, and change nothing otherwise.
"""

import ipaddress
import re
from collections.abc import Awaitable, Collection
from functools import lru_cache

from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge.errors import InvalidInput
from irc_bridge.http.calls import REQUEST_ID
from irc_bridge.server.admission import refusal

_PROTO, _HOST, _PREFIX = b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-prefix"
_FORMS = {
    _PROTO: re.compile(rb"https?"),
    _HOST: re.compile(rb"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(:[0-9]{1,5})?"),
    _PREFIX: re.compile(rb"(/(?!\.\.?(/|$))[A-Za-z0-9._~-]+){0,8}/?"),
}


class Forwarded:
    """Puts the scheme, the host and the prefix that a trusted proxy names into the scope of the request."""

    def __init__(self, app: ASGIApp, trusted_proxies: Collection[str]) -> None:
        self._app = app
        networks = [ipaddress.ip_network(proxy) for proxy in trusted_proxies]

        @lru_cache(1024)
        def is_trusted(address: str) -> bool:
            known = _address(address)
            return known is not None and any(known in network for network in networks)

        self._is_trusted = is_trusted

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http" and scope["client"] is not None and self._is_trusted(scope["client"][0]):
            error = _take(scope)
            if error is not None:
                return refusal(error, scope["raw_path"], scope["state"].get(REQUEST_ID))(scope, receive, send)
        return self._app(scope, receive, send)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """A socket that listens on IPv6 shows an IPv4 address as ::ffff:10.0.0.7."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _take(scope: Scope) -> InvalidInput | None:
    headers = scope["header_values"]
    said: dict[bytes, bytes] = {}
    for name, form in _FORMS.items():
        if name in headers:
            # where several proxies each added a value, the last one is that of the proxy that sent this request
            said[name] = headers[name].rpartition(b",")[2].strip()
            if not form.fullmatch(said[name]):
                return InvalidInput(f"The proxy sent a header {name.decode()} that this server cannot read")
    if _PROTO in said:
        scope["scheme"] = said[_PROTO].decode()
    if _HOST in said:
        headers[b"host"] = said[_HOST]
        others = [(name, value) for name, value in scope["headers"] if name != b"host"]
        scope["headers"] = [(b"host", said[_HOST]), *others]
    if prefix := said.get(_PREFIX, b"").rstrip(b"/").decode():
        scope["root_path"], scope["path"] = prefix, prefix + scope["path"]
    if said:
        scope["client"] = None  # the client is not the proxy: what is for this machine alone is not for it
    return None
