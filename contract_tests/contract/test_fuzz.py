"""Whatever a client sends, the server does not crash: no answer is a 500."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from contract_tests.contract.reports import SCAN_REPORT
from contract_tests.contract.tables import SEARCH
from contract_tests.worlds.bridge import SCHEMA
from contract_tests.worlds.world import ONE_WORLD, Bridge

NESTED = {
    "type": "struct",
    "schema-id": 0,
    "identifier-field-ids": [1],
    "fields": [
        *SCHEMA["fields"],  # type: ignore[misc]
        {"id": 3, "name": "d", "type": "decimal(9, 2)", "required": False, "doc": "money"},
        {"id": 4, "name": "l", "required": False,
         "type": {"type": "list", "element-id": 5, "element": "float", "element-required": False}},
        {"id": 6, "name": "m", "required": False,
         "type": {"type": "map", "key-id": 7, "key": "string", "value-id": 8, "value": "fixed[4]",
                  "value-required": True}},
        {"id": 9, "name": "s", "required": False,
         "type": {"type": "struct", "fields": [{"id": 10, "name": "x", "type": "timestamptz", "required": True}]}},
    ],
}  # fmt: skip
SPEC = {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "bucket[4]"}]}
ORDER = {
    "order-id": 1,
    "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
}
TABLE = {"namespace": ["default"], "name": "fuzzed"}
COMMIT = {
    "requirements": [
        {"type": "assert-create"}, {"type": "assert-table-uuid", "uuid": "0c0d0e0f-0000-0000-0000-000000000000"},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
    ],
    "updates": [
        {"action": "assign-uuid", "uuid": "0c0d0e0f-0000-0000-0000-000000000000"},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": NESTED, "last-column-id": 10},
        {"action": "set-current-schema", "schema-id": -1}, {"action": "add-spec", "spec": SPEC},
        {"action": "add-sort-order", "sort-order": ORDER}, {"action": "set-location", "location": "x"},
        {"action": "set-properties", "updates": {"a": "b"}}, {"action": "remove-properties", "removals": ["a"]},
        {"action": "add-snapshot", "snapshot": {"snapshot-id": 2, "timestamp-ms": 1, "manifest-list": "x",
                                                "sequence-number": 1, "summary": {"operation": "append"}}},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
    ],
}  # fmt: skip
BODIES: list[tuple[str, Any]] = [
    ("namespaces", {"namespace": ["fuzzed"], "properties": {"a": "b"}}),
    ("namespaces/default/properties", {"removals": ["a"], "updates": {"b": "c"}}),
    ("namespaces/default/tables", {"name": "fuzzed", "schema": NESTED, "properties": {"a": "b"}}),
    ("namespaces/default/tables", {"name": "f", "schema": SCHEMA, "partition-spec": SPEC, "write-order": ORDER,
                                   "location": "x", "stage-create": False}),
    ("namespaces/default/register", {"name": "fuzzed", "metadata-location": "x", "overwrite": False}),
    ("tables/rename", {"source": TABLE, "destination": {**TABLE, "name": "other"}}),
    ("namespaces/default/tables/fuzzed", COMMIT),
    ("namespaces/default/tables/fuzzed", {**COMMIT, "requirements": COMMIT["requirements"][1:]}),
    ("namespaces/default/tables/fuzzed/metrics", SCAN_REPORT),
    ("transactions/commit", {"table-changes": [{"identifier": TABLE, **COMMIT}]}),
    ("namespaces/default/tables/fuzzed/plan", {"snapshot-id": 1, "select": ["a"], "filter": {"type": "true"}}),
]  # fmt: skip

TEXT = st.text(max_size=4) | st.sampled_from(
    ["struct", "list", "map", "decimal(99,1)", "decimal(0, 0)", "decimal(2,5)", "fixed[-1]", "fixed[99999999999]",
     "unknown", "variant", "geometry(x)", "void", "bucket[0]", "truncate[-1]", "main", "\x00", "\ud800", "9" * 400]
)  # fmt: skip
NUMBERS = st.integers() | st.floats() | st.sampled_from([2**31, 2**63, -(2**63), 10**400])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
ABSENT = object()


def places_in(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = node.keys() if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield (*path, key)
        yield from places_in(node[key], (*path, key))


def changed(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    body = copy.deepcopy(body)
    parent = body
    for key in path[:-1]:
        parent = parent[key]
    if value is ABSENT:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return body


@st.composite
def requests_with_one_thing_wrong(draw: st.DrawFn) -> tuple[str, Any]:
    path, body = draw(st.sampled_from(BODIES))
    place = draw(st.sampled_from(list(places_in(body))))
    return path, changed(body, place, draw(st.just(ABSENT) | VALUES))


@ONE_WORLD
@settings(SEARCH, max_examples=400)
@given(requests_with_one_thing_wrong())
def test_one_wrong_thing_in_a_body(bridge: Bridge, asked: tuple[str, Any]) -> None:
    path, body = asked
    with bridge.server.client() as client:
        response = client.post(path, data=json.dumps(body).encode())
    assert response.status_code < 500, (path, response.text)


HEADERS = st.sampled_from(
    ["If-None-Match", "X-Iceberg-Access-Delegation", "Content-Type", "Accept", "Accept-Encoding", "X-Request-ID",
     "Idempotency-Key", "If-Match", "Range", "Expect", "X-Forwarded-For"]
)  # fmt: skip
LATIN = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=12)
PATHS = ["/v1/config", "namespaces", "namespaces/default/tables", "namespaces/default/tables/fuzzed"]
QUERIES = st.dictionaries(
    st.sampled_from(["pageToken", "pageSize", "parent", "snapshots", "purgeRequested", "warehouse", "x"]),
    TEXT.filter(lambda each: each.isprintable()),
)


@ONE_WORLD
@settings(SEARCH, max_examples=200)
@given(
    path=st.sampled_from(PATHS),
    headers=st.dictionaries(HEADERS, LATIN.map(str.strip), max_size=2),
    query=QUERIES,
)  # fmt: skip
def test_odd_headers_and_queries(
    bridge: Bridge, path: str, headers: dict[str, str], query: dict[str, str]
) -> None:
    sent = {name: value.encode("latin-1") for name, value in headers.items()}
    with bridge.server.client() as client:
        response = client.get(path, headers=sent, params=query)
    assert response.status_code < 500, response.text
