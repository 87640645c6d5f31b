"""The operations on rows: a table is created from an Arrow stream, rows are counted."""

import dataclasses
import json
import time
from collections.abc import Mapping
from contextlib import suppress

import pyarrow as pa
from pydantic import RootModel, StrictStr
from starlette.responses import Response

from irc_bridge.catalog import properties
from irc_bridge.catalog.models import Commit, History, NewTable, TableInfo
from irc_bridge.catalog.ports import CanCommit, CanCountRows, CanCreateTables, CanWriteRows
from irc_bridge.errors import InvalidInput, TableAlreadyExists, TableNotFound
from irc_bridge.http import bodies
from irc_bridge.http.replies import JSON
from irc_bridge.lance_rest import replies
from irc_bridge.lance_rest.arrow_bodies import rows_of
from irc_bridge.lance_rest.calls import LanceCall, require_main
from irc_bridge.lance_rest.describing import properties_of, vended
from irc_bridge.lance_rest.requests import CountTableRowsRequest, LanceRequest, one_spelling

_ATTEMPTS = 10

Texts = RootModel[dict[StrictStr, StrictStr]]


def create_table(call: LanceCall) -> Response:
    mode = one_spelling(call.http.query.get("mode", "create"))
    if mode not in ("create", "existok", "overwrite"):
        raise InvalidInput(f"mode must be Create, ExistOk or Overwrite: {mode}")
    given = properties.kept(_texts(call, "properties"))
    _texts(call, "storage_options")
    rows = rows_of(call.http.body, call.max_body_bytes)
    new = NewTable(call.warehouse.properties_of_new(given), schema=rows.schema, rows=rows)
    for attempt in range(_ATTEMPTS):
        try:
            return _made(call, call.able(CanCreateTables).create_table(call.table, new), with_version=True)
        except TableAlreadyExists as error:
            exists = error
        # a table that was dropped meanwhile can be created again
        with suppress(TableNotFound):
            return _of_existing(call, mode, rows, given)
        time.sleep(0.005 * attempt)
    raise exists


def _of_existing(call: LanceCall, mode: str, rows: pa.Table, given: Mapping[str, str]) -> Response:
    """The answer to a create request for a name that has a table."""
    if mode == "existok":
        return _made(call, _now(call), with_version=False)
    call.able(CanWriteRows).write_rows(call.table, rows, given, overwrite=mode == "overwrite")
    return _made(call, _now(call), with_version=True)


def has_predicate(call: LanceCall) -> bool:
    """Whether count_rows reads the rows."""
    return b'"predicate"' in call.http.body


def count_table_rows(call: LanceCall) -> Response:
    """Replies with a bare number."""
    request = call.read(CountTableRowsRequest)
    count = call.able(CanCountRows).count_rows(call.table, request.version, request.predicate)
    return Response(str(count), media_type=JSON)


def get_table_stats(call: LanceCall) -> Response:
    call.read(LanceRequest)
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


def update_table_schema_metadata(call: LanceCall) -> Response:
    """Replaces the metadata of the schema. Body and reply are the metadata itself."""
    require_main(call.http.query.get("branch"))
    metadata = bodies.read(call.http.body, Texts).root
    call.able(CanCommit).commit(call.table, lambda _: Commit(schema_metadata=metadata))
    return replies.ok(metadata)


def _texts(call: LanceCall, name: str) -> dict[str, str]:
    """A query parameter that is a JSON object of texts."""
    value = call.http.query.get(name)
    if value is None:
        return {}
    with suppress(ValueError):
        content = json.loads(value)
        if isinstance(content, dict) and all(isinstance(text, str) for text in content.values()):
            return content
    raise InvalidInput(f"{name} must be a JSON object of strings: {value[:100]}")


def _now(call: LanceCall) -> TableInfo:
    info = call.catalog.load_table(call.table, History.HEADS)
    assert isinstance(info, TableInfo)
    return info


def _made(call: LanceCall, info: TableInfo, with_version: bool) -> Response:
    return replies.ok(
        {
            "location": info.location,
            "version": info.latest.version if with_version and info.latest else None,
            "properties": properties_of(info),
            "storage_options": vended(call, call.table, None),
        }
    )
