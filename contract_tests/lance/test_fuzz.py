"""Whatever a client sends, the server does not crash: no answer is a 500, and each is one of the specification."""

import json
from typing import Any

import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from contract_tests.contract.tables import SEARCH
from contract_tests.contract.test_fuzz import ABSENT, TEXT, VALUES, changed, places_in
from contract_tests.lance.client import ROWS, Lance, ipc
from contract_tests.worlds.world import ONE_WORLD, Bridge

VERSION = {
    "version": 2, "manifest_path": "_versions/2.manifest-x", "manifest_size": 9, "e_tag": "x",
    "naming_scheme": "V2", "branch": "main", "metadata": {"a": "b"},
}  # fmt: skip
NAMESPACE, TABLE = {"id": ["fuzzed"]}, {"id": ["fuzzed_table"]}
BODIES: list[tuple[str, Any]] = [
    ("namespace/fuzzed/create", {**NAMESPACE, "mode": "ExistOk", "properties": {"a": "b"}}),
    ("namespace/fuzzed/drop", {**NAMESPACE, "mode": "Skip", "behavior": "Restrict"}),
    ("table/fuzzed_table/declare", {**TABLE, "location": "x", "properties": {"a": "b"}, "vend_credentials": True}),
    ("table/fuzzed_table/register", {**TABLE, "location": "x", "mode": "Create", "properties": {"a": "b"}}),
    ("table/fuzzed_table/describe", {**TABLE, "version": 1, "with_table_uri": True, "check_declared": True}),
    ("table/fuzzed_table/describe", {**TABLE, "tag": "a", "load_detailed_metadata": True}),
    ("table/fuzzed_table/exists", {**TABLE, "version": 1}),
    ("table/fuzzed_table/rename", {**TABLE, "new_table_name": "fuzzed_too", "new_namespace_id": ["fuzzed"]}),
    ("table/fuzzed_table/count_rows", {**TABLE, "version": 1, "predicate": "id > 1"}),
    ("table/fuzzed_table/stats", {**TABLE, "branch": "main"}),
    ("table/fuzzed_table/schema_metadata/update", {"a": "b"}),
    ("table/fuzzed_table/version/create", {**TABLE, **VERSION}),
    ("table/fuzzed_table/version/describe", {**TABLE, "version": 1}),
    ("table/fuzzed_table/version/delete", {**TABLE, "ranges": [{"start_version": 7, "end_version": 9}]}),
    ("table/version/batch-create", {"entries": [{**TABLE, **VERSION}]}),
    ("table/fuzzed_table/tags/create", {**TABLE, "tag": "a", "version": 1}),
    ("table/fuzzed_table/tags/update", {**TABLE, "tag": "a", "version": 1}),
    ("table/fuzzed_table/tags/version", {**TABLE, "tag": "a"}),
    ("table/fuzzed_table/tags/delete", {**TABLE, "tag": "a"}),
]
IN_TEXT = TEXT.filter(lambda each: each.isprintable())
QUERIES = st.dictionaries(
    st.sampled_from(["delimiter", "page_token", "limit", "include_declared", "descending", "branch", "mode",
                     "properties", "storage_options", "load_detailed_metadata", "x"]),
    IN_TEXT,
)  # fmt: skip


@st.composite
def one_thing_wrong(draw: st.DrawFn) -> tuple[str, Any]:
    path, body = draw(st.sampled_from(BODIES))
    place = draw(st.sampled_from(list(places_in(body))))
    return path, changed(body, place, draw(st.just(ABSENT) | VALUES))


def require_no_crash(response: requests.Response) -> None:
    assert response.status_code < 500, (response.request.url, response.text)


@ONE_WORLD
@settings(SEARCH, max_examples=300)
@given(one_thing_wrong())
def test_one_wrong_thing_in_a_body(bridge: Bridge, asked: tuple[str, Any]) -> None:
    path, body = asked
    with Lance(bridge.server.url) as client:
        client.create(["fuzzed_table"])
        require_no_crash(client.post(path, json.dumps(body).encode()))


@ONE_WORLD
@settings(SEARCH, max_examples=150)
@given(
    path=st.sampled_from(["namespace/%24/list", "namespace/fuzzed/table/list", "table"]),
    operation=st.sampled_from(["describe", "version/list", "tags/list", "schema_metadata/update"]),
    query=QUERIES,
)
def test_odd_queries(bridge: Bridge, path: str, operation: str, query: dict[str, str]) -> None:
    with Lance(bridge.server.url) as client:
        require_no_crash(client.get(path, **query))
        require_no_crash(client.post(f"table/fuzzed_table/{operation}", {}, **query))


@ONE_WORLD
@settings(SEARCH, max_examples=100)
@given(at=st.integers(0, len(ipc(ROWS)) - 1), value=st.integers(0, 255), query=QUERIES)
def test_a_damaged_stream(bridge: Bridge, at: int, value: int, query: dict[str, str]) -> None:
    body = bytearray(ipc(ROWS))
    body[at] = value
    with Lance(bridge.server.url) as client:
        require_no_crash(client.table(["fuzzed_rows"], "create", bytes(body), mode="overwrite"))
        require_no_crash(client.post("table/fuzzed_rows/create", bytes(body), **query))
