"""DescribeTable. An answer is sent again as long as the catalog knows of no change; a table is opened only after a
change."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.models import History, Levels, TableInfo, TableVersion, Unchanged
from irc_bridge.catalog.ports import CanKeepVersions, CanVendCredentials
from irc_bridge.catalog.properties import RESERVED_PREFIX
from irc_bridge.errors import InvalidInput, TableNotFound
from irc_bridge.http.cache import CachedAnswer
from irc_bridge.http.replies import NO_STORE, SlottedReply, encoded
from irc_bridge.lance_rest import replies
from irc_bridge.lance_rest.calls import LanceCall
from irc_bridge.lance_rest.requests import DescribeTableRequest, TableExistsRequest
from irc_bridge.lance_rest.schemas import json_schema
from irc_bridge.lance_rest.tags import version_of_tag


class Description(NamedTuple):
    """Which table a client asks for, and which fields of the answer."""

    warehouse: str
    table: Levels
    uri: bool
    detailed: bool
    declared: bool


def describe_table(call: LanceCall) -> Response:
    request = call.read(DescribeTableRequest)
    description = Description(
        call.warehouse.name,
        call.table,
        _either(call.flag("with_table_uri"), request.with_table_uri),
        _either(call.flag("load_detailed_metadata"), request.load_detailed_metadata),
        _either(call.flag("check_declared"), request.check_declared),
    )
    if request.version is None and request.tag is None:
        reply = _latest(call, description)
    else:
        reply = _reply(_earlier(call, request), description)
    options = vended(call, call.table, request.vend_credentials)
    return reply if options is None else reply.filled({"storage_options": options}, NO_STORE)


def table_exists(call: LanceCall) -> Response:
    request = call.read(TableExistsRequest)
    if not call.catalog.table_exists(call.table):
        raise TableNotFound(f"Table does not exist: {names.dotted(call.table)}")
    if request.version is not None:
        call.able(CanKeepVersions).describe_table_version(call.table, request.version)
    return replies.empty()


def properties_of(info: TableInfo) -> dict[str, str]:
    return {key: value for key, value in info.properties.items() if not key.startswith(RESERVED_PREFIX)}


def vended(call: LanceCall, table: Levels, vend_credentials: bool | None) -> Mapping[str, str] | None:
    """The storage options of the table, as Lance names them. None if the warehouse vends no credentials or the
    client declines them."""
    if vend_credentials is False or not call.warehouse.vend_credentials:
        return None
    return dict(call.able(CanVendCredentials).storage_options(table))


def is_managed(info: TableInfo) -> bool:
    """Whether writers must commit through this server (seed 004)."""
    return info.managed_by == "impl"


def _either(in_query: bool | None, in_body: bool | None) -> bool:
    return bool(in_body) if in_query is None else in_query


def _latest(call: LanceCall, description: Description) -> SlottedReply:
    catalog, cached = call.catalog, call.answers.get(description)
    if cached is not None and catalog.probes_inline and catalog.is_current(cached.token):
        return cached.reply
    info = catalog.load_table(description.table, History.HEADS, cached.token if cached else None)
    if isinstance(info, Unchanged):
        assert cached is not None
        reply = cached.reply
    else:
        reply = _reply(info, description)
    call.answers.put(description, CachedAnswer(info.token, reply))
    return reply


def _earlier(call: LanceCall, request: DescribeTableRequest) -> TableInfo:
    """The table at the version, or at the tag, of the request."""
    version = request.version
    if request.tag is not None:
        if version is not None:
            raise InvalidInput("version and tag cannot stand together: name one of them")
        now = call.catalog.load_table(call.table, History.HEADS)
        assert isinstance(now, TableInfo)
        version = version_of_tag(call.table, now, request.tag)
    assert version is not None
    return call.able(CanKeepVersions).load_version(call.table, version)


def _reply(info: TableInfo, description: Description) -> SlottedReply:
    content = replies.fields(_content(info, description))
    return SlottedReply({key: encoded(value) for key, value in content.items()}, slot={})


def _content(info: TableInfo, description: Description) -> dict[str, Any]:
    content: dict[str, Any] = {
        "location": info.location,
        "properties": properties_of(info),
        "managed_versioning": is_managed(info),
    }
    if description.uri:
        content["table_uri"] = info.location
    if description.declared or description.detailed:
        content["is_only_declared"] = info.latest is None
    if description.detailed:
        content |= {"table": description.table[-1], "namespace": list(description.table[:-1])}
        content |= _details(info.latest, info) if info.latest else {}
    return content


def _details(latest: TableVersion, info: TableInfo) -> dict[str, Any]:
    count = latest.summary.get
    return {
        "version": latest.version,
        "schema": json_schema(latest.schema, info.schema_metadata),
        "stats": {
            "num_deleted_rows": int(count("total_deletion_file_rows", "0")),
            "num_fragments": int(count("total_fragments", "0")),
        },
        "metadata": dict(latest.summary),
    }
