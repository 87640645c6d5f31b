"""Which requests of clients may go to a catalog's server. The server takes them for the bridge's own: a path that
it reads in another way opens to a client what only the bridge may reach."""

import re
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from irc_bridge.catalog.forward import ForwardRequest
from irc_bridge.errors import InvalidInput, MethodNotAllowed

METHODS = ("DELETE", "GET", "HEAD", "POST", "PUT")
_MOST_DECODINGS = 4
_PLAIN = re.compile(rb"/v1(/[^/\\#]+)+")
_DOT_SEGMENT = re.compile(rb"(?:^|[/\\])\.\.?(?:$|[;/\\])")


def require_plain(asked: ForwardRequest) -> None:
    """MethodNotAllowed or InvalidInput for what no client of a catalog sends."""
    if asked.method not in METHODS:
        raise MethodNotAllowed(asked.method, list(METHODS))
    if not _is_plain(asked.path):
        raise InvalidInput(
            "The path cannot be passed on: it must begin with /v1/, without empty or dot segments, \\ and #"
        )


@lru_cache(1024)
def _is_plain(path: bytes) -> bool:
    return _PLAIN.fullmatch(path) is not None and not _has_dot_segment(path)


def _has_dot_segment(path: bytes) -> bool:
    for _ in range(_MOST_DECODINGS):
        if _DOT_SEGMENT.search(path):
            return True
        path = unquote_to_bytes(path)
    return bool(_DOT_SEGMENT.search(path))
