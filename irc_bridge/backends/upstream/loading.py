"""From what the server and the storage say of a table to what a catalog answers about it."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from irc_bridge.backends.upstream.finishing import finish
from irc_bridge.catalog.guard import GUARD_SUMMARY
from irc_bridge.catalog.models import COMMITS, TABLE_TYPE, TABLE_UUID, History, Levels, TableInfo, Unchanged
from irc_bridge.catalog.properties import GC_ENABLED
from irc_bridge.errors import BridgeError
from irc_bridge.irc_client.lance_tables import LOCATION, LanceTable
from irc_bridge.lance_store.table_files import TableFiles

if TYPE_CHECKING:
    from irc_bridge.lance_store.tables import Content


_OF_THE_SERVER = (TABLE_TYPE, LOCATION, GC_ENABLED, GUARD_SUMMARY)
"""What a table is to the server behind. To clients the bridge says it of every Lance table."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where the name of a table leads."""

    name: Levels
    table: LanceTable
    files: TableFiles

    @property
    def counted(self) -> range | None:
        """The versions that count; None where the files are the versions. Others may have used the place."""
        return range(1, (self.table.current or 0) + 1) if self.table.by_catalog else None


@dataclass(frozen=True, slots=True)
class Token:
    server: Hashable
    storage: Hashable | None
    files: TableFiles = field(compare=False)


def token_of(found: Found) -> Token:
    table = found.table
    server = (table.uuid, table.location, table.current, table.updated_ms, tuple(sorted(table.properties.items())))
    return Token(server, found.files.storage.table_stamp(found.files.path), found.files)


def same_files(token: Hashable) -> bool:
    """Says no when unsure."""
    if not isinstance(token, Token) or token.storage is None:
        return False
    try:
        return token.files.storage.same_table_stamp(token.files.path, token.storage)
    except BridgeError:
        return False


def load(found: Found, history: History, known: Hashable | None = None) -> TableInfo | Unchanged:
    """Nothing is opened where server and storage say what they said."""
    token = token_of(found)
    if token.storage is not None and token == known:
        return Unchanged(token)
    return read(found, history)


def read(found: Found, history: History) -> TableInfo:
    token, content = content_of(found, history)
    return info_of(found, content, token)


def content_of(found: Found, history: History) -> tuple[Token, "Content | None"]:
    """Finishes on the way what a process left that died after its commit."""
    if found.table.by_catalog:
        finish(found.table, found.files)
    token = token_of(found)
    return token, found.files.tables.read(found.files.path, history, found.counted)


def info_of(found: Found, content: "Content | None", token: Token) -> TableInfo:
    updated_ms = found.table.updated_ms
    if content is None:
        return TableInfo(found.files.location, _properties(found.table, ""), (), {}, updated_ms, token)
    return TableInfo(
        location=found.files.location,
        properties=_properties(found.table, content.metadata.get(COMMITS, "")),
        versions=content.versions,
        tags=content.tags,
        updated_ms=max(updated_ms, content.versions[-1].timestamp_ms),
        token=token,
        schema_metadata=content.schema_metadata,
        mirrored=content.mirrored,
        schema_starts=content.schema_starts,
        empty_list=content.empty_list,
    )


def _properties(table: LanceTable, commits: str) -> dict[str, str]:
    """The server's. The identities of commits that made a version stand in the version."""
    shown = {TABLE_UUID: table.uuid, **table.properties}
    identities = [*shown.pop(COMMITS, "").split(), *commits.split()]
    if identities:
        shown[COMMITS] = " ".join(identities)
    return {key: shown[key] for key in sorted(shown) if key not in _OF_THE_SERVER}
