from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event

from irc_bridge.catalog.models import MANAGED_BY, IcebergView, ManagedBy
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
    view: IcebergView = field(default_factory=IcebergView)
    allow_expire: bool = False
    """Whether Iceberg's remove-snapshots may delete Lance versions."""
    purge_after_ms: int | None = 7 * 24 * 3600 * 1000
    """How long the files of a purged table stay; None for ever."""

    def properties_of_new(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The properties of a table that is made with these."""
        if self.default_managed_by == "storage" or MANAGED_BY in properties:
            return dict(properties)
        return {**properties, MANAGED_BY: self.default_managed_by}


class Warehouses(Mapping[str, Warehouse]):
    def __init__(self, warehouses: list[Warehouse]) -> None:
        self.purge_made = Event()
        """Wakes the thread of this process that removes the files of purged tables."""
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
