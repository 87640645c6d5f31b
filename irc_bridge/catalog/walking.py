"""All tables of a warehouse, whatever its depth."""

from collections.abc import Iterator
from contextlib import suppress

from irc_bridge.catalog.models import Levels
from irc_bridge.catalog.ports import Catalog
from irc_bridge.errors import NamespaceNotFound


def tables_below(catalog: Catalog, namespace: Levels = ()) -> Iterator[Levels]:
    # others may drop a namespace meanwhile
    with suppress(NamespaceNotFound):
        for name in catalog.list_tables(namespace).items:
            yield (*namespace, name)
        for name in catalog.list_namespaces(namespace).items:
            yield from tables_below(catalog, (*namespace, name))
