from pathlib import Path

import pytest

from contract_tests.conftest import Start
from contract_tests.worlds.bridge import Client, assert_error, assert_ok, namespace_path, table_path
from contract_tests.worlds.world import Bridge

PREFIX = {"prefix": "main"}


def two_warehouses(folder: Path) -> str:
    return "".join(
        f'[warehouses.{name}]\nbackend = "dir"\nroot = "{folder / name}"\n' for name in ("east", "west")
    )


@pytest.mark.parametrize("query", [{}, {"warehouse": "main"}, {"warehouse": ""}])
def test_the_prefix_is_in_defaults_and_in_overrides(client: Client, query: dict[str, str]) -> None:
    config = assert_ok(client.get("/v1/config", params=query))
    assert config["defaults"].items() >= PREFIX.items()
    assert config["overrides"].items() >= PREFIX.items()


def test_an_unknown_warehouse_is_not_found(client: Client) -> None:
    response = client.get("/v1/config", params={"warehouse": "nowhere"})
    assert_error(response, 404, "NoSuchWarehouseException", names="nowhere")


@pytest.mark.parametrize("warehouse", ["Main", "MAIN", " main", "main/"])
def test_warehouse_names_are_taken_as_they_are(client: Client, warehouse: str) -> None:
    response = client.get("/v1/config", params={"warehouse": warehouse})
    assert_error(response, 404, "NoSuchWarehouseException")


def test_several_warehouses_want_a_choice(start: Start, tmp_path: Path) -> None:
    server = start(two_warehouses(tmp_path))
    with server.client("west") as west, server.client("east") as east, server.client(None) as undecided:
        message = assert_error(undecided.get("/v1/config"), 400, "BadRequestException")
        assert "east" in message and "west" in message
        assert_error(undecided.get("namespaces"), 400, "BadRequestException", names="east")
        config = assert_ok(undecided.get("/v1/config", params={"warehouse": "west"}))
        assert config["defaults"]["prefix"] == config["overrides"]["prefix"] == "west"
        west.create_namespace("only_here")
        assert ("only_here",) in west.namespaces()
        assert ("only_here",) not in east.namespaces()


def test_one_warehouse_needs_no_prefix(bridge: Bridge, namespace: tuple[str, ...], name: str) -> None:
    bridge.client.create_table(namespace, name)
    with bridge.server.client(None) as short:
        for path in ("namespaces", f"{namespace_path(namespace)}/tables", table_path(namespace, name)):
            with_prefix, without = bridge.client.get(path), short.get(path)
            assert with_prefix.status_code == without.status_code == 200
            assert with_prefix.content == without.content
        assert short.head(table_path(namespace, name)).status_code == 204
        assert short.delete(table_path(namespace, name)).status_code == 204
    assert bridge.client.head(table_path(namespace, name)).status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/nowhere/namespaces"),
        ("POST", "/v1/nowhere/namespaces"),
        ("GET", "/v1/nowhere/namespaces/default"),
        ("DELETE", "/v1/nowhere/namespaces/default"),
        ("GET", "/v1/nowhere/namespaces/default/tables"),
        ("POST", "/v1/nowhere/namespaces/default/tables"),
        ("GET", "/v1/nowhere/namespaces/default/tables/t"),
        ("POST", "/v1/nowhere/namespaces/default/tables/t"),
        ("DELETE", "/v1/nowhere/namespaces/default/tables/t"),
        ("POST", "/v1/nowhere/tables/rename"),
        ("GET", "/v1/nowhere/namespaces/default/views"),
    ],
)
def test_an_unknown_prefix_is_no_warehouse(client: Client, method: str, path: str) -> None:
    body = {"namespace": ["x"]} if method == "POST" else None
    assert_error(client.request(method, path, json=body), 404, "NoSuchWarehouseException", names="nowhere")


@pytest.mark.needs("child namespaces")
@pytest.mark.parametrize("word", ["namespaces", "tables", "views", "config", "main"])
def test_words_of_the_protocol_are_good_names(bridge: Bridge, word: str) -> None:
    client = bridge.client
    client.create_namespace(word)
    client.create_table((word,), word)
    with bridge.server.client(None) as short:
        for each in (client, short):
            assert assert_ok(each.get(namespace_path((word,))))["namespace"] == [word]
            assert each.tables((word,)) == [word]
            assert each.metadata((word,), word)["current-snapshot-id"] == 1
    client.delete(table_path((word,), word), params={"purgeRequested": "true"})
    assert client.delete(namespace_path((word,))).status_code == 204
