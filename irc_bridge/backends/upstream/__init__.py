"""Lance tables in another Iceberg REST server: names, locations and properties are that server's (`ServerNames`),
and so are the versions of `managed_by=impl` tables (`ServerVersions`). Schemas, history and tags come from Lance's
files."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from irc_bridge.backends import OpenBackend

if TYPE_CHECKING:
    from pydantic import SecretStr

    from irc_bridge.backends.upstream.settings import UpstreamSettings
    from irc_bridge.lance_catalog.catalog import LanceCatalog


def open(name: str, settings: "UpstreamSettings") -> OpenBackend:
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
    return OpenBackend(catalog)


def _revealed(secret: "SecretStr | None") -> str | None:
    return None if secret is None else secret.get_secret_value()


def open_upstream(
    uri: str,
    *,
    warehouse: str | None,
    prefix: str | None,
    token: str | None,
    credential: str | None,
    pass_through: bool,
    oauth2_server_uri: str | None,
    scope: str,
    headers: Mapping[str, str],
    connect_timeout: float,
    read_timeout: float,
    root: str | None,
    allowed_locations: Sequence[str] = (),
    guard_snapshot: bool = True,
    storage_options: Mapping[str, str],
) -> "LanceCatalog":
    """Another IRC server. Opening it asks nothing of it. Clients may name locations of Lance tables only below
    `allowed_locations`, or below `root` where that is empty."""
    # late, because Lance and HTTP libraries take a while to import
    from irc_bridge.backends.upstream.files import Files
    from irc_bridge.backends.upstream.identities import Identities
    from irc_bridge.backends.upstream.places import Places
    from irc_bridge.backends.upstream.server_names import ServerNames
    from irc_bridge.backends.upstream.tables import Tables
    from irc_bridge.irc_client.auth import Auth
    from irc_bridge.irc_client.connection import Connection
    from irc_bridge.irc_client.opening import auth_of
    from irc_bridge.irc_client.pool import Pool
    from irc_bridge.irc_client.relay import Relay
    from irc_bridge.irc_client.server import Config, IrcServer

    pool, places = Pool(connect_timeout, read_timeout), Places(root, allowed_locations)
    files = Files([*allowed_locations, *([] if root is None else [root])])

    def tables(auth: Auth) -> Tables:
        server = IrcServer(Connection(uri, pool, auth, headers), warehouse, prefix)
        return Tables(
            server, files, storage_options, root, knows_lance=False, places=places, guards=guard_snapshot
        )

    auth = auth_of(pool, uri, token, credential, oauth2_server_uri, scope)
    own = tables(auth)
    clients = Identities(tables) if pass_through else None

    def config(authorization: str | None) -> Config:
        return (clients.tables(authorization) if clients else own).server.config

    relay = Relay(uri, None if pass_through else auth, headers, config, connect_timeout, read_timeout)
    return ServerNames(own, relay, warehouse, root, clients.tables if clients else None).catalog()
