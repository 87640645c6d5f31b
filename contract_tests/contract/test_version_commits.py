"""Versions of `managed_by=impl` tables, made by Iceberg commits: add-snapshot with a staged Lance manifest."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from contract_tests.contract.test_commits import commit, set_properties
from contract_tests.directory.staging import Request, stage, stage_first
from contract_tests.worlds.bridge import Client, assert_error, assert_ok, table_path
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import COMPATIBLE, IRC, LISTING, MANIFEST, ONE_WORLD, VERSIONS, Bridge, _worlds

Place = tuple[str, ...]

LOCAL = _worlds(COMPATIBLE, LISTING, MANIFEST, *VERSIONS, IRC)
SAFE = {"gc.enabled", "write.data.path", "write.metadata.path"}
"""The properties that every Lance table shows."""


def asserts(version: int | None) -> dict[str, Any]:
    return {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": version}


def adds(version: int, manifest_list: str) -> list[dict[str, Any]]:
    snapshot = {
        "snapshot-id": version,
        "sequence-number": version,
        "timestamp-ms": 1_700_000_000_000,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
    }
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": version}
    return [{"action": "add-snapshot", "snapshot": snapshot}, main]


def add(client: Client, place: Place, name: str, asked: Request, **changed: Any) -> Any:
    path = changed.get("path", f"_versions/{asked.manifest_path.rpartition('/')[2]}")
    version = changed.get("version", asked.version)
    expected = changed.get("expected", version - 1)
    return commit(client, place, name, *adds(version, path), requirements=[asserts(expected)])


@pytest.fixture
def location(client: Client, place: Place, name: str) -> str:
    made: str = client.create_table(place, name, properties={"managed_by": "impl"})["metadata"]["location"]
    return made


def ids(root: Root, location: str) -> list[int]:
    found: list[int] = root.open(location).to_table()["id"].to_pylist()
    return sorted(found)


class TestAddSnapshot:
    def test_it_becomes_the_version(
        self, client: Client, root: Root, place: Place, name: str, location: str
    ) -> None:
        for number in (1, 2):
            asked = stage(location, number, options=root.options)
            answered = assert_ok(add(client, place, name, asked))
            metadata = answered["metadata"]
            assert metadata["current-snapshot-id"] == asked.version == number + 1
            assert metadata == client.metadata(place, name)
            manifest = answered["metadata-location"].partition("#")[0]
            assert manifest == f"{location}/_versions/{asked.manifest_path.rpartition('/')[2].partition('-')[0]}"
            assert root.exists(manifest)
        assert ids(root, location) == [1, 2]
        assert not [file for file in root.files(f"{location}/_versions") if "manifest-" in file]

    def test_the_first_version_of_a_declared_table(
        self, client: Client, root: Root, place: Place, name: str
    ) -> None:
        made = client.declare_table(place, name, properties={"managed_by": "impl", "color": "red"})
        location = made["metadata"]["location"]
        asked, late = (stage_first(location, number, options=root.options) for number in (7, 8))
        metadata = assert_ok(add(client, place, name, asked, expected=None))["metadata"]
        assert (metadata["current-snapshot-id"], metadata["properties"]["color"]) == (1, "red")
        assert metadata["properties"]["managed_by"] == "impl"
        assert [field["name"] for field in metadata["schemas"][0]["fields"]] == ["id", "name"]
        response = add(client, place, name, late, expected=None)
        assert_error(response, 409, "CommitFailedException", names="Requirement failed: ")
        assert ids(root, location) == [7]

    def test_the_first_version_keeps_its_naming_scheme(
        self, client: Client, root: Root, place: Place, name: str
    ) -> None:
        made = client.declare_table(place, name, properties={"managed_by": "impl"})
        location = made["metadata"]["location"]
        asked = stage_first(location, 7, options=root.options, v2_names=False)
        assert_ok(add(client, place, name, asked, expected=None))
        assert root.exists(f"{location}/_versions/1.manifest")
        assert ids(root, location) == [7]

    def test_a_stale_one_changes_nothing(
        self, client: Client, root: Root, place: Place, name: str, location: str
    ) -> None:
        winner, loser = (stage(location, number, options=root.options) for number in (1, 2))
        assert_ok(add(client, place, name, winner))
        before = client.load(place, name)
        message = assert_error(add(client, place, name, loser), 409, "CommitFailedException")
        assert message.startswith("Requirement failed: ")
        assert client.load(place, name) == before
        assert ids(root, location) == [1]

    def test_a_stale_one_of_a_manifest_of_another_version_is_stale_first(
        self, client: Client, root: Root, place: Place, name: str, location: str
    ) -> None:
        winner, loser = (stage(location, number, options=root.options) for number in (1, 2))
        assert_ok(add(client, place, name, winner))
        later = stage(location, 3, options=root.options)
        before = client.metadata(place, name)
        for asked in (loser, later):
            for version in (2, 3, 4):
                response = add(client, place, name, asked, version=version, expected=1)
                message = assert_error(response, 409, "CommitFailedException")
                assert message.startswith("Requirement failed: ")
        assert client.metadata(place, name) == before

    @pytest.mark.needs("property versions")
    def test_sent_again(self, client: Client, root: Root, place: Place, name: str, location: str) -> None:
        """As clients do whose answer was lost, also after others went on."""
        first = stage(location, 1, options=root.options)
        assert_ok(add(client, place, name, first))
        assert assert_ok(add(client, place, name, first))["metadata"]["current-snapshot-id"] == 2
        assert_ok(add(client, place, name, stage(location, 2, options=root.options)))
        assert_ok(commit(client, place, name, set_properties(a="1")))
        again = assert_ok(add(client, place, name, first))["metadata"]
        assert (again["current-snapshot-id"], again) == (4, client.metadata(place, name))
        assert ids(root, location) == [1, 2]

    def test_every_form_of_path(self, client: Client, root: Root, place: Place, name: str, location: str) -> None:
        for number in range(4):
            asked = stage(location, number, options=root.options)
            file = asked.manifest_path.rpartition("/")[2]
            forms = (f"{location}/_versions/{file}", f"/{asked.manifest_path}", asked.manifest_path)
            path = (*forms, f"_versions/{file}")[number]
            if path == asked.manifest_path:
                path = f"/{path}"
            assert_ok(add(client, place, name, asked, path=path))
        assert ids(root, location) == [0, 1, 2, 3]

    def test_fifty_at_once_make_one(self, bridge: Bridge, place: Place, name: str, location: str) -> None:
        staged = [stage(location, number, options=bridge.root.options) for number in range(50)]

        def race(asked: Request) -> Any:
            with bridge.server.client() as client:
                return add(client, place, name, asked)

        with ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(race, staged))
        for answer in answers:
            if answer.status_code != 200:
                assert_error(answer, 409, "CommitFailedException", names="Requirement failed: ")
        [winner] = [number for number, answer in enumerate(answers) if answer.status_code == 200]
        assert ids(bridge.root, location) == [winner]
        assert bridge.client.metadata(place, name)["current-snapshot-id"] == 2


@LOCAL
class TestRefused:
    def test_without_the_assertion(
        self, client: Client, root: Root, place: Place, name: str, location: str
    ) -> None:
        asked = stage(location, 1, options=root.options)
        updates = adds(2, asked.manifest_path)
        tag = {**asserts(None), "ref": "v1"}
        for requirements in ([], [tag]):
            response = commit(client, place, name, *updates, requirements=requirements)
            assert_error(response, 400, "BadRequestException", names="assert-ref-snapshot-id")
        assert client.metadata(place, name)["current-snapshot-id"] == 1

    def test_without_main(self, client: Client, root: Root, place: Place, name: str, location: str) -> None:
        asked = stage(location, 1, options=root.options)
        updates = adds(2, f"/{asked.manifest_path}")
        response = commit(client, place, name, updates[0], requirements=[asserts(1)])
        assert_error(response, 400, "BadRequestException", names="set-snapshot-ref")

    @pytest.mark.parametrize("version", [1, 3, 77, -1])
    def test_another_number(
        self, client: Client, root: Root, place: Place, name: str, location: str, version: int
    ) -> None:
        asked = stage(location, 1, options=root.options)
        response = add(client, place, name, asked, version=version, expected=1)
        assert_error(response, 400, "BadRequestException", names="2")
        assert client.metadata(place, name)["current-snapshot-id"] == 1

    def test_a_table_that_its_storage_manages(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = client.create_table(place, name)["metadata"]["location"]
        asked = stage(location, 1, options=root.options)
        message = assert_error(add(client, place, name, asked), 400, "BadRequestException")
        assert "managed_by to impl" in message
        assert_ok(commit(client, place, name, set_properties(managed_by="impl")))
        staged_again = stage(location, 1, options=root.options)
        assert_ok(add(client, place, name, staged_again))
        assert ids(root, location) == [1]

    def test_what_is_no_staged_manifest_of_the_table(
        self, client: Client, root: Root, place: Place, name: str, location: str
    ) -> None:
        asked = stage(location, 1, options=root.options)
        root.put(f"{location}/_versions/junk", b"no manifest")
        other = client.create_table(place, f"{name}_other", properties={"managed_by": "impl"})["metadata"]
        elsewhere = stage(other["location"], 1, options=root.options)
        beside = f"_versions/{elsewhere.manifest_path.rpartition('/')[2]}"
        content = root.read(f"{other['location']}/{beside}")
        root.put(f"{location}/{beside}x", content)
        final = next(each for each in root.files(f"{location}/_versions") if each.endswith(".manifest"))
        wrong = {
            "_versions/missing": "no staged manifest",
            "_versions/junk": "not a Lance manifest",
            f"{other['location']}/{beside}": "inside the table",
            f"_versions/../../{asked.manifest_path}": "inside the table",
            f"{beside}x": "another table",
            f"_versions/{final}": "name of a version",
            f"{location}/_iceberg/snap-1.avro": "Iceberg manifests",
        }
        for path, why in wrong.items():
            response = add(client, place, name, asked, path=path)
            assert_error(response, 400, "BadRequestException", names=why)
        assert client.metadata(place, name)["current-snapshot-id"] == 1
        assert_ok(add(client, place, name, asked))

    def test_several_things_in_one_commit(
        self, client: Client, root: Root, place: Place, name: str, location: str
    ) -> None:
        updates = adds(2, f"/{stage(location, 1, options=root.options).manifest_path}")
        tag = {"action": "set-snapshot-ref", "ref-name": "v1", "type": "tag", "snapshot-id": 1}
        for more in ([set_properties(a="1")], [tag], adds(3, "x")[:1]):
            response = commit(client, place, name, *updates, *more, requirements=[asserts(1)])
            assert_error(response, 400, "BadRequestException")
        assert client.metadata(place, name)["current-snapshot-id"] == 1
        assert "a" not in client.metadata(place, name)["properties"]


class TestOthersOnTop:
    """Commits that assert no version are applied to whichever is the latest."""

    @pytest.mark.needs("property versions")
    def test_of_properties(self, client: Client, root: Root, place: Place, name: str, location: str) -> None:
        assert_ok(add(client, place, name, stage(location, 1, options=root.options)))
        answered = assert_ok(commit(client, place, name, set_properties(a="1")))
        assert answered["metadata"]["current-snapshot-id"] == 3
        assert ids(root, location) == [1]

    @pytest.mark.needs("property versions")
    def test_asserted_ones_are_decided_in_the_commit(
        self, bridge: Bridge, place: Place, name: str, location: str
    ) -> None:
        def race(number: int) -> int:
            with bridge.server.client() as client:
                update = set_properties(**{f"key{number}": "x"})
                status: int = commit(client, place, name, update, requirements=[asserts(1)]).status_code
                return status

        with ThreadPoolExecutor(16) as pool:
            statuses = list(pool.map(race, range(16)))
        assert sorted(statuses) == [200, *[409] * 15]
        properties = bridge.client.metadata(place, name)["properties"]
        assert [key for key in properties if key.startswith("key")] == [f"key{statuses.index(200)}"]

    @pytest.mark.needs("property versions")
    @LOCAL
    def test_sent_again(self, client: Client, place: Place, name: str, location: str) -> None:
        def send() -> Any:
            return commit(client, place, name, set_properties(a="1"), requirements=[asserts(1)])

        assert_ok(send())
        metadata = assert_ok(send())["metadata"]
        assert metadata["current-snapshot-id"] == 2
        assert metadata["properties"].keys() - SAFE == {"a", "managed_by", "table_type"}
        assert_ok(commit(client, place, name, set_properties(a="2")))
        assert assert_ok(send())["metadata"]["properties"]["a"] == "2"
        for number in range(40):
            assert_ok(commit(client, place, name, set_properties(many=str(number))))
        assert_ok(send())
        other = commit(client, place, name, set_properties(b="1"), requirements=[asserts(1)])
        assert_error(other, 409, "CommitFailedException")


Change = Callable[..., Any]


@_worlds(*VERSIONS)
class TestTogether:
    @pytest.fixture
    def tables(self, client: Client, place: Place, name: str) -> list[tuple[str, str]]:
        names = [f"{name}_{number}" for number in range(2)]
        properties = {"managed_by": "impl"}
        made = [client.create_table(place, each, properties=properties)["metadata"] for each in names]
        return [(each, metadata["location"]) for each, metadata in zip(names, made, strict=True)]

    def send(self, client: Client, place: Place, tables: Any, staged: Sequence[Request]) -> Any:
        changes = [
            {
                "identifier": {"namespace": place, "name": table},
                "requirements": [asserts(asked.version - 1)],
                "updates": adds(asked.version, f"/{asked.manifest_path}"),
            }
            for (table, _), asked in zip(tables, staged, strict=True)
        ]
        return client.post("transactions/commit", json={"table-changes": changes})

    def test_all_or_none(self, client: Client, root: Root, place: Place, tables: list[tuple[str, str]]) -> None:
        staged = [stage(location, 1, options=root.options) for _, location in tables]
        first = self.send(client, place, tables, staged)
        assert (first.status_code, first.content) == (204, b"")
        assert [ids(root, location) for _, location in tables] == [[1], [1]]
        again = self.send(client, place, tables, staged)
        assert again.status_code == 204
        fresh = stage(tables[0][1], 2, options=root.options)
        stale = stage(tables[1][1], 2, options=root.options)
        assert_ok(add(client, place, tables[1][0], stage(tables[1][1], 3, options=root.options)))
        before = [client.load(place, table) for table, _ in tables]
        response = self.send(client, place, tables, [fresh, stale])
        assert_error(response, 409, "CommitFailedException", names="Requirement failed: ")
        assert [client.load(place, table) for table, _ in tables] == before
        assert_ok(add(client, place, tables[0][0], fresh))

    def test_of_many_at_once_one(self, bridge: Bridge, place: Place, tables: list[tuple[str, str]]) -> None:
        staged = [
            [stage(location, number, options=bridge.root.options) for _, location in tables]
            for number in range(10)
        ]

        def race(asked: list[Request]) -> int:
            with bridge.server.client() as client:
                status: int = self.send(client, place, tables, asked).status_code
                return status

        with ThreadPoolExecutor(10) as pool:
            statuses = list(pool.map(race, staged))
        assert sorted(statuses) == [204, *[409] * 9]
        winner = statuses.index(204)
        assert [ids(bridge.root, location) for _, location in tables] == [[winner], [winner]]

    def test_what_takes_no_part(
        self, client: Client, root: Root, place: Place, name: str, tables: list[tuple[str, str]]
    ) -> None:
        client.create_table(place, f"{name}_plain")
        before = client.load(place, tables[0][0])
        asked = stage(tables[0][1], 1, options=root.options)
        changes = [
            {
                "identifier": {"namespace": place, "name": tables[0][0]},
                "requirements": [asserts(1)],
                "updates": adds(2, f"/{asked.manifest_path}"),
            },
            {
                "identifier": {"namespace": place, "name": f"{name}_plain"},
                "requirements": [],
                "updates": [set_properties(a="1")],
            },
        ]
        response = client.post("transactions/commit", json={"table-changes": changes})
        assert_error(response, 400, "BadRequestException", names=f"{name}_plain")
        assert client.load(place, tables[0][0]) == before
        assert "a" not in client.metadata(place, f"{name}_plain")["properties"]

    def test_properties_take_part(
        self, client: Client, root: Root, place: Place, tables: list[tuple[str, str]]
    ) -> None:
        asked = stage(tables[0][1], 1, options=root.options)
        changes = [
            {
                "identifier": {"namespace": place, "name": tables[0][0]},
                "requirements": [asserts(1)],
                "updates": adds(2, f"/{asked.manifest_path}"),
            },
            {
                "identifier": {"namespace": place, "name": tables[1][0]},
                "requirements": [],
                "updates": [set_properties(a="1")],
            },
        ]
        assert client.post("transactions/commit", json={"table-changes": changes}).status_code == 204
        assert client.metadata(place, tables[0][0])["current-snapshot-id"] == 2
        assert client.metadata(place, tables[1][0])["properties"]["a"] == "1"


@ONE_WORLD
def test_a_table_named_twice(client: Client, place: Place, name: str) -> None:
    client.create_table(place, name)
    change = {"identifier": {"namespace": place, "name": name}, "requirements": [], "updates": []}
    response = client.post("transactions/commit", json={"table-changes": [change, change]})
    assert_error(response, 400, "BadRequestException", names="twice")
    assert client.head(table_path(place, name)).status_code == 204
