"""The ports of a catalog that another server keeps: requests go there, and its responses to the client."""

from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from irc_bridge.catalog.models import History, Levels
from irc_bridge.catalog.ports import Catalog, Decide

Headers = list[tuple[bytes, bytes]]
"""Names are in lower case. Headers about the connection are left out."""


@dataclass(frozen=True, slots=True)
class ForwardRequest:
    """A request for the other server."""

    method: str
    path: bytes
    """The raw path with /v1 and with the other server's prefix."""
    query: bytes
    headers: Headers
    body: bytes = b""
    commits: bool = False
    """Whether the request changes a table, so that a lost response leaves the table's state unknown."""


@dataclass(frozen=True, slots=True)
class ForwardResponse:
    """The other server's response."""

    status: int
    headers: Headers
    content: bytes
    """The whole body, or the first part of a large body."""
    rest: AsyncGenerator[bytes, None] | None = None
    """The other parts of a large body. They must be read to the end or closed. Reading raises when the server
    breaks off, so that no client takes a part for the whole body."""

    @property
    def encoding(self) -> str:
        """The content-encoding: all values of the header, because a request accepts one at most."""
        return ",".join(value.decode("latin-1") for name, value in self.headers if name == b"content-encoding")


class Upstream(Protocol):
    async def send(self, request: ForwardRequest, whole: bool = False) -> ForwardResponse:
        """`whole` waits for the whole body. ServiceUnavailable when nothing was sent, CommitStateUnknown when
        a commit's answer was lost, GatewayTimeout and BadGateway for other lost answers, Unauthenticated when the
        bridge itself gets no token."""

    async def prefix(self, authorization: str | None) -> bytes:
        """The part of a path between /v1 and the rest: empty, or with a slash in front."""

    async def separator(self, authorization: str | None) -> str:
        """The decoded text between the levels of a namespace."""

    async def close(self) -> None: ...


@runtime_checkable
class CanActForClients(Protocol):
    def acting_for(self, authorization: str | None) -> Catalog:
        """This catalog with the rights of the client that sent this header."""


@runtime_checkable
class CanCommitMixed(Protocol):
    def commit_mixed(
        self, changes: Mapping[Levels, Decide], others: Sequence[Mapping[str, Any]], history: History
    ) -> None:
        """As `commit_together`, in one transaction with `others`: changes of tables that are no Lance tables."""


@runtime_checkable
class CanForward(CanActForClients, CanCommitMixed, Protocol):
    @property
    def upstream(self) -> Upstream: ...

    @property
    def warehouse(self) -> str | None:
        """The name of the warehouse at the other server, for /v1/config."""

    @property
    def forwards_identity(self) -> bool:
        """Whether the other server gets the client's credentials; otherwise it gets those of the bridge."""

    def with_loaded(self, table: Levels, loaded: Mapping[str, Any], authorization: str | None) -> Catalog:
        """As `acting_for`, with a catalog that uses `loaded`, a LoadTableResult of the other server, and does not
        ask that server for the table."""

    def properties_of_lance(self, location: str) -> Mapping[str, str]:
        """The properties that keep a Lance table at this location: clients cannot change them. They are set when a
        client makes a Lance table of an Iceberg table. InvalidInput where clients may not place Lance tables."""

    def names_lance(self, location: str) -> bool:
        """Whether this is the root or a manifest of a Lance table. Looks only where clients may place Lance
        tables."""

    def same_files(self, token: Hashable) -> bool:
        """Whether a table's storage is as it was when `load_table` gave out the token. Asks no server."""
