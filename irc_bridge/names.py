"""Names as they travel: levels joined by 0x1F, percent-encoded in paths; page tokens."""

import base64
import binascii
from urllib.parse import unquote, unquote_to_bytes

from irc_bridge.errors import InvalidInput

SEPARATOR = "\x1f"
PAGE_MARK = b"after:"


def decode(raw: str) -> str:
    """A path segment as the client meant it. Java encodes forms, so a plus is a space."""
    try:
        return unquote_to_bytes(raw.replace("+", " ")).decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"Not UTF-8 after percent-decoding: {raw}") from None


def decode_again(name: str) -> str:
    """For clients that encode twice; the same name for all others."""
    return unquote(name) if "%" in name else name


def split(namespace: str) -> tuple[str, ...]:
    return tuple(namespace.split(SEPARATOR))


def dotted(levels: tuple[str, ...]) -> str:
    return ".".join(levels)


def page_token(name: str) -> str:
    return base64.urlsafe_b64encode(PAGE_MARK + name.encode()).decode().rstrip("=")


def name_of_page_token(token: str) -> str:
    try:
        marked = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        if marked.startswith(PAGE_MARK):
            return marked.removeprefix(PAGE_MARK).decode()
    except (binascii.Error, ValueError):
        pass
    raise InvalidInput(f"pageToken is not one that this server gave out: {token[:100]}")
