"""DescribeTable. What was said before is said again as long as the catalog knows of no change; a table is opened
only for what is new."""

import json
from typing import Any, NamedTuple

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.cache import Answer
from irc_bridge.catalog.models import History, Levels, TableInfo, TableVersion, Unchanged
from irc_bridge.catalog.ports import CanKeepVersions
from irc_bridge.catalog.properties import RESERVED_PREFIX
from irc_bridge.errors import InvalidInput, TableNotFound
from irc_bridge.lance_rest import replies
from irc_bridge.lance_rest.calls import Call
from irc_bridge.lance_rest.credentials import vended
from irc_bridge.lance_rest.requests import DescribeTableRequest, TableExistsRequest
from irc_bridge.lance_rest.schemas import json_schema
from irc_bridge.lance_rest.tags import version_of_tag
from irc_bridge.wire import JSON


class Wanted(NamedTuple):
    warehouse: str
    table: Levels
    uri: bool
    detailed: bool
    declared: bool


def describe_table(call: Call) -> Response:
    request = call.read(DescribeTableRequest)
    wanted = Wanted(
        call.warehouse.name,
        call.table,
        _either(call.flag("with_table_uri"), request.with_table_uri),
        _either(call.flag("load_detailed_metadata"), request.load_detailed_metadata),
        _either(call.flag("check_declared"), request.check_declared),
    )
    if request.version is None and request.tag is None:
        body = _latest(call, wanted)
    else:
        body = replies.encoded(_content(_then(call, request), wanted))
    return _with_options(call, body, request.vend_credentials)


def table_exists(call: Call) -> Response:
    request = call.read(TableExistsRequest)
    if not call.catalog.table_exists(call.table):
        raise TableNotFound(f"Table does not exist: {names.dotted(call.table)}")
    if request.version is not None:
        call.able(CanKeepVersions).describe_table_version(call.table, request.version)
    return replies.empty()


def properties_of(info: TableInfo) -> dict[str, str]:
    return {key: value for key, value in info.properties.items() if not key.startswith(RESERVED_PREFIX)}


def is_managed(info: TableInfo) -> bool:
    """Whether writers must commit through this server, seed 004."""
    return info.managed_by == "impl"


def _either(in_query: bool | None, in_body: bool | None) -> bool:
    return bool(in_body) if in_query is None else in_query


def _latest(call: Call, wanted: Wanted) -> bytes:
    catalog, known = call.catalog, call.answers.get(wanted)
    if known is not None and catalog.probes_inline and catalog.is_current(known.token):
        return known.body
    info = catalog.load_table(wanted.table, History.HEADS, known.token if known else None)
    if isinstance(info, Unchanged):
        assert known is not None
        body = known.body
    else:
        body = replies.encoded(_content(info, wanted))
    call.answers.put(wanted, Answer(info.token, body, etag="", reply=None))
    return body


def _then(call: Call, request: DescribeTableRequest) -> TableInfo:
    """The table as it was at a version or tag."""
    version = request.version
    if request.tag is not None:
        if version is not None:
            raise InvalidInput("version and tag cannot stand together: name one of them")
        now = call.catalog.load_table(call.table, History.HEADS)
        assert isinstance(now, TableInfo)
        version = version_of_tag(call.table, now, request.tag)
    assert version is not None
    return call.able(CanKeepVersions).load_version(call.table, version)


def _content(info: TableInfo, wanted: Wanted) -> dict[str, Any]:
    content: dict[str, Any] = {
        "location": info.location,
        "properties": properties_of(info),
        "managed_versioning": is_managed(info),
    }
    if wanted.uri:
        content["table_uri"] = info.location
    if wanted.declared or wanted.detailed:
        content["is_only_declared"] = info.latest is None
    if wanted.detailed:
        content |= {"table": wanted.table[-1], "namespace": list(wanted.table[:-1])}
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


def _with_options(call: Call, body: bytes, vend_credentials: bool | None) -> Response:
    options = vended(call, call.table, vend_credentials)
    if options is None:
        return Response(body, media_type=JSON)
    said = body.removesuffix(b"}") + b',"storage_options":' + json.dumps(options).encode() + b"}"
    return Response(said, headers=replies.SECRET, media_type=JSON)
