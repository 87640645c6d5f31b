"""The server against the Iceberg REST specification: every operation, and what is told about them."""

import json
from typing import Any
from urllib.parse import quote

import pytest
import requests

from contract_tests.strangers.openapi import SPECIFICATION, Specification, specification
from contract_tests.worlds.bridge import SCHEMA, Client, assert_error, assert_ok
from contract_tests.worlds.world import COMPATIBLE, World
from contract_tests.worlds.writer import write

pytestmark = pytest.mark.skipif(not SPECIFICATION.exists(), reason=f"there is no {SPECIFICATION.name}")

ADVERTISED = {
    "listNamespaces", "createNamespace", "loadNamespaceMetadata", "namespaceExists", "dropNamespace",
    "updateProperties", "listTables", "createTable", "registerTable", "loadTable", "tableExists", "updateTable",
    "dropTable", "loadCredentials", "reportMetrics", "renameTable",
}  # fmt: skip
WITHOUT = {
    "child namespaces": {"createNamespace", "dropNamespace", "updateProperties"},
    "rename": {"renameTable"},
}
ALWAYS_ROUTED = {"getConfig", "getToken"}


@pytest.fixture
def known() -> Specification:
    found = specification()
    assert found
    return found


class Walk:
    """One good request for each operation of the specification, in an order in which all can succeed."""

    def __init__(self, client: Client, namespace: str, table: str) -> None:
        self.client = client
        self.names = {"namespace": namespace, "table": table, "view": "v", "plan-id": "p"}

    def bodies(self) -> dict[str, Any]:
        namespace, table = [self.names["namespace"]], self.names["table"]
        moved = {"namespace": namespace, "name": table}
        view_version = {
            "version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": namespace,
            "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
        }  # fmt: skip
        return {
            "createNamespace": {"namespace": [f"{namespace[0]}_made"]},
            "updateProperties": {"updates": {"a": "b"}, "removals": []},
            "createTable": {"name": f"{table}_made", "schema": SCHEMA},
            "registerTable": {"name": f"{table}_registered", "metadata-location": "nowhere"},
            "updateTable": {"requirements": [], "updates": []},
            "reportMetrics": {
                "report-type": "commit-report", "table-name": table, "snapshot-id": 1, "sequence-number": 1,
                "operation": "append", "metrics": {},
            },
            "renameTable": {"source": moved, "destination": {**moved, "name": f"{table}_moved"}},
            "commitTransaction": {"table-changes": []},
            "planTableScan": {"snapshot-id": 1},
            "fetchScanTasks": {"plan-task": "none"},
            "createView": {"name": "v", "schema": SCHEMA, "view-version": view_version, "properties": {}},
            "replaceView": {"requirements": [], "updates": []},
            "renameView": {"source": moved, "destination": moved},
        }  # fmt: skip

    def ask(self, operation: Any, prefix: str | None = "main") -> requests.Response:
        path = operation.template.replace("/{prefix}", f"/{prefix}" if prefix else "")
        for key, value in self.names.items():
            path = path.replace(f"{{{key}}}", quote(value, safe=""))
        if operation.id == "getToken":
            return self.client.post(path, data={"grant_type": "client_credentials"})
        return self.client.request(operation.method, path, json=self.bodies().get(operation.id))


@pytest.fixture
def walk(client: Client, namespace: tuple[str, ...], name: str) -> Walk:
    client.create_table(namespace, name)
    return Walk(client, namespace[0], name)


def test_there_are_thirty(known: Specification) -> None:
    assert len(known.operations) == 30


@pytest.mark.parametrize("prefix", ["main", None])
def test_every_operation_is_routed(walk: Walk, known: Specification, prefix: str | None) -> None:
    """The checker behind every client holds each answer against the statuses declared for the operation."""
    changes = {"DELETE": 1}
    for operation in sorted(known.operations, key=lambda each: (changes.get(each.method, 0), each.id)):
        response = walk.ask(operation, prefix)
        assert response.status_code not in (405, 500, 501), (operation.endpoint, response.text)
        if response.status_code == 404 and operation.method != "HEAD":
            assert response.json()["error"]["type"] != "NoSuchEndpointException", operation.endpoint


def test_the_endpoints_are_those_that_work(world: World, walk: Walk, known: Specification) -> None:
    told = assert_ok(walk.client.get("/v1/config"))["endpoints"]
    assert len(told) == len(set(told))
    missing = set().union(*(WITHOUT.get(ability, set()) for ability in world.cannot))
    by_endpoint = {operation.endpoint: operation.id for operation in known.operations}
    together = {"commitTransaction"} if "table_version_management" in world.settings else set()
    assert {by_endpoint[each] for each in told} - ALWAYS_ROUTED == (ADVERTISED | together) - missing
    for operation in known.operations:
        if operation.id in {"registerTable", "dropNamespace", "dropTable", "renameTable"}:
            continue  # their good walks are in the contract tests
        status = walk.ask(operation).status_code
        if operation.endpoint in told:
            assert status in (200, 204), operation.endpoint
        elif operation.id == "commitTransaction":
            assert status == 204, "over one table it always works"
        elif operation.id not in {*ALWAYS_ROUTED, "listViews"}:
            assert status in (400, 404, 406), operation.endpoint


