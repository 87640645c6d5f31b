from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from irc_bridge.catalog.models import MANAGED_BY, ManagedBy, MirrorLag
from irc_bridge.catalog.ports import Catalog
from irc_bridge.errors import InvalidInput, WarehouseNotFound


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A catalog under the name by which Iceberg clients choose it."""

    name: str
    catalog: Catalog
    root_namespace: str | None = None
    """The Iceberg namespace in which the tables of the catalog's root namespace appear."""
    read_only: bool = False
    vend_credentials: bool = False
    default_managed_by: ManagedBy = "storage"
    mirror_lag: MirrorLag = "serve-mirrored"

    def properties_of_new(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The properties of a table that is made with these."""
        if self.default_managed_by == "storage" or MANAGED_BY in properties:
            return dict(properties)
        return {**properties, MANAGED_BY: self.default_managed_by}


class Warehouses(Mapping[str, Warehouse]):
    def __init__(self, warehouses: list[Warehouse]) -> None:
        self._by_name = {warehouse.name: warehouse for warehouse in warehouses}

    def __getitem__(self, name: str) -> Warehouse:
        try:
            return self._by_name[name]
        except KeyError:
            raise WarehouseNotFound(f"Warehouse does not exist: {name}. {self._known()}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def only(self) -> Warehouse:
        """The one that is meant when a request names none."""
        if len(self._by_name) != 1:
            raise InvalidInput(f"Name a warehouse: this server has several. {self._known()}")
        return next(iter(self._by_name.values()))

    def _known(self) -> str:
        return f"Known warehouses: {', '.join(sorted(self._by_name)) or 'none'}"
