"""Names as they travel: identifiers of seed 000; levels joined by 0x1F, percent-encoded in paths; page tokens."""

import base64
import binascii
from urllib.parse import unquote, unquote_to_bytes

from irc_bridge.errors import InvalidInput

DELIMITER = "$"
"""Joins the names of a string style identifier where no other is asked for."""
SEPARATOR = "\x1f"
PAGE_MARK = b"after:"


def identifier(levels: tuple[str, ...], delimiter: str = DELIMITER) -> str:
    """The string style identifier, empty for the root namespace."""
    for name in levels:
        if delimiter in name:
            raise InvalidInput(f"The name {name!r} contains the delimiter {delimiter!r}: use another delimiter")
    text = delimiter.join(levels)
    if levels_of(text, delimiter) != levels:
        raise InvalidInput(f"The names {levels} cannot be told apart with {delimiter!r} between them")
    return text


def levels_of(identifier: str | None, delimiter: str = DELIMITER) -> tuple[str, ...]:
    """The list style identifier. The root namespace is empty, or the delimiter alone on the Lance wire."""
    if not delimiter:
        raise InvalidInput("The delimiter of an identifier cannot be empty")
    return () if identifier in (None, "", delimiter) else tuple(str(identifier).split(delimiter))


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


def quoted(name: str) -> str:
    """A name inside a dotted one, as commands take it."""
    return f"`{name}`" if "." in name else name


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
