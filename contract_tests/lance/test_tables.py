from pathlib import Path

import lance
import pytest

from contract_tests.lance.client import ROWS, Lance, ok, refused
from contract_tests.worlds.bridge import Client
from contract_tests.worlds.world import ONE_WORLD, Bridge

pytestmark = ONE_WORLD

IMPL = {"managed_by": "impl"}


def test_declared_and_described(lance_rest: Lance, client: Client, bridge: Bridge, name: str) -> None:
    made = ok(lance_rest.table([name], "declare", {"properties": {"a": "b"}}))
    location = f"{bridge.root.uri}/{name}.lance"
    assert made == {"location": location, "properties": {"a": "b"}, "managed_versioning": False}
    described = ok(lance_rest.table([name], "describe", {}))
    assert described == made
    more = {"with_table_uri": "true", "check_declared": "true", "load_detailed_metadata": "true"}
    assert ok(lance_rest.table([name], "describe", {}, **more)) == {
        **made,
        "table_uri": location,
        "table": name,
        "namespace": [],
        "is_only_declared": True,
    }
    assert client.load(("default",), name)["metadata"]["location"] == location
    refused(lance_rest.table([name], "declare", {}), 409, 5, name)


@pytest.mark.parametrize("managed_by", ["impl", "IMPL", "storage"])
def test_managed_versioning_is_told_for_impl_tables_only(lance_rest: Lance, name: str, managed_by: str) -> None:
    wanted = managed_by.lower() == "impl"
    body = {"properties": {"managed_by": managed_by, "table_type": "lance"}}
    assert ok(lance_rest.table([name], "declare", body))["managed_versioning"] is wanted
    assert ok(lance_rest.table([name], "describe", {}))["managed_versioning"] is wanted


def test_properties_that_cannot_be(lance_rest: Lance, name: str) -> None:
    for properties in ({"managed_by": "me"}, {"table_type": "delta"}, {"irc-bridge.x": "y"}):
        refused(lance_rest.table([name], "declare", {"properties": properties}), 400, 13, *properties)


def test_details(lance_rest: Lance, name: str) -> None:
    ok(lance_rest.create([name], ROWS.replace_schema_metadata({"k": "v"}), properties='{"a": "b"}'))
    dataset = lance.dataset(ok(lance_rest.table([name], "describe", {}))["location"])
    dataset.delete("id = 1")
    told = ok(lance_rest.table([name], "describe", {}, load_detailed_metadata="true"))
    assert told["version"] == 2
    assert told["stats"] == {"num_deleted_rows": 1, "num_fragments": 1}
    assert told["schema"] == {
        "fields": [
            {"name": "id", "nullable": True, "type": {"type": "int64"}},
            {"name": "name", "nullable": True, "type": {"type": "utf8"}},
        ],
        "metadata": {"k": "v"},
    }
    assert told["metadata"]["total_rows"] == "2"
    assert told["is_only_declared"] is False
    assert told["properties"] == {"a": "b"}


def test_described_as_it_was(lance_rest: Lance, name: str) -> None:
    ok(lance_rest.create([name]))
    dataset = lance.dataset(ok(lance_rest.table([name], "describe", {}))["location"])
    dataset.tags.create("first", 1)
    dataset.add_columns({"more": "id + 1"})
    detailed = {"load_detailed_metadata": "true"}

    def columns(body: dict[str, object]) -> list[str]:
        schema = ok(lance_rest.table([name], "describe", body, **detailed))["schema"]
        return [field["name"] for field in schema["fields"]]

    assert columns({}) == ["id", "name", "more"]
    assert columns({"version": 1}) == columns({"tag": "first"}) == ["id", "name"]
    refused(lance_rest.table([name], "describe", {"version": 9}), 404, 11, "9")
    refused(lance_rest.table([name], "describe", {"tag": "x"}), 404, 8, "x")
    refused(lance_rest.table([name], "describe", {"tag": "first", "version": 1}), 400, 13)
    ok(lance_rest.table([name], "exists", {"version": 1}))
    refused(lance_rest.table([name], "exists", {"version": 9}), 404, 11)


def test_a_description_is_never_old(lance_rest: Lance, client: Client, name: str) -> None:
    ok(lance_rest.create([name]))
    location = ok(lance_rest.table([name], "describe", {}))["location"]
    for version in (2, 3):
        lance.write_dataset(ROWS, location, mode="append")
        assert ok(lance_rest.table([name], "describe", {}, load_detailed_metadata="true"))["version"] == version
    update = {"action": "set-properties", "updates": IMPL}
    change = client.post(f"namespaces/default/tables/{name}", json={"requirements": [], "updates": [update]})
    assert change.status_code == 200
    assert ok(lance_rest.table([name], "describe", {}))["managed_versioning"] is True


