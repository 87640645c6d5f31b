"""The version operations, tags and schema metadata on the wire. Which commit wins is tested with the catalogs."""

from pathlib import Path
from typing import Any

import lance
import pytest

from contract_tests.directory.staging import stage
from contract_tests.lance.client import ROWS, Lance, ok, refused
from contract_tests.worlds.bridge import Client
from contract_tests.worlds.world import COMPATIBLE, IRC, Bridge, UpstreamWorld, _worlds

pytestmark = _worlds(COMPATIBLE, IRC)


@pytest.fixture(params=["storage", "impl"])
def location(request: pytest.FixtureRequest, lance_rest: Lance, name: str) -> str:
    """Of a table with two versions."""
    properties = f'{{"managed_by": "{request.param}"}}'
    place: str = ok(lance_rest.create([name], ROWS, properties=properties))["location"]
    made = staged(place, 4)
    assert ok(lance_rest.table([name], "version/create", made))["version"]["version"] == 2
    return place


def staged(location: str, *ids: int) -> dict[str, Any]:
    """A manifest of the next version, and what a Lance writer asks for it."""
    asked = stage(location, *ids)
    return {
        "version": asked.version,
        "manifest_path": asked.manifest_path,
        "manifest_size": asked.manifest_size,
        "e_tag": asked.e_tag,
        "naming_scheme": asked.naming_scheme,
    }


def test_create(lance_rest: Lance, client: Client, location: str, name: str) -> None:
    asked = staged(location, 5, 6)
    made = ok(lance_rest.table([name], "version/create", {**asked, "id": [name], "branch": None}))["version"]
    final = Path(location.removeprefix("file://")) / "_versions" / f"{2**64 - 1 - 3:020}.manifest"
    assert made["version"] == 3
    assert made["manifest_path"] == str(final)[1:]
    assert made["manifest_size"] == asked["manifest_size"] == final.stat().st_size
    assert lance.dataset(location).count_rows() == 6
    assert client.metadata(("default",), name)["current-snapshot-id"] == 3
    # a repeat of what was done is told the same
    assert ok(lance_rest.table([name], "version/create", asked))["version"]["version"] == 3


def test_a_version_that_exists_is_a_conflict(lance_rest: Lance, location: str, name: str) -> None:
    late, first = staged(location, 5), staged(location, 6)
    ok(lance_rest.table([name], "version/create", first))
    # 12 in the seeds; that number is another error on this wire
    refused(lance_rest.table([name], "version/create", late), 409, 14, "3")
    after = {**staged(location, 7), "version": 9}
    refused(lance_rest.table([name], "version/create", after), 400, 13, "9")
    outside = {**late, "manifest_path": "etc/passwd"}
    refused(lance_rest.table([name], "version/create", outside), 400, 13, "etc/passwd")
    refused(lance_rest.table([f"{name}x"], "version/create", late), 404, 4)


def test_batch_create(lance_rest: Lance, bridge: Bridge, location: str, name: str) -> None:
    other = f"{name}other"
    place = ok(lance_rest.create([other], ROWS))["location"]
    ids = [bridge.world.lance_id(each).split("$") for each in (name, other)]
    entries = [{"id": ids[0], **staged(location, 5)}, {"id": ids[1], **staged(place, 5)}]
    made = ok(lance_rest.post("table/version/batch-create", {"entries": entries}))["versions"]
    assert [each["version"] for each in made] == [3, 2]
    assert [lance.dataset(each).count_rows() for each in (location, place)] == [5, 4]


def test_list_and_describe(lance_rest: Lance, location: str, name: str) -> None:
    ok(lance_rest.table([name], "version/create", staged(location, 5)))

    def versions(**query: str) -> list[int]:
        listed = ok(lance_rest.table([name], "version/list", None, **query))
        return [each["version"] for each in listed["versions"]]

    assert versions() == versions(descending="true") == [3, 2, 1]
    assert versions(descending="false") == [1, 2, 3]
    page = ok(lance_rest.table([name], "version/list", descending="true", limit="2"))
    assert [each["version"] for each in page["versions"]] == [3, 2]
    assert versions(descending="true", limit="2", page_token=page["page_token"]) == [1]
    assert ok(lance_rest.table([name], "version/list", limit="0")) == {"versions": []}
    for version in (1, 2, 3):
        told = ok(lance_rest.table([name], "version/describe", {"version": version}))["version"]
        assert told["version"] == version
        assert Path("/", told["manifest_path"]).stat().st_size == told["manifest_size"]
        assert told["metadata"]["total_rows"] == str(version + 2)
    refused(lance_rest.table([name], "version/describe", {"version": 9}), 404, 11, "9")


