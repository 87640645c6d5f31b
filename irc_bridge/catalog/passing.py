"""Requests that a catalog answers by asking another server. Paths and bodies go there and back as they are."""

from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from irc_bridge.catalog.models import History, Levels
from irc_bridge.catalog.ports import Catalog, Decide

Headers = list[tuple[bytes, bytes]]
"""As they came, names in lower case, without those that are about a connection."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A request to pass on."""

    method: str
    path: bytes
    """Raw, from /v1 on, with the other server's prefix in it."""
    query: bytes
    headers: Headers
    body: bytes = b""
    commits: bool = False
    """Whether a lost answer leaves open what became of a table."""


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    headers: Headers
    content: bytes
    """All of it, or what came first of a large one."""
    rest: AsyncGenerator[bytes, None] | None = None
    """What follows in a large one. It must be read to its end or closed, and raises when the other server breaks
    off: no client may take a part for the whole."""

    @property
    def encoding(self) -> str:
        """That of the content: all values of the header, because nobody asks for more than one."""
        return ",".join(value.decode("latin-1") for name, value in self.headers if name == b"content-encoding")


class Upstream(Protocol):
    async def send(self, asked: Passed, whole: bool = False) -> Answered:
        """`whole` waits for all of the answer. ServiceUnavailable when nothing was sent, CommitStateUnknown when
        a commit's answer was lost, GatewayTimeout and BadGateway for other lost answers, Unauthenticated when the
        bridge itself gets no token."""

    async def prefix(self, authorization: str | None) -> bytes:
        """What stands between /v1 and the rest of a path: empty, or with a slash in front."""

    async def separator(self, authorization: str | None) -> str:
        """What stands between the levels of a namespace, decoded."""

    async def close(self) -> None: ...


@runtime_checkable
class CanActForClients(Protocol):
    def acting_for(self, authorization: str | None) -> Catalog:
        """The same catalog, for the client that sent this header."""


@runtime_checkable
class CanCommitBeside(Protocol):
    def commit_beside(
        self, changes: Mapping[Levels, Decide], others: Sequence[Mapping[str, Any]], history: History
    ) -> None:
        """As `commit_together`, in one transaction with changes of tables that are not Lance tables."""


@runtime_checkable
class CanPass(CanActForClients, CanCommitBeside, Protocol):
    @property
    def upstream(self) -> Upstream: ...

    @property
    def warehouse(self) -> str | None:
        """What the other server calls it, for /v1/config."""

    @property
    def passes_identity(self) -> bool:
        """Whether the other server hears who the client is. If not, it hears who the bridge is."""

    def knowing(self, table: Levels, loaded: Mapping[str, Any], authorization: str | None) -> Catalog:
        """As `acting_for`; it takes this LoadTableResult of the other server for the table's present state."""

    def properties_of_lance(self, location: str) -> Mapping[str, str]:
        """What an Iceberg table at this location gets when a client makes it a Lance table: its place, which no
        client can change from then on. InvalidInput where clients may not place Lance tables."""

    def names_lance(self, location: str) -> bool:
        """Whether a Lance table's root or manifest is meant. Looks only where clients may place Lance tables."""

    def same_files(self, token: Hashable) -> bool:
        """Whether a table's storage says what it said when `load_table` gave out the token. Asks no server."""
