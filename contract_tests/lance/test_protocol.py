"""What holds for every operation."""

import json
from pathlib import Path

import pytest
import requests

from contract_tests.lance.client import Lance, ok, refused
from contract_tests.worlds.bridge import raw_request
from contract_tests.worlds.world import ONE_WORLD, Bridge

pytestmark = ONE_WORLD

UNSUPPORTED = {
    "QueryTable": "table/t/query",
    "ExplainTableQueryPlan": "table/t/explain_plan",
    "AnalyzeTableQueryPlan": "table/t/analyze_plan",
    "InsertIntoTable": "table/t/insert",
    "MergeInsertIntoTable": "table/t/merge_insert",
    "UpdateTable": "table/t/update",
    "DeleteFromTable": "table/t/delete",
    "RestoreTable": "table/t/restore",
    "AlterTableAddColumns": "table/t/add_columns",
    "AlterTableAlterColumns": "table/t/alter_columns",
    "AlterTableDropColumns": "table/t/drop_columns",
    "AlterTableBackfillColumns": "table/t/backfill_column",
    "UpdateFieldMetadata": "table/t/update_field_metadata",
    "CreateTableIndex": "table/t/create_index",
    "CreateTableScalarIndex": "table/t/create_scalar_index",
    "ListTableIndices": "table/t/index/list",
    "DescribeTableIndexStats": "table/t/index/i/stats",
    "DropTableIndex": "table/t/index/i/drop",
    "ListTableBranches": "table/t/branches/list",
    "CreateTableBranch": "table/t/branches/create",
    "DeleteTableBranch": "table/t/branches/delete",
    "BatchCommitTables": "table/batch-commit",
    "DescribeTransaction": "transaction/t/describe",
    "AlterTransaction": "transaction/t/alter",
    "CreateMaterializedView": "materialized_view/t/create",
    "RefreshMaterializedView": "materialized_view/t/refresh",
}


@pytest.mark.parametrize(("operation", "path"), UNSUPPORTED.items(), ids=UNSUPPORTED.get)
def test_what_is_done_elsewhere_says_so(lance_rest: Lance, operation: str, path: str) -> None:
    message = refused(lance_rest.post(path, {}), 406, 0, operation)
    assert "pylance" in message or "keeps no such things" in message


@pytest.mark.parametrize(
    "path", ["nothing", "table/t", "table/t/nothing", "namespace/t/table", "table/t/u/create"]
)
def test_an_unknown_route(lance_rest: Lance, path: str) -> None:
    refused(lance_rest.post(path, {}), 404, 0, path)


def test_what_is_no_part_of_the_protocol(bridge: Bridge) -> None:
    for path in ("/lance/", "/lance/v1", "/lance/main", "/lance/main/v2/table"):
        assert requests.get(f"{bridge.server.url}{path}", timeout=30).json()["code"] == 0


def test_another_method(lance_rest: Lance, name: str) -> None:
    response = lance_rest.get(f"table/{name}/describe")
    refused(response, 405, 0, "GET")
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b'"\\ud800"', "not JSON"),
        (b"[]", "body"),
        (b'{"id": 7}', "id"),
        (b'{"properties": {"a": 1}}', "properties.a"),
        (b'{"location": ["x"]}', "location"),
    ],
)
def test_a_body_that_cannot_be_read_names_the_field(lance_rest: Lance, name: str, body: bytes, said: str) -> None:
    refused(lance_rest.table([name], "declare", body), 400, 13, said)


def test_a_field_that_is_missing(lance_rest: Lance, name: str) -> None:
    refused(lance_rest.table([name], "register", {}), 400, 13, "location")
    refused(lance_rest.table([name], "version/create", {"version": 1}), 400, 13, "manifest_path")
    refused(lance_rest.post("table/version/batch-create", {"entries": [{}]}), 400, 13, "entries.0.")


def test_fields_that_nobody_reads_are_let_pass(lance_rest: Lance, name: str) -> None:
    body = {"context": {"a": "b"}, "identity": {"api_key": "x"}, "new_in_version_2": [1], "id": [name]}
    ok(lance_rest.table([name], "declare", body))
    assert ok(lance_rest.table([name], "describe", body))["location"].endswith(f"{name}.lance")


