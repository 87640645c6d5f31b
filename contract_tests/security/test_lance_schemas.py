"""Schemas nested so deep that somebody cannot read them: refused, or good for everything."""

from collections.abc import Iterator

import pytest
import requests

from contract_tests.worlds.bridge import Client, Server, assert_ok, namespace_path, table_path

NAMESPACE = ("default",)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("schemas")
    with Server(str(folder / "tables"), "--port", "0", cwd=folder) as server, server.client() as client:
        yield client
        assert "panicked" not in server.text() and "Traceback" not in server.text()


def nested(kind: str, levels: int) -> str:
    """A type in JSON, which Python itself does not write when it is nested so deep."""
    inner = '"int"'
    for level in range(levels):
        number = 1000 + 2 * level
        if kind == "struct":
            field = f'{{"id": {number}, "name": "a", "type": {inner}, "required": false}}'
            inner = f'{{"type": "struct", "fields": [{field}]}}'
        elif kind == "list":
            inner = f'{{"type": "list", "element-id": {number}, "element": {inner}, "element-required": false}}'
        else:
            key = f'"key-id": {number}, "key": "string", "value-id": {number + 1}'
            inner = f'{{"type": "map", {key}, "value": {inner}, "value-required": false}}'
    return inner


def schema(*fields: str) -> str:
    return f'{{"type": "struct", "schema-id": 0, "fields": [{", ".join(fields)}]}}'


def field(number: int, name: str, kind: str) -> str:
    return f'{{"id": {number}, "name": "{name}", "type": {kind}, "required": false}}'


def create(client: Client, name: str, column: str) -> requests.Response:
    body = f'{{"name": "{name}", "schema": {schema(field(1, "deep", column))}}}'
    return send(client, f"{namespace_path(NAMESPACE)}/tables", body)


def send(client: Client, path: str, body: str) -> requests.Response:
    return client.post(path, data=body, headers={"content-type": "application/json"})


def columns(client: Client, name: str) -> set[str]:
    metadata = client.metadata(NAMESPACE, name)
    (current,) = [each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"]]
    return {each["name"] for each in current["fields"]}


def require_good_or_absent(client: Client, name: str, status: int) -> None:
    if status == 200:
        client.load(NAMESPACE, name)
        client.load(NAMESPACE, name, snapshots="refs")
        assert client.delete(table_path(NAMESPACE, name)).status_code == 204
    else:
        assert status == 400
    assert name not in client.tables(NAMESPACE)
    assert client.head(table_path(NAMESPACE, name)).status_code == 404


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
@pytest.mark.parametrize("levels", [20, 31, 60, 61, 62, 63, 64, 100, 400, 5000])
def test_create(client: Client, name: str, kind: str, levels: int) -> None:
    answer = create(client, name, nested(kind, levels))
    assert answer.status_code == 200 or levels > 20, answer.text
    require_good_or_absent(client, name, answer.status_code)


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
@pytest.mark.parametrize("levels", [20, 31, 61, 62, 63, 100, 5000])
def test_add_a_column(client: Client, name: str, kind: str, levels: int) -> None:
    assert_ok(create(client, name, '"int"'))
    (first,) = client.metadata(NAMESPACE, name)["schemas"][0]["fields"]
    after = schema(field(first["id"], "deep", '"int"'), field(900, "new", nested(kind, levels)))
    updates = f'{{"action": "add-schema", "schema": {after}}}, {{"action": "set-current-schema", "schema-id": -1}}'
    answer = send(client, table_path(NAMESPACE, name), f'{{"requirements": [], "updates": [{updates}]}}')
    assert answer.status_code in ((200,) if levels <= 20 else (200, 400)), answer.text
    assert columns(client, name) == ({"deep", "new"} if answer.status_code == 200 else {"deep"})
    require_good_or_absent(client, name, 200)
