"""LoadTable of a Lance table: location and properties of the server behind, all else from the table's files."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import pyarrow as pa
import pytest
import requests

from contract_tests.upstream.conftest import PREFIX, Behind
from contract_tests.upstream.faulty import Received, Reply, faulty_upstream
from contract_tests.upstream.iceberg import load_result
from contract_tests.upstream.replies import JSON, answer, error, in_turn
from contract_tests.worlds.s3 import S3
from contract_tests.worlds.s3_watch import watched
from contract_tests.worlds.upstream import bridge_over

TABLE = "/namespaces/ns/tables/t"
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lance.write_dataset(ROWS, tmp_path / "t.lance")
    return tmp_path / "t.lance"


def said(
    folder: Path | str, uuid: Any = None, etag: str | None = None, table_type: str = "lance", **more: Any
) -> Reply:
    properties = {"table_type": table_type, "a": "b", **more.pop("properties", {})}
    vended = more.pop("config", {})
    result = json.loads(
        load_result(
            uuid,
            location=str(folder) if "://" in str(folder) else f"file://{folder}",
            properties=properties,
            **more,
        )
    )
    body = json.dumps({**result, "config": vended}).encode()
    return answer(body=body, headers=JSON if etag is None else [*JSON, ("ETag", etag)])


def load(behind: Behind, etag: str | None = None, query: str = "") -> requests.Response:
    headers = {} if etag is None else {"If-None-Match": etag}
    return requests.get(f"{behind.base}{TABLE}{query}", headers=headers, timeout=60)


@pytest.mark.parametrize("word", ["lance", "LANCE", "Lance"])
def test_both_sides_are_merged_in_one_request(behind: Behind, folder: Path, word: str) -> None:
    uuid = uuid4()
    behind.says(said(folder, uuid, table_type=word))
    answered = load(behind).json()
    assert "metadata-location" not in answered
    metadata = answered["metadata"]
    assert metadata["table-uuid"] == str(uuid)
    assert metadata["location"] == f"file://{folder}"
    engines = f"file://{folder}/_iceberg/engines"
    assert metadata["properties"] == {
        "a": "b",
        "managed_by": "storage",
        "table_type": "lance",
        "gc.enabled": "false",
        "write.data.path": f"{engines}/data",
        "write.metadata.path": f"{engines}/metadata",
    }
    assert metadata["current-snapshot-id"] == 1
    (schema,) = metadata["schemas"]
    assert [field["name"] for field in schema["fields"]] == ["id"]
    assert behind.asked == [("GET", f"{PREFIX}{TABLE}")]


def test_versions_come_from_the_storage(behind: Behind, folder: Path) -> None:
    behind.says(said(folder))
    lance.write_dataset(ROWS, folder, mode="append")
    assert load(behind).json()["metadata"]["current-snapshot-id"] == 2
    lance.write_dataset(ROWS, folder, mode="append")
    assert load(behind).json()["metadata"]["current-snapshot-id"] == 3
    assert len(behind.asked) == 2


def test_what_the_server_vends_goes_to_the_client_and_is_not_kept(behind: Behind, folder: Path) -> None:
    behind.says(said(folder, config={"s3.access-key-id": "hers", "token": "the bridge's"}))
    answered = load(behind)
    assert answered.json()["config"] == {"s3.access-key-id": "hers"}
    assert answered.headers["cache-control"] == "no-store, private"
    assert "etag" not in answered.headers


class TestConditional:
    def test_an_unchanged_answer_is_not_sent_again(self, behind: Behind, folder: Path) -> None:
        behind.says(said(folder, uuid4()))
        etag = load(behind).headers["etag"]
        assert load(behind, etag).status_code == 304
        lance.write_dataset(ROWS, folder, mode="append")
        assert load(behind, etag).status_code == 200

    @pytest.mark.parametrize("theirs", ['"x"', 'W/"x, y"'])
    def test_the_server_behind_is_asked_conditionally(self, behind: Behind, folder: Path, theirs: str) -> None:
        reply = said(folder, uuid4(), theirs)
        behind.does(lambda received: reply if received.header("if-none-match") is None else answer(304, b""))
        etag = load(behind).headers["etag"]
        assert etag != theirs
        # files that changed just now may change again without a trace, so at first they are read again
        assert any(load(behind, etag).status_code == 304 for _ in range(1000))
        behind.upstream.requests.clear()
        again = load(behind, etag)
        assert (again.status_code, again.headers["etag"]) == (304, etag)
        (received,) = behind.upstream.requests
        assert received.header("if-none-match") == theirs

    def test_a_new_version_is_seen_though_the_server_behind_has_nothing_new(
        self, behind: Behind, folder: Path
    ) -> None:
        reply = said(folder, uuid4(), '"x"')
        behind.says(reply)
        etag = load(behind).headers["etag"]
        lance.write_dataset(ROWS, folder, mode="append")
        behind.does(in_turn(answer(304, b""), reply))
        answered = load(behind, etag)
        assert answered.json()["metadata"]["current-snapshot-id"] == 2
        assert [each.header("if-none-match") for each in behind.upstream.requests] == ['"x"', None]

    def test_an_etag_that_nobody_remembers_is_asked_for_whole(self, behind: Behind, folder: Path) -> None:
        reply = said(folder, uuid4(), '"x"')
        behind.says(reply)
        all_of_it = load(behind).headers["etag"]
        behind.does(in_turn(answer(304, b""), reply))
        assert load(behind, all_of_it, "?snapshots=refs").status_code == 200

    def test_an_iceberg_table_s_304_goes_on_as_it_is(self, behind: Behind) -> None:
        behind.says(answer(304, b"", [("ETag", '"x"')]))
        answered = load(behind, '"x"')
        assert (answered.status_code, answered.headers["etag"]) == (304, '"x"')
        assert len(behind.asked) == 1


def test_a_conditional_request_opens_no_table(s3: S3, tmp_path: Path) -> None:
    """Counted where the table's files are read."""
    asked: list[str] = []
    location = f"{s3.bucket('loads')}/t.lance"
    lance.write_dataset(ROWS, location, storage_options=dict(s3.options))
    reply = said(location, uuid4(), '"x"')

    def watch(method: str, path: str) -> None:
        asked.append(f"{method} {path}")

    def handle(received: Received) -> Reply:
        if received.path == "/v1/config":
            return answer(body=b"{}")
        return reply if received.header("if-none-match") is None else answer(304, b"")

    with (
        faulty_upstream(handle) as upstream,
        watched(s3.endpoint, watch) as endpoint,
        bridge_over(upstream.url, tmp_path, storage={**s3.options, "aws_endpoint": endpoint}) as server,
    ):
        table = f"{server.url}/v1/main{TABLE}"
        etag = requests.get(table, timeout=60).headers["etag"]
        assert any(each.startswith("GET") and ".manifest" in each for each in asked)
        asked.clear()
        assert requests.get(table, headers={"If-None-Match": etag}, timeout=60).status_code == 304
    assert not any(".manifest" in each.partition("?")[0] for each in asked), asked


def test_a_table_without_files_is_broken_and_the_others_are_not(behind: Behind, folder: Path) -> None:
    (folder / "_versions").rename(folder / "elsewhere")
    (folder / "_versions").mkdir()
    (folder / "_versions" / "18446744073709551614.manifest").write_bytes(b"nothing")
    behind.says(said(folder))
    broken = load(behind)
    assert broken.status_code == 500
    assert str(folder) in broken.json()["error"]["message"]
    lance.write_dataset(ROWS, folder.with_name("u.lance"))
    behind.says(said(folder.with_name("u.lance")))
    assert load(behind).status_code == 200


def test_an_upstream_error_is_told_as_it_is(behind: Behind) -> None:
    behind.says(error(404, "NoSuchTableException"))
    answered = load(behind)
    assert (answered.status_code, answered.json()["error"]["message"]) == (404, "no luck")
