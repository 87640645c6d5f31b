from collections.abc import Iterator
from itertools import islice

from irc_bridge.catalog.models import Page, PageRequest


def page_of(names: Iterator[str], request: PageRequest) -> Page[str]:
    if request.limit is None:
        return Page(tuple(names))
    items = tuple(islice(names, request.limit + 1))
    return Page(items[: request.limit], more=len(items) > request.limit)