def test_lists(lance_rest: Lance, name: str) -> None:
    ok(lance_rest.namespace([name], "create", {}))
    ok(lance_rest.namespace([name, "deep"], "create", {}))
    for table in (["b"], ["a"], ["deep", "c"]):
        ok(lance_rest.table([name, *table], "declare", {}))
    ok(lance_rest.create([name, "d"]))
    assert ok(lance_rest.list([name], "table/list")) == {"tables": ["a", "b", "d"]}
    assert ok(lance_rest.list([name], "table/list", include_declared="false")) == {"tables": ["d"]}
    page = ok(lance_rest.list([name], "table/list", limit="2"))
    assert page["tables"] == ["a", "b"]
    rest = ok(lance_rest.list([name], "table/list", limit="2", page_token=page["page_token"]))
    assert rest == {"tables": ["d"]}
    assert ok(lance_rest.list([name], "table/list", limit="0")) == {"tables": []}
    refused(lance_rest.list([name, "x"], "table/list"), 404, 1, "x")
    ours = [f"{name}/a", f"{name}/b", f"{name}/d", f"{name}/deep/c"]
    listed = ok(lance_rest.get("table", delimiter="/"))["tables"]
    assert [each for each in listed if each.startswith(f"{name}/")] == ours
    made = ok(lance_rest.get("table", include_declared="false"))["tables"]
    assert [each for each in made if each.startswith(f"{name}$")] == [f"{name}$d"]


@pytest.mark.parametrize("limit", ["1", "2", "3"])
def test_all_tables_page_by_page(lance_rest: Lance, name: str, limit: str) -> None:
    for levels in ([name], [name, "x"], [name, "x", "y"], [name, "z"]):
        ok(lance_rest.namespace(levels, "create", {}))
        for table in ("t", "u"):
            ok(lance_rest.table([*levels, table], "declare", {}))
    seen: list[str] = []
    query = {"limit": limit, "delimiter": "/"}
    while True:
        page = ok(lance_rest.get("table", **query))
        assert len(page["tables"]) <= int(limit)
        seen += page["tables"]
        if not page.get("page_token"):
            break
        query["page_token"] = page["page_token"]
    assert seen == ok(lance_rest.get("table", delimiter="/"))["tables"]
    assert len(set(seen)) == len(seen)
    places = ([name], [name, "x"], [name, "x", "y"], [name, "z"])
    assert [each for each in seen if each.startswith(f"{name}/")] == [
        "/".join([*levels, table]) for levels in places for table in ("t", "u")
    ]


def test_deregistered_registered_renamed_dropped(lance_rest: Lance, bridge: Bridge, name: str) -> None:
    ok(lance_rest.namespace([name], "create", {}))
    location = ok(lance_rest.create([name, "t"], properties='{"a": "b"}'))["location"]
    gone = ok(lance_rest.table([name, "t"], "deregister", {}))
    assert gone == {"id": [name, "t"], "location": location, "properties": {"a": "b"}}
    refused(lance_rest.table([name, "t"], "exists", {}), 404, 4, "t")
    back = ok(lance_rest.table([name, "back"], "register", {"location": location}))
    assert back == {"location": location, "properties": {"a": "b"}}
    refused(lance_rest.table([name, "back"], "register", {"location": location}), 409, 5)
    refused(lance_rest.table([name, "back"], "register", {"location": location, "mode": "Overwrite"}), 406, 0)
    ok(lance_rest.table([name, "back"], "rename", {"new_table_name": "new"}))
    ok(lance_rest.table([name, "new"], "rename", {"new_table_name": f"{name}top", "new_namespace_id": []}))
    refused(lance_rest.table([name, "new"], "exists", {}), 404, 4)
    dropped = ok(lance_rest.table([f"{name}top"], "drop"))
    assert dropped == {"id": [f"{name}top"], "location": location, "properties": {"a": "b"}}
    assert not bridge.root.exists(location)
    refused(lance_rest.table([f"{name}top"], "drop"), 404, 4)


def test_a_location_may_be_relative_to_the_root(lance_rest: Lance, bridge: Bridge, name: str) -> None:
    ok(lance_rest.namespace([name], "create", {}))
    folder = Path(str(bridge.root)) / f"folder_{name}"
    lance.write_dataset(ROWS, folder)
    registered = ok(lance_rest.table([name, "t"], "register", {"location": folder.name, "properties": {"a": "b"}}))
    assert registered["location"] == folder.as_uri()
    assert ok(lance_rest.table([name, "t"], "describe", {}))["properties"] == {"a": "b"}
    for outside in ("../x", "__manifest", "", "x/../../y"):
        refused(lance_rest.table([name, "u"], "register", {"location": outside}), 400, 13)


def test_a_broken_table_can_be_dropped(lance_rest: Lance, bridge: Bridge, name: str) -> None:
    location = ok(lance_rest.create([name]))["location"]
    for manifest in (Path(str(bridge.root)) / f"{name}.lance" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"no manifest")
    assert ok(lance_rest.table([name], "drop", {})) == {"id": [name]}
    assert not bridge.root.exists(location)
