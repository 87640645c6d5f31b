"""An upstream catalog in this process, and what tests do with it."""

from typing import Any, Protocol

import pyarrow as pa
import pytest

from contract_tests.directory.staging import stage
from contract_tests.worlds.world import UpstreamWorld
from contract_tests.worlds.writer import folder_of, rows
from irc_bridge.backends.upstream import open_upstream
from irc_bridge.catalog.forward import CanForward
from irc_bridge.catalog.models import (
    Addition,
    Levels,
    NewTable,
    NewVersion,
    SchemaChange,
    TableInfo,
)
from irc_bridge.catalog.ports import (
    CanChangeNamespaces,
    CanCommit,
    CanCommitTogether,
    CanCountRows,
    CanCreateTables,
    CanDropTables,
    CanKeepPurged,
    CanKeepVersions,
    CanListDeregistered,
    CanPrepareForEngines,
    CanRegisterTables,
    CanRenameTables,
    CanVendCredentials,
    CanWriteRows,
    Catalog,
)

SCHEMA = rows(1).schema
IMPL = {"managed_by": "impl"}
COLUMN = SchemaChange(add=(Addition((), pa.field("more", pa.int64())),))
MANAGED = pytest.mark.parametrize("managed_by", ["storage", "impl"])


class UpstreamCatalog(
    Catalog,
    CanForward,
    CanChangeNamespaces,
    CanCommit,
    CanCommitTogether,
    CanCountRows,
    CanCreateTables,
    CanDropTables,
    CanKeepPurged,
    CanKeepVersions,
    CanListDeregistered,
    CanPrepareForEngines,
    CanRegisterTables,
    CanRenameTables,
    CanVendCredentials,
    CanWriteRows,
    Protocol,
):
    """What a catalog over another server can do."""


class Killed(BaseException):
    pass


def killed(*_: object, **__: object) -> None:
    raise Killed


def opened(upstream: UpstreamWorld, **more: Any) -> UpstreamCatalog:
    settings: dict[str, Any] = {
        **dict.fromkeys(["warehouse", "prefix", "token", "credential", "oauth2_server_uri", "root"]),
        "pass_through": False,
        "scope": "catalog",
        "headers": {},
        "storage_options": {},
        "allowed_locations": ["/"],
        "connect_timeout": 10,
        "read_timeout": 60,
    }
    return open_upstream(upstream.url, **{**settings, **more})  # type: ignore[return-value]


def load(catalog: UpstreamCatalog, table: Levels) -> TableInfo:
    info = catalog.load_table(table)
    assert isinstance(info, TableInfo)
    return info


def versions(catalog: UpstreamCatalog, table: Levels) -> list[int]:
    return [each.version for each in load(catalog, table).versions]


def made(catalog: UpstreamCatalog, table: Levels, managed_by: str = "impl") -> str:
    return catalog.create_table(table, NewTable({"managed_by": managed_by}, schema=SCHEMA)).location


def append(catalog: UpstreamCatalog, table: Levels, number: int = 0) -> NewVersion:
    asked = stage(load(catalog, table).location, number).entry(table)
    catalog.create_table_versions([asked])
    return asked


def files(location: str) -> list[str]:
    return sorted(each.name for each in (folder_of(location) / "_versions").iterdir() if each.is_file())
