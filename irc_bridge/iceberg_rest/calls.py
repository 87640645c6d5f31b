"""A request as a handler of the Iceberg protocol gets it: names are decoded and mapped to names of the catalog."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from irc_bridge import names
from irc_bridge.catalog.models import EVERYTHING, Levels, PageRequest
from irc_bridge.catalog.ports import Catalog
from irc_bridge.catalog.warehouses import Warehouse
from irc_bridge.errors import InvalidInput, NamespaceNotFound
from irc_bridge.http import bodies
from irc_bridge.http.calls import Ability, Call
from irc_bridge.iceberg_rest.load_cache import LoadCache, RawTarget

DEFAULT_PAGE_SIZE = 1000


@dataclass(slots=True)
class Identifier:
    """A table: `namespace` and `name` are the client's, for replies and messages; `in_catalog` is the
    catalog's."""

    namespace: Levels
    name: str
    in_catalog: Levels

    def __str__(self) -> str:
        return names.dotted((*self.namespace, self.name))


@dataclass
class IcebergCall:
    http: Call
    target: RawTarget
    loads: LoadCache

    @property
    def warehouse(self) -> Warehouse:
        return self.http.warehouse

    @property
    def catalog(self) -> Catalog:
        return self.http.catalog

    def able(self, ability: type[Ability]) -> Ability:
        return self.http.able(ability)

    @cached_property
    def namespace(self) -> Levels:
        return self._namespace(names.decode(self.http.params["namespace"]))

    @cached_property
    def parent(self) -> Levels:
        parent = self.http.query.get("parent")
        # the published Lance client encodes a parent once more than a name in a path
        return self._namespace(parent, decoded_more=2) if parent else ()

    @cached_property
    def table(self) -> Identifier:
        """The table of the path. Its name is decoded once, and a second time where the literal name does not
        exist."""
        namespace, name = names.decode(self.http.params["namespace"]), names.decode(self.http.params["table"])
        literal = self.identifier(names.split(namespace), name)
        if "%" not in namespace and "%" not in name:
            return literal
        for levels in (names.split(namespace), names.split(names.decode_again(namespace))):
            for table in (name, names.decode_again(name)):
                candidate = self.identifier(levels, table)
                if _exists(self.catalog.table_exists, candidate.in_catalog):
                    return candidate
        return self.identifier(self._namespace(namespace), name)

    def identifier(self, namespace: Levels, name: str) -> Identifier:
        return Identifier(namespace, name, (*self.to_catalog(namespace), name))

    def to_catalog(self, namespace: Levels) -> Levels:
        """The namespace in the catalog. Iceberg has no tables at the root, so tables of the catalog's root appear
        in a namespace of their own."""
        root = self.warehouse.root_namespace
        if root is None or namespace[:1] != (root,):
            return namespace
        if len(namespace) > 1:
            raise NamespaceNotFound(f"Namespace does not exist: {names.dotted(namespace)}")
        return ()

    def is_root(self, namespace: Levels) -> bool:
        return namespace == (self.warehouse.root_namespace,)

    @property
    def page(self) -> PageRequest:
        token, size = self.http.query.get("pageToken"), self.http.query.get("pageSize")
        if size is not None and not (size.isascii() and size.isdigit() and int(size[:19]) > 0):
            raise InvalidInput(f"pageSize must be a whole number above 0: {size[:100]}")
        if token is None:
            return EVERYTHING
        limit = min(int(size[:19]), DEFAULT_PAGE_SIZE) if size else DEFAULT_PAGE_SIZE
        return PageRequest(names.name_of_page_token(token) if token else None, limit)

    def read(self, model: type[bodies.Model]) -> bodies.Model:
        return bodies.read(self.http.body, model)

    def _namespace(self, decoded: str, decoded_more: int = 1) -> Levels:
        literal = names.split(decoded)
        candidates = [literal]
        for _ in range(decoded_more):
            decoded = names.decode_again(decoded)
            if (levels := names.split(decoded)) not in candidates:
                candidates.append(levels)
        if len(candidates) == 1:
            return literal
        exists = self.catalog.namespace_exists
        existing = (levels for levels in candidates if _exists(exists, self.to_catalog(levels)))
        return next(existing, literal)


def _exists(exists: Callable[[Levels], bool], levels: Levels) -> bool:
    """Whether there is such a namespace or table; False for a name that no namespace or table may have."""
    try:
        return exists(levels)
    except InvalidInput:
        return False
