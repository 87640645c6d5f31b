"""The operations that touch rows: a table made of an Arrow stream, and what can be counted."""

import dataclasses
import json
from contextlib import suppress

import pyarrow as pa
from pydantic import RootModel, StrictStr
from starlette.responses import Response

from irc_bridge import wire
from irc_bridge.catalog import properties
from irc_bridge.catalog.models import Commit, History, NewTable, TableInfo
from irc_bridge.catalog.ports import CanCommit, CanCountRows, CanCreateTables, CanWriteRows
from irc_bridge.errors import InvalidInput, TableAlreadyExists
from irc_bridge.lance_rest import replies
from irc_bridge.lance_rest.calls import Call, require_main
from irc_bridge.lance_rest.credentials import vended
from irc_bridge.lance_rest.describing import properties_of
from irc_bridge.lance_rest.requests import CountTableRowsRequest, Request, one_spelling

Texts = RootModel[dict[StrictStr, StrictStr]]


def create_table(call: Call) -> Response:
    mode = one_spelling(call.query.get("mode", "create"))
    if mode not in ("create", "existok", "overwrite"):
        raise InvalidInput(f"mode must be Create, ExistOk or Overwrite: {mode}")
    given = properties.kept(_texts(call, "properties"))
    _texts(call, "storage_options")
    rows = _rows(call.body)
    wanted = call.warehouse.properties_of_new(given)
    try:
        new = NewTable(wanted, schema=rows.schema, rows=rows)
        info = call.able(CanCreateTables).create_table(call.table, new)
    except TableAlreadyExists:
        if mode == "existok":
            return _made(call, _now(call), with_version=False)
        call.able(CanWriteRows).write_rows(call.table, rows, given, overwrite=mode == "overwrite")
        info = _now(call)
    return _made(call, info, with_version=True)


def count_table_rows(call: Call) -> Response:
    """A bare number."""
    request = call.read(CountTableRowsRequest)
    count = call.able(CanCountRows).count_rows(call.table, request.version, request.predicate)
    return Response(str(count), media_type=wire.JSON)


def get_table_stats(call: Call) -> Response:
    call.read(Request)
    stats = call.able(CanCountRows).table_stats(call.table)
    fragments = {
        "num_fragments": stats.fragments,
        "num_small_fragments": stats.small_fragments,
        "lengths": dataclasses.asdict(stats.lengths),
    }
    return replies.ok(
        {
            "total_bytes": stats.total_bytes,
            "num_rows": stats.rows,
            "num_indices": stats.indices,
            "fragment_stats": fragments,
        }
    )


def update_table_schema_metadata(call: Call) -> Response:
    """Replaces it. Bodies are the bare metadata."""
    require_main(call.query.get("branch"))
    metadata = wire.read(call.body, Texts).root
    call.able(CanCommit).commit(call.table, lambda _: Commit(schema_metadata=metadata))
    return replies.ok(metadata)


def _rows(body: bytes) -> pa.Table:
    if not body:
        raise InvalidInput("The request body must be an Arrow IPC stream; one without rows makes an empty table")
    try:
        with pa.ipc.open_stream(body) as stream:
            rows = stream.read_all()
        rows.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"The request body is no Arrow IPC stream: {error}") from None
    return rows


def _texts(call: Call, name: str) -> dict[str, str]:
    """A query parameter that holds a JSON object of texts."""
    value = call.query.get(name)
    if value is None:
        return {}
    with suppress(ValueError):
        content = json.loads(value)
        if isinstance(content, dict) and all(isinstance(each, str) for each in content.values()):
            return content
    raise InvalidInput(f"{name} must be a JSON object of strings: {value[:100]}")


def _now(call: Call) -> TableInfo:
    info = call.catalog.load_table(call.table, History.REFS)
    assert isinstance(info, TableInfo)
    return info


def _made(call: Call, info: TableInfo, with_version: bool) -> Response:
    return replies.ok(
        {
            "location": info.location,
            "version": info.latest.version if with_version and info.latest else None,
            "properties": properties_of(info),
            "storage_options": vended(call, call.table, None),
        }
    )
