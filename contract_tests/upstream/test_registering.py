"""RegisterTable of an `irc` warehouse: what is no Lance table goes to the server behind, whatever its name is."""

from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
import requests

from contract_tests.upstream.faulty import Received, Reply, Upstream, faulty_upstream
from contract_tests.upstream.replies import answer
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.upstream import bridge_over

Behind = tuple[Server, Upstream]


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    (tmp_path / "allowed").mkdir()
    return tmp_path / "allowed"


@pytest.fixture
def behind(tmp_path: Path, allowed: Path) -> Iterator[Behind]:
    def handle(received: Received) -> Reply:
        return answer(body=b"{}" if received.path == "/v1/config" else b'{"registered": true}')

    settings = f'allowed_locations = ["{allowed}"]\n'
    with (
        faulty_upstream(handle) as upstream,
        bridge_over(upstream.url, tmp_path / "bridge", settings) as server,
    ):
        yield server, upstream


def register(behind: Behind, location: str) -> requests.Response:
    body = {"name": "t", "metadata-location": location}
    return requests.post(f"{behind[0].url}/v1/main/namespaces/ns/register", json=body, timeout=60)


@pytest.mark.parametrize(
    "file",
    [
        "00000.metadata.json",
        "v1.json",
        "metadata",
        "v1.metadata.json.gz",
        "t.lance",
        "_versions/1.json",
        "1.manifest",
    ],
)
@pytest.mark.parametrize("is_allowed", [True, False])
def test_any_name_of_a_metadata_file(
    behind: Behind, allowed: Path, tmp_path: Path, file: str, is_allowed: bool
) -> None:
    place = (allowed if is_allowed else tmp_path / "elsewhere") / file
    place.parent.mkdir(exist_ok=True, parents=True)
    place.write_text("{}")
    assert register(behind, str(place)).json() == {"registered": True}
    assert [each.path for each in behind[1].of("POST")] == ["/v1/namespaces/ns/register"]


def test_a_lance_table_outside_of_what_is_allowed_is_not_looked_at(behind: Behind, tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1]}), tmp_path / "t.lance")
    assert register(behind, str(tmp_path / "t.lance")).json() == {"registered": True}


def test_a_lance_manifest_outside_is_refused_by_its_name(behind: Behind, tmp_path: Path) -> None:
    refused = register(behind, str(tmp_path / "t.lance" / "_versions" / "18446744073709551614.manifest"))
    assert refused.status_code == 400
    assert "allowed_locations" in refused.json()["error"]["message"]
    assert behind[1].of("POST") == []


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}", "{}/_versions/18446744073709551614.manifest"])
def test_a_lance_table_that_is_allowed_is_the_bridge_s(behind: Behind, allowed: Path, form: str) -> None:
    lance.write_dataset(pa.table({"id": [1]}), allowed / "t.lance")
    register(behind, form.format(allowed / "t.lance"))
    assert [each.path for each in behind[1].of("POST")] == ["/v1/namespaces/ns/tables"]
