from collections.abc import Mapping

from irc_bridge.irc_client.auth import Auth, Bearer, ClientCredentials
from irc_bridge.irc_client.connection import Connection
from irc_bridge.irc_client.pool import Pool
from irc_bridge.irc_client.server import IrcServer

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0
SCOPE = "catalog"


def open_server(
    uri: str,
    *,
    warehouse: str | None = None,
    prefix: str | None = None,
    token: str | None = None,
    credential: str | None = None,
    oauth2_server_uri: str | None = None,
    scope: str = SCOPE,
    headers: Mapping[str, str] | None = None,
    connect_timeout: float = CONNECT_TIMEOUT_S,
    read_timeout: float = READ_TIMEOUT_S,
) -> IrcServer:
    """Sends nothing yet. A credential is `id:secret`; without a token endpoint the server's own is asked."""
    pool = Pool(connect_timeout, read_timeout)
    auth = auth_of(pool, uri, token, credential, oauth2_server_uri, scope)
    return IrcServer(Connection(uri, pool, auth, headers or {}), warehouse, prefix)


def auth_of(
    pool: Pool, uri: str, token: str | None, credential: str | None, oauth2_server_uri: str | None, scope: str
) -> Auth:
    if credential is None:
        return Bearer(token)
    endpoint = oauth2_server_uri or f"{uri.rstrip('/')}/v1/oauth/tokens"
    return ClientCredentials(pool.post_form, endpoint, credential, scope)
