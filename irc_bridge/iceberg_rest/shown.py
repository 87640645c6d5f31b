"""A table's metadata as a request answers it."""

from contextlib import suppress
from dataclasses import replace

from pyiceberg.table.metadata import TableMetadataV2

from irc_bridge.catalog.models import Levels, TableInfo
from irc_bridge.catalog.ports import CanPrepareForEngines
from irc_bridge.errors import BridgeError
from irc_bridge.iceberg_rest.calls import Call
from irc_bridge.translation.metadata import table_metadata
from irc_bridge.translation.snapshots import needs_empty_list


def answered_metadata(call: Call, table: Levels, info: TableInfo, *, full: bool = True) -> TableMetadataV2:
    """The metadata for an answer after which Iceberg clients scan the table or write beside it. The folders for
    their files are made, and a table with a version without rows gets the manifest list of such versions."""
    return table_metadata(_prepared(call, table, info), call.warehouse.view, full=full)


def _prepared(call: Call, table: Levels, info: TableInfo) -> TableInfo:
    if info.latest is None or call.warehouse.read_only or not isinstance(call.catalog, CanPrepareForEngines):
        return info
    # a storage that cannot be written to can be read all the same
    with suppress(BridgeError):
        made = call.catalog.prepare_for_engines(table, _empty_list() if needs_empty_list(info) else None)
        return replace(info, empty_list=made or info.empty_list)
    return info


def _empty_list() -> bytes:
    # imported late, because a server of tables with rows never needs it
    from irc_bridge.mirror.avro import empty_list

    return empty_list()
