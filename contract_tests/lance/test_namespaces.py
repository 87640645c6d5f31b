import pytest

from contract_tests.lance.client import Lance, ok, refused
from contract_tests.worlds.bridge import Client
from contract_tests.worlds.world import ONE_WORLD

pytestmark = ONE_WORLD


def test_create_describe_list_drop(lance_rest: Lance, client: Client, name: str) -> None:
    given = {"owner": "ann"}
    assert ok(lance_rest.namespace([name], "create", {"properties": given}))["properties"] == given
    assert ok(lance_rest.namespace([name, "b"], "create", {})) == {"properties": {}}
    assert ok(lance_rest.namespace([name], "describe", {})) == {"properties": given}
    assert ok(lance_rest.list([name])) == {"namespaces": ["b"]}
    assert (name, "b") in client.namespaces((name,))
    assert lance_rest.namespace([name, "b"], "exists", {}).content == b""
    refused(lance_rest.namespace([name], "drop", {}), 409, 3, "b")
    ok(lance_rest.namespace([name, "b"], "drop", {}))
    assert ok(lance_rest.namespace([name], "drop", {})) == {"properties": given}
    refused(lance_rest.namespace([name], "exists", {}), 404, 1, name)
    refused(lance_rest.namespace([name], "describe", {}), 404, 1, name)
    refused(lance_rest.list([name]), 404, 1, name)


def test_the_root(lance_rest: Lance, name: str) -> None:
    assert ok(lance_rest.namespace([], "describe", {})) == {"properties": {}}
    ok(lance_rest.namespace([], "exists", {}))
    refused(lance_rest.namespace([], "create", {}), 409, 2)
    refused(lance_rest.namespace([], "drop", {}), 400, 13)
    refused(lance_rest.namespace([], "drop", {"behavior": "Cascade"}), 400, 13)
    refused(lance_rest.namespace([name, "b"], "create", {}), 404, 1, name)


@pytest.mark.parametrize("spelling", ["ExistOk", "exist_ok", "EXIST_OK", "existok"])
def test_create_where_there_is_one(lance_rest: Lance, name: str, spelling: str) -> None:
    ok(lance_rest.namespace([name], "create", {"properties": {"a": "1"}}))
    refused(lance_rest.namespace([name], "create", {"mode": "Create"}), 409, 2, name)
    kept = lance_rest.namespace([name], "create", {"mode": spelling, "properties": {"a": "2"}})
    assert ok(kept)["properties"] == {"a": "1"}


def test_overwrite_makes_an_empty_namespace_of_an_empty_one(lance_rest: Lance, name: str) -> None:
    ok(lance_rest.namespace([name], "create", {"mode": "Overwrite", "properties": {"a": "1"}}))
    over = lance_rest.namespace([name], "create", {"mode": "overwrite", "properties": {"b": "2"}})
    assert ok(over)["properties"] == {"b": "2"}
    ok(lance_rest.table([name, "t"], "declare", {}))
    refused(lance_rest.namespace([name], "create", {"mode": "Overwrite"}), 409, 3, "t")


def test_drop_what_is_not_there(lance_rest: Lance, name: str) -> None:
    refused(lance_rest.namespace([name], "drop", {"mode": "Fail"}), 404, 1, name)
    assert ok(lance_rest.namespace([name], "drop", {"mode": "skip"})) == {}


def test_cascade_takes_everything_below(lance_rest: Lance, name: str) -> None:
    for levels in ([name], [name, "b"], [name, "b", "c"]):
        ok(lance_rest.namespace(levels, "create", {}))
        ok(lance_rest.create([*levels, "t"]))
    ok(lance_rest.table([f"{name}x"], "declare", {}))
    ok(lance_rest.namespace([name], "drop", {"behavior": "cascade"}))
    refused(lance_rest.table([name, "b", "c", "t"], "describe", {}), 404, 1)
    refused(lance_rest.namespace([name], "exists", {}), 404, 1)
    ok(lance_rest.table([f"{name}x"], "exists", {}))


@pytest.mark.parametrize(
    ("what", "body"), [("create", {"mode": "x"}), ("drop", {"mode": "x"}), ("drop", {"behavior": "x"})]
)
def test_a_mode_that_there_is_not(lance_rest: Lance, name: str, what: str, body: dict[str, str]) -> None:
    refused(lance_rest.namespace([name], what, body), 400, 13, "x")


def test_the_name_that_iceberg_gives_to_the_root_is_taken(lance_rest: Lance) -> None:
    refused(lance_rest.namespace(["default"], "create", {}), 400, 13, "default")
    refused(lance_rest.list(["default"]), 404, 1)


def test_pages(lance_rest: Lance, name: str) -> None:
    names = [f"{letter}{name}" for letter in "abcde"]
    for each in names:
        ok(lance_rest.namespace([each], "create", {}))
    seen, query = [], {"limit": "2"}
    while True:
        page = ok(lance_rest.list([], **query))
        assert len(page["namespaces"]) <= 2
        seen += page["namespaces"]
        if not page.get("page_token"):
            break
        query["page_token"] = page["page_token"]
    assert seen == sorted(seen)
    assert [each for each in seen if each.endswith(name)] == names
    assert seen == ok(lance_rest.list([]))["namespaces"]
    assert ok(lance_rest.list([], limit="0")) == {"namespaces": []}
