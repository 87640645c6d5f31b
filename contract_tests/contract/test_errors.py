"""Every error under /v1 is the Iceberg envelope; a message names the field that is wrong."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract_tests.conftest import Start
from contract_tests.worlds.bridge import (
    SCHEMA,
    Client,
    Server,
    assert_error,
    assert_ok,
    namespace_path,
    raw_request,
    table_path,
)
from contract_tests.worlds.world import COMPATIBLE, ONE_WORLD, Bridge

Place = tuple[str, ...]
TABLES = "namespaces/default/tables"
MIB = 1024 * 1024


@ONE_WORLD
class TestRouter:
    @pytest.mark.parametrize(
        "path",
        ["/v1", "/v1/", "/v1/main", "/v1/main/", "/v1/nothing", "/v1/main/nothing/at/all", "/v1/main/namespaces/",
         "/v1/main/namespaces/default/nothing", "/v1/main/namespaces/default/tables/t/nothing", "/v1/config/",
         "/v1/main/namespaces/default/tables/", "/v1/main/namespaces//tables",
         "/v1/main/namespaces/default/tables//"],
    )  # fmt: skip
    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_no_such_route(self, client: Client, method: str, path: str) -> None:
        response = client.request(method, path, json={} if method == "POST" else None)
        emptied = path.endswith("/") or "//" in path
        assert response.status_code in ((400, 404, 405) if emptied else (404,)), response.text
        assert response.json()["error"]["code"] == response.status_code

    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            ("PUT", "/v1/main/namespaces", {"GET", "POST"}),
            ("DELETE", "/v1/main/namespaces", {"GET", "POST"}),
            ("PATCH", "/v1/main/namespaces/default", {"GET", "HEAD", "DELETE"}),
            ("PUT", "/v1/main/namespaces/default/tables/t", {"GET", "HEAD", "POST", "DELETE"}),
            ("GET", "/v1/main/tables/rename", {"POST"}),
            ("POST", "/v1/config", {"GET"}),
            ("OPTIONS", "/v1/main/namespaces", {"GET", "POST"}),
            ("PROPFIND", "/v1/main/namespaces", {"GET", "POST"}),
        ],
    )
    def test_a_method_that_is_not_allowed(self, client: Client, method: str, path: str, allowed: set[str]) -> None:
        response = client.request(method, path)
        assert_error(response, 405)
        assert set(response.headers["Allow"].replace(" ", "").split(",")) >= allowed

    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_head_has_no_body_and_says_the_same(self, client: Client, name: str, method: str) -> None:
        response = client.request(method, namespace_path((name,)))
        assert response.status_code == 404
        assert bool(response.content) == (method == "GET")


CREATE_TABLE: dict[str, Any] = {"name": "t", "schema": SCHEMA}
WRONG: list[tuple[str, Any, str]] = [
    ("namespaces", {}, "namespace"),
    ("namespaces", {"namespace": None}, "namespace"),
    ("namespaces", {"namespace": "a"}, "namespace"),
    ("namespaces", {"namespace": []}, "namespace"),
    ("namespaces", {"namespace": [1]}, "namespace"),
    ("namespaces", {"namespace": ["x"], "properties": []}, "properties"),
    ("namespaces", {"namespace": ["x"], "properties": {"a": 1}}, "properties"),
    ("namespaces", {"namespace": ["x"], "properties": {"a": None}}, "properties"),
    ("namespaces/default/properties", {"removals": "a"}, "removals"),
    ("namespaces/default/properties", {"updates": ["a"]}, "updates"),
    ("namespaces/default/properties", {"updates": {"a": {"b": 1}}}, "updates"),
    (TABLES, {}, "name"),
    (TABLES, {"name": "t"}, "schema"),
    (TABLES, {"schema": SCHEMA}, "name"),
    (TABLES, {**CREATE_TABLE, "name": 1}, "name"),
    (TABLES, {**CREATE_TABLE, "name": None}, "name"),
    (TABLES, {**CREATE_TABLE, "schema": []}, "schema"),
    (TABLES, {**CREATE_TABLE, "schema": {}}, "schema"),
    (TABLES, {**CREATE_TABLE, "schema": {"type": "struct"}}, "schema"),
    (TABLES, {**CREATE_TABLE, "schema": {"type": "struct", "fields": [1]}}, "schema"),
    (TABLES, {**CREATE_TABLE, "schema": {"type": "struct", "fields": [{"id": 1}]}}, "schema"),
    (TABLES, {**CREATE_TABLE, "location": 1}, "location"),
    (TABLES, {**CREATE_TABLE, "properties": "a"}, "properties"),
    (TABLES, {**CREATE_TABLE, "properties": {"a": ["b"]}}, "properties"),
    (TABLES, {**CREATE_TABLE, "stage-create": "sometimes"}, "stage-create"),
    (TABLES, {**CREATE_TABLE, "partition-spec": "a"}, "partition-spec"),
    (TABLES, {**CREATE_TABLE, "write-order": 7}, "write-order"),
    ("namespaces/default/register", {}, "name"),
    ("namespaces/default/register", {"name": "t"}, "metadata-location"),
    ("namespaces/default/register", {"name": "t", "metadata-location": {}}, "metadata-location"),
    ("tables/rename", {}, "source"),
    ("tables/rename", {"source": {"namespace": ["default"], "name": "t"}}, "destination"),
    ("tables/rename", {"source": "t", "destination": "u"}, "source"),
    ("tables/rename", {"source": {"namespace": "x", "name": "t"}, "destination": {}}, "source"),
]


@ONE_WORLD
class TestBodies:
    @pytest.mark.parametrize(("path", "body", "field"), WRONG, ids=lambda each: str(each)[:60])
    def test_a_wrong_field_is_named(self, bridge: Bridge, path: str, body: Any, field: str) -> None:
        before = bridge.root.files()
        message = assert_error(bridge.client.post(path, json=body), 400, "BadRequestException", names=field)
        assert "pydantic" not in message and "Traceback" not in message
        assert bridge.root.files() == before

    @pytest.mark.parametrize(
        "body",
        [b"", b"{", b"nonsense", b"[]", b'"text"', b"null", b"7", b"\xff\xfe", b'{"namespace": ["a"]} more',
         b"[" * 100_000, b'{"a":' * 100_000, b'{"namespace": ["\\ud800"]}', b'{"namespace": [NaN]}'],
        ids=lambda body: repr(body[:20]),
    )  # fmt: skip
    @pytest.mark.parametrize(
        "path", ["namespaces", TABLES, "namespaces/default/register", "tables/rename", f"{TABLES}/t"]
    )
    def test_what_is_no_json_object(self, client: Client, path: str, body: bytes) -> None:
        response = client.post(path, data=body, headers={"Content-Type": "application/json"})
        assert_error(response, 400, "BadRequestException")

    def test_unknown_fields_are_left_alone(self, client: Client, place: Place, name: str) -> None:
        """Newer clients say more than 1.9.0 knows."""
        client.create_table(place, name, **{"idempotency": 1, "encryption-keys": []})
        assert client.head(table_path(place, name)).status_code == 204

    def test_json_has_many_content_types(self, client: Client, place: Place, name: str) -> None:
        body = json.dumps({"name": name, "schema": SCHEMA})
        for content_type in ("application/json", "Application/JSON; charset=utf-8", "application/problem+json"):
            response = client.post(
                f"{namespace_path(place)}/tables", data=body, headers={"Content-Type": content_type}
            )
            assert_ok(response)
            client.delete(table_path(place, name), params={"purgeRequested": "true"})


@ONE_WORLD
class TestLimit:
    def post(self, bridge: Bridge, headers: bytes, *body: bytes) -> tuple[int, Any]:
        line = b"POST /v1/main/namespaces HTTP/1.1\r\nContent-Type: application/json\r\n"
        with raw_request(bridge.server.url, line + headers, *body) as response:
            assert response.headers["content-type"].startswith("application/json")
            return response.status, json.loads(response.read())

    def test_a_body_that_announces_too_much_is_not_read(self, bridge: Bridge) -> None:
        status, body = self.post(bridge, b"Content-Length: %d" % (32 * MIB + 1), b"{")
        assert (status, body["error"]["code"]) == (413, 413)
        assert str(8 * MIB) in body["error"]["message"]

    def test_a_body_in_chunks_is_cut_off(self, bridge: Bridge) -> None:
        chunk = b"%x\r\n%s\r\n" % (MIB, b"x" * MIB)
        try:
            status, body = self.post(bridge, b"Transfer-Encoding: chunked", *[chunk] * 33, b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pytest.fail("the server hung up instead of answering 413")
        assert (status, body["error"]["code"]) == (413, 413)

    def test_a_body_below_the_limit_is_read(self, bridge: Bridge) -> None:
        size = 7 * MIB
        body = b'{"namespace": [], "properties": {"a": "%s"}}' % (b"x" * size)
        status, answer = self.post(bridge, b"Content-Length: %d" % len(body), body)
        assert (status, answer["error"]["code"]) == (400, 400)

    def test_the_server_goes_on(self, bridge: Bridge, client: Client) -> None:
        self.post(bridge, b"Content-Length: 99999999999", b"")
        assert client.get("namespaces").status_code == 200


@pytest.mark.parametrize(("size", "status"), [(1000, 200), (1001, 413)])
def test_the_limit_is_a_setting(start: Start, tmp_path: Path, size: int, status: int) -> None:
    limited = "[server]\nmax_body_bytes = 1000\n" + COMPATIBLE.configuration(tmp_path / "tables")
    body = b'{"namespace": ["a"], "properties": {"a": "%s"}}'
    with start(limited).client() as client:
        response = client.post("namespaces", data=body % (b"x" * (size + 2 - len(body))))
        assert response.status_code == status, response.text


class TestCrash:
    """Storage that breaks under the server."""

    @pytest.fixture
    def broken(self, tmp_path: Path) -> Iterator[Client]:
        folder = tmp_path / "tables"
        configuration = tmp_path / "irc-bridge.toml"
        configuration.write_text(COMPATIBLE.configuration(folder))
        with Server("--config", configuration, "--port", "0", cwd=tmp_path) as server, server.client() as client:
            client.create_namespace("ns")
            client.create_table(("ns",), "t")
            for manifest in (folder / "__manifest" / "_versions").iterdir():
                manifest.write_bytes(b"no manifest")
            for data in (folder / "__manifest" / "data").iterdir():
                data.write_bytes(b"no data")
            yield client

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", "namespaces", {"namespace": ["other"]}),
            ("POST", "namespaces/ns/tables", {"name": "other", "schema": SCHEMA}),
            ("DELETE", "namespaces/ns", None),
            ("GET", "namespaces/other", None),
            ("GET", "namespaces?parent=other", None),
            ("HEAD", "namespaces/ns/tables/other", None),
        ],
    )
    def test_it_is_told_in_the_envelope(self, broken: Client, method: str, path: str, body: Any) -> None:
        response = broken.request(method, path, json=body)
        assert response.status_code in (500, 503)
        if method != "HEAD":
            message = assert_error(response, response.status_code)
            assert message and "Traceback" not in response.text and ".py" not in response.text