def test_delete(lance_rest: Lance, location: str, name: str) -> None:
    for each in (5, 6):
        ok(lance_rest.table([name], "version/create", staged(location, each)))

    def delete(start: int, end: int, **more: bool) -> Any:
        ranges = [{"start_version": start, "end_version": end}]
        return lance_rest.table([name], "version/delete", {"ranges": ranges, **more})

    assert ok(delete(1, 3)) == {"deleted_count": 2}
    assert ok(delete(1, 3)) == {"deleted_count": 0}
    refused(delete(1, 3, ignore_missing=False), 404, 11)
    refused(delete(3, 2), 400, 13)


def test_delete_all(lance_rest: Lance, client: Client, location: str, bridge: Bridge, name: str) -> None:
    deleted = lance_rest.table([name], "version/delete", {"ranges": [{"start_version": 0, "end_version": -1}]})
    managed_by = client.metadata(("default",), name)["properties"]["managed_by"]
    if isinstance(bridge.world, UpstreamWorld) and managed_by == "impl":
        # the branch of another server stays on a snapshot
        refused(deleted, 400, 13, "main")
        return
    assert ok(deleted) == {"deleted_count": 2}
    assert ok(lance_rest.table([name], "version/list")) == {"versions": []}
    assert ok(lance_rest.table([name], "describe", {}, check_declared="true"))["is_only_declared"] is True


def test_tags(lance_rest: Lance, client: Client, location: str, name: str) -> None:
    tags = lance.dataset(location).tags
    assert ok(lance_rest.table([name], "tags/create", {"tag": "b", "version": 1})) == {}
    refused(lance_rest.table([name], "tags/create", {"tag": "b", "version": 2}), 409, 9, "b")
    refused(lance_rest.table([name], "tags/create", {"tag": "c", "version": 9}), 404, 11, "9")
    assert tags.get_version("b") == 1
    ok(lance_rest.table([name], "tags/update", {"tag": "b", "version": 2}))
    refused(lance_rest.table([name], "tags/update", {"tag": "c", "version": 2}), 404, 8, "c")
    refused(lance_rest.table([name], "tags/update", {"tag": "b", "version": 9}), 404, 11, "9")
    assert ok(lance_rest.table([name], "tags/version", {"tag": "b"})) == {"version": 2}
    refused(lance_rest.table([name], "tags/version", {"tag": "c"}), 404, 8, "c")
    assert client.metadata(("default",), name)["refs"]["b"]["snapshot-id"] == 2
    ok(lance_rest.table([name], "tags/create", {"tag": "a", "version": 1}))
    sizes = {each: (Path("/") / path_of(lance_rest, name, each)).stat().st_size for each in (1, 2)}
    listed = {"b": {"version": 2, "manifestSize": sizes[2]}, "a": {"version": 1, "manifestSize": sizes[1]}}
    assert ok(lance_rest.table([name], "tags/list")) == {"tags": listed}
    page = ok(lance_rest.table([name], "tags/list", limit="1"))
    assert list(page["tags"]) == ["a"]
    rest = ok(lance_rest.table([name], "tags/list", limit="1", page_token=page["page_token"]))
    assert rest == {"tags": {"b": listed["b"]}}
    ok(lance_rest.table([name], "tags/delete", {"tag": "b"}))
    refused(lance_rest.table([name], "tags/delete", {"tag": "b"}), 404, 8, "b")
    assert list(tags.list()) == ["a"]


def path_of(lance_rest: Lance, name: str, version: int) -> str:
    told = ok(lance_rest.table([name], "version/describe", {"version": version}))
    path: str = told["version"]["manifest_path"]
    return path


def test_schema_metadata_is_replaced(lance_rest: Lance, location: str, name: str) -> None:
    assert ok(lance_rest.table([name], "schema_metadata/update", {"a": "1", "b": "2"})) == {"a": "1", "b": "2"}
    assert ok(lance_rest.table([name], "schema_metadata/update", {"c": "é"})) == {"c": "é"}
    dataset = lance.dataset(location)
    assert dataset.schema.metadata == {b"c": "é".encode()}
    assert dataset.count_rows() == 4
    refused(lance_rest.table([name], "schema_metadata/update", {"c": 1}), 400, 13, "c")
    refused(lance_rest.table([name], "schema_metadata/update", {}, branch="b"), 406, 0)
    refused(lance_rest.table([f"{name}x"], "schema_metadata/update", {}), 404, 4)
    ok(lance_rest.table([f"{name}x"], "declare", {}))
    refused(lance_rest.table([f"{name}x"], "schema_metadata/update", {"a": "b"}), 400, 13)