@pytest.mark.parametrize("prefix", ["main", None])
def test_what_is_not_offered_says_so(world: World, walk: Walk, known: Specification, prefix: str | None) -> None:
    told = set(assert_ok(walk.client.get("/v1/config"))["endpoints"])
    answers = {each.id: walk.ask(each, prefix) for each in known.operations if each.endpoint not in told}
    assert assert_ok(answers.pop("listViews"))["identifiers"] == []
    assert answers.pop("viewExists").status_code == 404
    for view in ("loadView", "replaceView", "dropView", "renameView"):
        assert_error(answers.pop(view), 404, "NoSuchViewException", names="no views")
    for plan, type_ in (
        ("fetchPlanningResult", "NoSuchPlanIdException"),
        ("cancelPlanning", "NoSuchPlanIdException"),
        ("fetchScanTasks", "NoSuchPlanTaskException"),
    ):
        assert_error(answers.pop(plan), 404, type_)
    for operation in (*ALWAYS_ROUTED, "commitTransaction"):
        answers.pop(operation, None)
    for operation, answer in answers.items():
        assert answer.status_code in (400, 406), operation
        message = assert_error(answer, answer.status_code, "BadRequestException", "UnsupportedOperationException")
        assert len(message.split()) > 3, message


def test_views_of_nothing(client: Client, name: str) -> None:
    assert_error(client.get(f"namespaces/{name}/views"), 404, "NoSuchNamespaceException")
    assert_ok(client.get("namespaces/default/views", params={"pageToken": "", "pageSize": "1"}))


def test_a_read_only_warehouse_tells_what_can_be_read(tmp_path: Any) -> None:
    write(tmp_path / "tables" / "t.lance")
    with COMPATIBLE.start(tmp_path, "read_only = true\n") as bridge:
        told = assert_ok(bridge.client.get("/v1/config"))["endpoints"]
        assert {each.split()[0] for each in told} == {"GET", "HEAD", "POST"}
        assert [each for each in told if each.startswith("POST")] == [
            "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"
        ]


class TestTheChecker:
    """It fails on what it is there to find."""

    GOOD = b'{"error": {"message": "no", "type": "NoSuchTableException", "code": 404}}'
    JSON = {"content-type": "application/json"}  # noqa: RUF012
    TABLE = "/v1/main/namespaces/a/tables/t"

    def test_a_good_answer_passes(self, known: Specification) -> None:
        known.check("GET", self.TABLE, 404, self.JSON, self.GOOD)
        known.check("GET", "/v1/namespaces/a/tables/t", 404, self.JSON, self.GOOD)
        known.check("HEAD", self.TABLE, 204, {}, b"")
        known.check("GET", "/v1/config", 200, self.JSON, b'{"defaults": {}, "overrides": {}}')

    @pytest.mark.parametrize(
        ("method", "path", "status", "body"),
        [
            ("GET", TABLE, 404, b'{"detail": "no"}'),
            ("GET", TABLE, 404, b'{"error": {"message": "no", "code": 404}}'),
            ("GET", TABLE, 409, GOOD),
            ("GET", TABLE, 406, GOOD),
            ("GET", TABLE, 204, b""),
            ("GET", TABLE, 200, b'{"metadata": {"format-version": 2}}'),
            ("GET", TABLE, 200, b'{"metadata": {"format-version": 2, "table-uuid": "u", "snapshots": [{}]}}'),
            (
                "GET",
                TABLE,
                200,
                b'{"metadata": {"format-version": 2, "table-uuid": "u", "current-snapshot-id": 1e30}}',
            ),
            ("HEAD", TABLE, 200, b""),
            ("HEAD", TABLE, 404, GOOD),
            ("DELETE", TABLE, 204, GOOD),
            ("GET", "/v1/main/namespaces", 200, b'{"namespaces": ["a"]}'),
            ("GET", "/v1/main/nothing", 200, b"{}"),
            ("GET", "/v1/main/nothing", 404, b'"Not Found"'),
            ("POST", "/v1/oauth/tokens", 400, GOOD),
            ("GET", "/v1/config", 200, b'{"defaults": {}}'),
        ],
    )
    def test_a_bad_one_does_not(
        self, known: Specification, method: str, path: str, status: int, body: bytes
    ) -> None:
        with pytest.raises(AssertionError):
            known.check(method, path, status, self.JSON, body)

    def test_a_body_that_is_no_json_does_not(self, known: Specification) -> None:
        with pytest.raises(AssertionError):
            known.check("GET", self.TABLE, 404, {"content-type": "text/plain"}, b"Not Found")
        with pytest.raises(json.JSONDecodeError):
            known.check("GET", self.TABLE, 404, self.JSON, b"Not Found")
