"""Tables with `managed_by=impl`: what an Iceberg client sees of them, whoever keeps their versions."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from contract_tests.contract.test_commits import commit, remove_properties, set_properties
from contract_tests.worlds.bridge import Client, assert_ok, namespace_path, table_path, versions_in
from contract_tests.worlds.roots import Root

Place = tuple[str, ...]


def snapshots(client: Client, place: Place, name: str) -> list[int]:
    return [each["snapshot-id"] for each in versions_in(client.metadata(place, name))]


@pytest.mark.needs("property versions")
def test_each_commit_is_a_version(client: Client, root: Root, place: Place, name: str) -> None:
    made = client.create_table(place, name, properties={"managed_by": "impl"})["metadata"]
    assert made["properties"]["managed_by"] == "impl"
    for step in range(3):
        answered = assert_ok(commit(client, place, name, set_properties(step=str(step))))["metadata"]
        assert answered["current-snapshot-id"] == step + 2
    assert snapshots(client, place, name) == [1, 2, 3, 4]
    table = root.open(made["location"])
    assert (table.version, table.metadata["step"]) == (4, "2")
    assert not [file for file in root.files(f"{made['location']}/_versions") if "manifest-" in file]


@pytest.mark.needs("property versions")
def test_commits_at_once_are_all_there(client: Client, place: Place, name: str) -> None:
    client.create_table(place, name, properties={"managed_by": "impl"})

    def write(who: int) -> None:
        assert_ok(commit(client, place, name, set_properties(**{f"by-{who}": "x"})))

    with ThreadPoolExecutor(6) as writers:
        list(writers.map(write, range(6)))
    assert snapshots(client, place, name) == [1, 2, 3, 4, 5, 6, 7]
    assert {f"by-{who}" for who in range(6)} <= client.metadata(place, name)["properties"].keys()


@pytest.mark.needs("property versions")
def test_it_goes_over_and_back(client: Client, root: Root, place: Place, name: str) -> None:
    location = client.create_table(place, name)["metadata"]["location"]
    root.write(location, root.open(location).to_table(), mode="append")
    assert_ok(commit(client, place, name, set_properties(managed_by="impl")))
    assert_ok(commit(client, place, name, set_properties(a="1")))
    assert snapshots(client, place, name) == [1, 2, 3, 4]
    assert_ok(commit(client, place, name, remove_properties("managed_by")))
    root.write(location, root.open(location).to_table(), mode="append")
    assert snapshots(client, place, name) == [1, 2, 3, 4, 5, 6]


def test_a_declared_one_waits_for_its_first_version(client: Client, place: Place, name: str) -> None:
    client.declare_table(place, name, properties={"managed_by": "impl"})
    metadata = client.metadata(place, name)
    assert (metadata["properties"]["managed_by"], versions_in(metadata)) == ("impl", [])


@pytest.mark.needs("property versions")
def test_dropped_and_made_again(client: Client, place: Place, name: str) -> None:
    for _ in range(2):
        client.create_table(place, name, properties={"managed_by": "impl"})
        assert_ok(commit(client, place, name, set_properties(a="1")))
        assert snapshots(client, place, name) == [1, 2]
        assert client.delete(table_path(place, name), params={"purgeRequested": "true"}).status_code == 204


@pytest.mark.needs("property versions")
def test_deregistered_and_registered(client: Client, place: Place, name: str) -> None:
    location = client.create_table(place, name, properties={"managed_by": "impl"})["metadata"]["location"]
    assert_ok(commit(client, place, name, set_properties(a="1")))
    assert client.delete(table_path(place, name)).status_code == 204
    registered = client.post(
        f"{namespace_path(place)}/register", json={"name": name, "metadata-location": location}
    )
    assert assert_ok(registered)["metadata"]["current-snapshot-id"] == 2
    assert_ok(commit(client, place, name, set_properties(a="2")))
    assert snapshots(client, place, name) == [1, 2, 3]


@pytest.mark.needs("rename")
@pytest.mark.needs("property versions")
def test_renamed_with_its_versions(client: Client, place: Place, name: str) -> None:
    client.create_table(place, name, properties={"managed_by": "impl"})
    assert_ok(commit(client, place, name, set_properties(a="1")))
    moved = f"{name}-moved"
    body = {
        "source": {"namespace": list(place), "name": name},
        "destination": {"namespace": list(place), "name": moved},
    }
    assert client.post("tables/rename", json=body).status_code == 204
    assert_ok(commit(client, place, moved, set_properties(a="2")))
    assert snapshots(client, place, moved) == [1, 2, 3]
