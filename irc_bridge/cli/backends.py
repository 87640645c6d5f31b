"""The one place that turns settings into backends."""

from pydantic import SecretStr

from irc_bridge.backends.directory import open_directory, open_migration
from irc_bridge.backends.directory.migration import Migration
from irc_bridge.backends.upstream import open_upstream
from irc_bridge.catalog.models import IcebergView
from irc_bridge.catalog.ports import Catalog
from irc_bridge.catalog.warehouses import Warehouse, Warehouses
from irc_bridge.durations import milliseconds
from irc_bridge.errors import InvalidInput
from irc_bridge.names import quoted
from irc_bridge.settings import AnyWarehouse, DirWarehouse, IrcWarehouse, Settings


def open_warehouses(settings: Settings) -> Warehouses:
    return Warehouses([_open(name, warehouse) for name, warehouse in settings.warehouses.items()])


def migration_of(root: str, settings: Settings) -> Migration:
    """Of a warehouse or of any folder; the settings may hold the storage options of its root."""
    directories = {name: each for name, each in settings.warehouses.items() if isinstance(each, DirWarehouse)}
    known = directories.get(root) or next(
        (each for each in directories.values() if each.root.rstrip("/") == root.rstrip("/")),
        DirWarehouse(root=root),
    )
    return open_migration(known.root, known.storage)


def _open(name: str, settings: AnyWarehouse) -> Warehouse:
    return _upstream(name, settings) if isinstance(settings, IrcWarehouse) else _directory(name, settings)


def _directory(name: str, settings: DirWarehouse) -> Warehouse:
    catalog = open_directory(
        settings.root,
        manifest_enabled=settings.manifest_enabled,
        dir_listing_enabled=settings.dir_listing_enabled,
        table_version_management=settings.table_version_management,
        storage_options=settings.storage,
        allowed_locations=settings.allowed_locations,
        shown_in=f"{name}.{quoted(settings.root_namespace)}",
    )
    if catalog.namespace_exists((settings.root_namespace,)):
        raise InvalidInput(
            f"Warehouse {name} has a namespace named {settings.root_namespace!r}, the name under which "
            f"the tables of its root appear: choose another one with warehouses.{name}.root_namespace"
        )
    return _warehouse(name, catalog, settings, settings.root_namespace)


def _upstream(name: str, settings: IrcWarehouse) -> Warehouse:
    catalog = open_upstream(
        settings.uri,
        warehouse=settings.warehouse,
        prefix=settings.prefix,
        token=_revealed(settings.token),
        credential=_revealed(settings.credential),
        pass_through=settings.auth == "passthrough",
        oauth2_server_uri=settings.oauth2_server_uri,
        scope=settings.scope,
        headers=settings.headers,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        root=settings.root,
        allowed_locations=settings.allowed_locations,
        guard_snapshot=settings.guard_snapshot,
        storage_options=settings.storage,
    )
    return _warehouse(name, catalog, settings, None)


def _warehouse(name: str, catalog: Catalog, settings: AnyWarehouse, root_namespace: str | None) -> Warehouse:
    return Warehouse(
        name=name,
        catalog=catalog,
        root_namespace=root_namespace,
        read_only=settings.read_only,
        vend_credentials=settings.vend_credentials,
        default_managed_by=settings.default_managed_by,
        view=IcebergView(settings.mirror_lag, settings.schema_ids, settings.guard_snapshot),
        allow_expire=settings.allow_expire,
        purge_after_ms=None if settings.purge_after == "never" else milliseconds(settings.purge_after),
    )


def _revealed(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()
