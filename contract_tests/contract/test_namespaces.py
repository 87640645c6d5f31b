from pathlib import Path
from typing import Any

import lance.namespace
import pytest
from lance_namespace import CreateNamespaceRequest

from contract_tests.conftest import Start
from contract_tests.worlds.bridge import Client, assert_error, assert_ok, namespace_path
from contract_tests.worlds.roots import LocalRoot, Root
from contract_tests.worlds.world import COMPATIBLE
from contract_tests.worlds.writer import write

ROOT = ("default",)


def update(client: Client, namespace: tuple[str, ...], **body: Any) -> Any:
    return client.post(f"{namespace_path(namespace)}/properties", json=body)


@pytest.mark.needs("child namespaces")
class TestNamespaces:
    def test_create_answers_with_what_it_made(self, client: Client, name: str) -> None:
        body = {"namespace": [name], "properties": {"owner": "me", "empty": ""}}
        created = assert_ok(client.post("namespaces", json=body))
        assert created["namespace"] == [name]
        assert created["properties"].items() >= body["properties"].items()  # type: ignore[attr-defined]

    def test_a_created_namespace_is_there(self, client: Client, name: str) -> None:
        client.create_namespace(name, owner="me")
        loaded = assert_ok(client.get(namespace_path((name,))))
        assert loaded["namespace"] == [name]
        assert loaded["properties"] == {"owner": "me"}
        assert client.head(namespace_path((name,))).status_code == 204
        assert client.namespaces().count((name,)) == 1

    def test_properties_may_be_left_out(self, client: Client, name: str) -> None:
        assert_ok(client.post("namespaces", json={"namespace": [name]}))
        assert assert_ok(client.get(namespace_path((name,))))["properties"] in ({}, None)

    def test_create_twice(self, client: Client, name: str) -> None:
        client.create_namespace(name, owner="first")
        again = client.post("namespaces", json={"namespace": [name], "properties": {"owner": "second"}})
        assert_error(again, 409, "AlreadyExistsException", names="Namespace already exists")
        assert assert_ok(client.get(namespace_path((name,))))["properties"] == {"owner": "first"}

    def test_create_below_nothing(self, client: Client, name: str) -> None:
        response = client.post("namespaces", json={"namespace": [name, "child"]})
        assert_error(response, 404, "NoSuchNamespaceException", names=name)
        assert client.head(namespace_path((name, "child"))).status_code == 404
        assert client.head(namespace_path((name,))).status_code == 404

    def test_lists_go_one_level_down(self, client: Client, name: str) -> None:
        client.create_namespace(name)
        client.create_namespace(name, "a")
        client.create_namespace(name, "b")
        client.create_namespace(name, "a", "deep")
        assert (name,) in client.namespaces()
        assert all(len(levels) == 1 for levels in client.namespaces())
        assert client.namespaces((name,)) == [(name, "a"), (name, "b")]
        assert client.namespaces((name, "a")) == [(name, "a", "deep")]
        assert client.namespaces((name, "b")) == []

    def test_a_namespace_whose_name_begins_like_another_is_not_its_child(self, client: Client, name: str) -> None:
        client.create_namespace(name)
        client.create_namespace(f"{name}x")
        client.create_namespace(f"{name}x", "child")
        client.create_table((f"{name}x",), "t")
        assert client.namespaces((name,)) == []
        assert client.tables((name,)) == []
        assert client.delete(namespace_path((name,))).status_code == 204

    def test_an_empty_parent_is_the_top(self, client: Client, name: str) -> None:
        client.create_namespace(name)
        listed = assert_ok(client.get("namespaces", params={"parent": ""}))
        assert [name] in listed["namespaces"]

    def test_five_levels(self, client: Client, name: str) -> None:
        levels: tuple[str, ...] = ()
        for depth in range(5):
            levels = (*levels, f"{name}_{depth}")
            client.create_namespace(*levels)
        client.create_table(levels, "t")
        assert client.tables(levels) == ["t"]
        assert assert_ok(client.get(namespace_path(levels)))["namespace"] == list(levels)

    def test_drop(self, client: Client, name: str) -> None:
        client.create_namespace(name)
        assert client.delete(namespace_path((name,))).status_code == 204
        assert client.head(namespace_path((name,))).status_code == 404
        assert (name,) not in client.namespaces()
        again = client.delete(namespace_path((name,)))
        assert_error(again, 404, "NoSuchNamespaceException", names=f"Namespace does not exist: {name}")

    def test_drop_wants_it_empty(self, client: Client, name: str) -> None:
        client.create_namespace(name)
        client.create_namespace(name, "child")
        refused = client.delete(namespace_path((name,)))
        assert_error(refused, 409, "NamespaceNotEmptyException", names="is not empty")
        assert client.delete(namespace_path((name, "child"))).status_code == 204
        client.declare_table((name,), "declared")
        refused = client.delete(namespace_path((name,)))
        assert_error(refused, 409, "NamespaceNotEmptyException", names="is not empty")
        assert client.tables((name,)) == ["declared"]

    def test_names_are_case_sensitive(self, client: Client, name: str) -> None:
        client.create_namespace(name, which="small")
        client.create_namespace(name.upper(), which="capital")
        assert assert_ok(client.get(namespace_path((name,))))["properties"] == {"which": "small"}
        assert client.delete(namespace_path((name.upper(),))).status_code == 204
        assert client.head(namespace_path((name,))).status_code == 204

    def test_properties_change(self, client: Client, name: str) -> None:
        client.create_namespace(name, keep="1", change="2", remove="3")
        changed = assert_ok(
            update(client, (name,), removals=["remove", "never"], updates={"change": "4", "new": "5"})
        )
        assert sorted(changed["updated"]) == ["change", "new"]
        assert changed["removed"] == ["remove"]
        assert changed["missing"] == ["never"]
        loaded = assert_ok(client.get(namespace_path((name,))))
        assert loaded["properties"] == {"keep": "1", "change": "4", "new": "5"}

    def test_a_property_cannot_be_set_and_removed_at_once(self, client: Client, name: str) -> None:
        client.create_namespace(name, owner="me")
        response = update(client, (name,), removals=["owner"], updates={"owner": "you"})
        assert_error(response, 422, "UnprocessableEntityException", names="owner")
        assert assert_ok(client.get(namespace_path((name,))))["properties"] == {"owner": "me"}

    def test_properties_of_nothing(self, client: Client, name: str) -> None:
        response = update(client, (name,), updates={"owner": "me"})
        assert_error(response, 404, "NoSuchNamespaceException", names=name)

    def test_property_values_of_any_text(self, client: Client, name: str) -> None:
        properties = {"ключ": "значение", "quote": '"\\\n', "long": "x" * 10_000, "emoji 🎈": "🎈"}
        client.create_namespace(name, **properties)
        assert assert_ok(client.get(namespace_path((name,))))["properties"] == properties

    def test_a_table_takes_the_name_of_a_namespace(self, client: Client, name: str) -> None:
        client.create_namespace(name)
        client.create_table((name,), "same")
        response = client.post("namespaces", json={"namespace": [name, "same"]})
        assert_error(response, 409, "AlreadyExistsException", names="same")
        client.create_namespace(name, "other")
        body = {"name": "other", "schema": {"type": "struct", "fields": []}}
        response = client.post(f"{namespace_path((name,))}/tables", json=body)
        assert response.status_code in (400, 409)
        assert client.tables((name,)) == ["same"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_a_namespace_that_is_not_there(client: Client, name: str, method: str) -> None:
    response = client.request(method, namespace_path((name,)))
    assert response.status_code == 404
    if method == "HEAD":
        assert response.content == b""
    else:
        assert_error(response, 404, "NoSuchNamespaceException", names=f"Namespace does not exist: {name}")


def test_children_of_nothing(client: Client, name: str) -> None:
    response = client.get("namespaces", params={"parent": name})
    assert_error(response, 404, "NoSuchNamespaceException", names=name)


def test_tables_of_nothing(client: Client, name: str) -> None:
    response = client.get(f"{namespace_path((name,))}/tables")
    assert_error(response, 404, "NoSuchNamespaceException", names=name)


class TestRootNamespace:
    """The tables of the folder's root appear in one Iceberg namespace, named by `root_namespace`."""

    def test_it_is_always_there(self, client: Client) -> None:
        assert client.namespaces().count(ROOT) == 1
        assert client.head(namespace_path(ROOT)).status_code == 204
        assert assert_ok(client.get(namespace_path(ROOT)))["namespace"] == ["default"]

    def test_it_cannot_be_created(self, client: Client) -> None:
        response = client.post("namespaces", json={"namespace": ["default"]})
        assert_error(response, 409, "AlreadyExistsException", names="default")

    def test_it_cannot_be_dropped(self, client: Client) -> None:
        assert_error(client.delete(namespace_path(ROOT)), 400, "BadRequestException", names="default")
        assert ROOT in client.namespaces()

    def test_it_has_no_children(self, client: Client) -> None:
        response = client.post("namespaces", json={"namespace": ["default", "child"]})
        assert_error(response, 400, "BadRequestException", names="default")
        assert client.namespaces(ROOT) == []
        assert client.head(namespace_path(("default", "child"))).status_code == 404

    def test_its_name_is_a_setting(self, start: Start, tmp_path: Path) -> None:
        configuration = COMPATIBLE.configuration(tmp_path / "tables", 'root_namespace = "lake"\n')
        write(tmp_path / "tables" / "fish.lance")
        with start(configuration).client() as client:
            assert client.namespaces() == [("lake",)]
            assert client.tables(("lake",)) == ["fish"]
            client.create_namespace("default")
            assert client.tables(("default",)) == []
            assert client.namespaces() == [("default",), ("lake",)]

    def test_a_real_namespace_of_its_name_is_refused_at_start(self, start: Start, tmp_path: Path) -> None:
        make_namespace(LocalRoot(tmp_path / "tables"), "default")
        said = start(COMPATIBLE.configuration(tmp_path / "tables")).refused()
        assert "root_namespace" in said and "default" in said
        assert "Traceback" not in said

    def test_a_real_namespace_of_its_name_that_comes_later_is_hidden(self, tmp_path: Path) -> None:
        with COMPATIBLE.start(tmp_path) as bridge:
            client = bridge.client
            client.create_table(ROOT, "mine")
            make_namespace(bridge.root, "default", "default$child")
            assert client.namespaces() == [ROOT]
            assert client.namespaces(ROOT) == []
            assert client.tables(ROOT) == ["mine"]
            assert client.head(namespace_path(("default", "child"))).status_code == 404
            bridge.server.wait_for(lambda line: "root_namespace" in line and "default" in line)


def make_namespace(root: Root, *ids: str) -> None:
    """As another Lance program does, that knows nothing of Iceberg."""
    namespace = lance.namespace.DirectoryNamespace(root=str(root))
    for each in ids:
        namespace.create_namespace(CreateNamespaceRequest(id=each.split("$")))


def test_every_listed_namespace_loads(client: Client) -> None:
    for levels in client.namespaces():
        assert assert_ok(client.get(namespace_path(levels)))["namespace"] == list(levels)
