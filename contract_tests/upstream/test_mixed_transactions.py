"""transactions/commit over HTTP that changes a Lance table and an Iceberg table, all or nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from contract_tests.contract.test_version_commits import adds, asserts
from contract_tests.directory.staging import stage
from contract_tests.worlds.bridge import SCHEMA, assert_error, assert_ok
from contract_tests.worlds.upstream import bridge_over
from contract_tests.worlds.world import UpstreamWorld

NO_UUID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def base(upstream: UpstreamWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with bridge_over(upstream.url, tmp_path_factory.mktemp("mixed")) as server:
        yield f"{server.url}/v1/main"


@pytest.fixture
def tables(base: str, name: str) -> str:
    """The URL of a namespace's tables: `ice` of Iceberg and `lance` that the catalog manages."""
    requests.post(f"{base}/namespaces", json={"namespace": [name]}, timeout=60).raise_for_status()
    url = f"{base}/namespaces/{name}/tables"
    for table, properties in (("ice", {}), ("lance", {"table_type": "lance", "managed_by": "impl"})):
        body = {"name": table, "schema": SCHEMA, "properties": properties}
        requests.post(url, json=body, timeout=60).raise_for_status()
    return url


def metadata(tables: str, table: str) -> dict[str, Any]:
    found: dict[str, Any] = assert_ok(requests.get(f"{tables}/{table}", timeout=60))["metadata"]
    return found


def transaction(base: str, namespace: str, of_ice: dict[str, Any], of_lance: dict[str, Any]) -> requests.Response:
    changes = [
        {"identifier": {"namespace": [namespace], "name": table}, **change}
        for table, change in (("ice", of_ice), ("lance", of_lance))
    ]
    return requests.post(f"{base}/transactions/commit", json={"table-changes": changes}, timeout=60)


def next_version(location: str, number: int) -> dict[str, Any]:
    asked = stage(location, number)
    path = f"_versions/{asked.manifest_path.rpartition('/')[2]}"
    return {"requirements": [asserts(asked.version - 1)], "updates": adds(asked.version, path)}


def set_property(uuid: str) -> dict[str, Any]:
    same = {"type": "assert-table-uuid", "uuid": uuid}
    return {"requirements": [same], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}


def test_both_change(base: str, tables: str, name: str) -> None:
    ice, lance = metadata(tables, "ice"), metadata(tables, "lance")
    change = next_version(lance["location"], 7)
    answered = transaction(base, name, set_property(ice["table-uuid"]), change)
    assert answered.status_code == 204, answered.text
    assert metadata(tables, "ice")["properties"]["a"] == "1"
    assert metadata(tables, "lance")["current-snapshot-id"] == 2


@pytest.mark.parametrize("stale", ["ice", "lance"])
def test_neither_changes_when_one_is_stale(base: str, tables: str, name: str, stale: str) -> None:
    ice, lance = metadata(tables, "ice"), metadata(tables, "lance")
    change = next_version(lance["location"], 7)
    uuid = ice["table-uuid"]
    if stale == "ice":
        uuid = NO_UUID
    else:
        winner = next_version(lance["location"], 8)
        requests.post(f"{tables}/lance", json=winner, timeout=60).raise_for_status()
    assert_error(transaction(base, name, set_property(uuid), change), 409, "CommitFailedException")
    assert "a" not in metadata(tables, "ice")["properties"]
    assert metadata(tables, "lance")["current-snapshot-id"] == (1 if stale == "ice" else 2)
    assert Path(lance["location"].removeprefix("file://")).is_dir()