def test_null_is_an_empty_body(lance_rest: Lance, name: str) -> None:
    ok(lance_rest.table([name], "declare", b"null"))
    for what in ("describe", "version/list", "tags/list", "drop"):
        ok(lance_rest.table([name], what, b"null"))


def test_body_and_path_must_name_the_same(lance_rest: Lance, name: str) -> None:
    refused(lance_rest.table([name], "declare", {"id": ["other"]}), 400, 13, "other", name)
    refused(lance_rest.namespace([name], "create", {"id": []}), 400, 13, name)
    # a name that holds the delimiter is not the object two levels deep
    refused(lance_rest.table(["a", "b"], "declare", {"id": ["a$b"]}), 400, 13, "a$b")


def test_the_root_is_the_delimiter(lance_rest: Lance, name: str) -> None:
    ok(lance_rest.table([name], "declare", {}))
    for delimiter in ("$", "::", "/", "é", "#"):
        assert name in ok(lance_rest.list([], "table/list", delimiter=delimiter))["tables"]
    ok(lance_rest.table([f"{name}~#~"], "declare", {}))
    refused(lance_rest.get("table", delimiter="~#~"), 400, 13, "another delimiter")
    refused(lance_rest.table([], "describe", {}), 400, 13, "root")
    refused(lance_rest.list([], "table/list", delimiter=""), 400, 13, "delimiter")


@pytest.mark.parametrize(
    "query",
    [{"limit": "x"}, {"limit": "-1"}, {"limit": "9" * 5000}, {"page_token": "x"}, {"include_declared": "maybe"}],
)
def test_a_parameter_that_cannot_be(lance_rest: Lance, query: dict[str, str]) -> None:
    refused(lance_rest.list([], "table/list", **query), 400, 13)


def test_a_branch_is_not_served(lance_rest: Lance, name: str) -> None:
    ok(lance_rest.create([name]))
    assert ok(lance_rest.table([name], "describe", {"branch": "main"}))
    for what in ("describe", "count_rows", "version/describe"):
        refused(lance_rest.table([name], what, {"branch": "b", "version": 1}), 406, 0, "b")
    refused(lance_rest.table([name], "version/list", branch="b"), 406, 0)


def test_no_trace_leaves(lance_rest: Lance, bridge: Bridge, name: str) -> None:
    ok(lance_rest.create([name]))
    for manifest in (Path(str(bridge.root)) / f"{name}.lance" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"no manifest")
    message = refused(lance_rest.table([name], "describe", {}), 500, 18, "Only this table is affected")
    assert ".rs" not in message


def test_a_warehouse_in_the_path(bridge: Bridge, name: str) -> None:
    with Lance(bridge.server.url, "main") as named, Lance(bridge.server.url) as plain:
        ok(named.table([name], "declare", {}))
        assert name in ok(plain.get("table"))["tables"]
    with Lance(bridge.server.url, "other") as other:
        refused(other.get("table"), 404, 1, "other", "main")


TWO_BYTES = "Content-Type: application/json\r\nContent-Length: 2"


def test_names_may_be_encoded_in_any_way(lance_rest: Lance, bridge: Bridge, name: str) -> None:
    """Rust clients write a space as a plus, others as %20."""
    ok(lance_rest.table([f"{name} é+%24"], "declare", {}))
    for raw in (f"{name}+%C3%A9%2B%2524", f"{name}%20%c3%a9%2b%2524"):
        head = f"POST /lance/v1/table/{raw}/exists HTTP/1.1\r\n{TWO_BYTES}".encode()
        with raw_request(bridge.server.url, head, b"{}") as response:
            assert response.status == 200
    head = f"POST /lance/v1/table/%FF/exists HTTP/1.1\r\n{TWO_BYTES}".encode()
    with raw_request(bridge.server.url, head, b"{}") as response:
        assert (response.status, json.loads(response.read())["code"]) == (400, 13)
