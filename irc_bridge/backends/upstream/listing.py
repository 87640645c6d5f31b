"""Pages of names. A server that does not page, or gives out more than was asked for, is cut here."""

import heapq
from collections.abc import Callable
from functools import partial

from irc_bridge.catalog.models import Levels
from irc_bridge.errors import BadGateway, InvalidInput, NamespaceNotFound
from irc_bridge.irc_client.server import IrcServer, Listed

_THEIRS, _OURS = "server:", "after:"
_MOST_PAGES = 10_000

Ask = Callable[[str | None, int | None], Listed]


def everything(ask: Ask) -> list[Levels]:
    """BadGateway for a server whose pages have no end."""
    listed = ask(None, None)
    items, known = list(listed.items), set[str]()
    while listed.next_page:
        if listed.next_page in known or len(known) >= _MOST_PAGES:
            raise BadGateway("The server behind gives out pages without an end: none of the names is shown")
        known.add(listed.next_page)
        listed = ask(listed.next_page, None)
        items += listed.items
    return items


def page(ask: Ask, token: str | None, limit: int | None) -> tuple[list[str], str | None]:
    """Names, and the token of those that follow."""
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit must be 1 or more: {limit}")
    if limit is None and not token:
        return [each[-1] for each in everything(ask)], None
    if token and token.startswith(_OURS):
        return cut_after([each[-1] for each in everything(ask)], token, limit)
    if token and not token.startswith(_THEIRS):
        raise InvalidInput(f"page_token is not one that this namespace gave out: {token[:100]}")
    listed = ask(token.removeprefix(_THEIRS) if token else None, limit)
    names_given = [each[-1] for each in listed.items]
    if limit is None or len(names_given) <= limit:
        return names_given, _THEIRS + listed.next_page if listed.next_page else None
    return cut([each[-1] for each in everything(ask)], limit)


def cut(names: list[str], limit: int | None) -> tuple[list[str], str | None]:
    if limit is None or len(names) <= limit:
        return sorted(names), None
    first = heapq.nsmallest(limit, names)
    return first, _OURS + first[-1]


def cut_after(names: list[str], token: str | None, limit: int | None) -> tuple[list[str], str | None]:
    """The page behind the name that a token of ours holds."""
    return cut([each for each in names if not token or each > token.removeprefix(_OURS)], limit)


def all_tables(server: IrcServer) -> list[Levels]:
    """One request for each namespace and two more, none for a table. Namespaces that are dropped meanwhile have
    none."""
    found: list[Levels] = []
    waiting: list[Levels] = [()]
    while waiting:
        parent = waiting.pop()
        try:
            waiting += everything(partial(server.list_namespaces, parent))
            if parent:
                found += everything(partial(server.list_tables, parent))
        except NamespaceNotFound:
            continue
    return found
