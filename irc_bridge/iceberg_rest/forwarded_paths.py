"""Which routes that this server does not know may go to the server behind: it answers with the rights of the
bridge, and reads some paths in other ways than this one."""

from collections.abc import Set
from urllib.parse import quote, unquote

from irc_bridge.errors import RouteNotFound, WarehouseNotFound

_OF_THE_SERVER = frozenset(("oauth", "config"))
"""Below these words are tokens, and where the server is. The bridge answers both itself."""
_MOST_DECODINGS = 4


def in_plain_words(path: bytes) -> str:
    """The path as it is for a server that decodes more than once, cuts words at a semicolon, or does not care
    about their case."""
    return "/".join(quote(_decoded(word), safe="") for word in path.decode("latin-1").split("/"))


def require_of_catalog(plain_path: str, warehouses: Set[str], collections: Set[str]) -> None:
    """RouteNotFound or WarehouseNotFound for what leads to tokens, or to another warehouse of the server behind.
    `collections` are the words that follow a warehouse."""
    words = [word for word in plain_path.split("/")[2:] if word]
    if words and words[0] in {each.lower() for each in warehouses}:
        words = words[1:]
    if words[:1] and words[0] in _OF_THE_SERVER:
        raise RouteNotFound(f"No such route: {plain_path}")
    if words[1:] and words[0] not in collections and words[1] in collections | _OF_THE_SERVER:
        raise WarehouseNotFound(f"Warehouse does not exist: {words[0]}")


def _decoded(word: str) -> str:
    for _ in range(_MOST_DECODINGS):
        word = unquote(word, "latin-1")
    return word.partition(";")[0].lower()
