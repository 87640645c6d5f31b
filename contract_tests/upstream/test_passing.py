"""What is not about a Lance table goes to the server behind and back as it is."""

import gzip
import json
from uuid import uuid4

import pytest
import requests

from contract_tests.upstream.conftest import PREFIX, Behind
from contract_tests.upstream.faulty import Received, Reply
from contract_tests.upstream.iceberg import COMMITTED, CREATE, commit, load_result, loaded
from contract_tests.upstream.replies import JSON, answer, error, half, in_turn, raw, streamed
from contract_tests.worlds.bridge import raw_request

TABLE = "/namespaces/ns/tables/t"


def test_a_read_is_one_request(behind: Behind) -> None:
    body = load_result()
    behind.says(answer(body=body, headers=[*JSON, ("ETag", 'W/"x"'), ("X-Else", "y")]))
    answered = requests.get(f"{behind.base}{TABLE}?snapshots=refs", timeout=60)
    assert answered.content == body
    assert (answered.headers["etag"], answered.headers["x-else"]) == ('W/"x"', "y")
    assert behind.asked == [("GET", f"{PREFIX}{TABLE}?snapshots=refs")]


@pytest.mark.parametrize(
    "path",
    [
        "/namespaces/a%1Fb/tables/a%2Fb",
        "/namespaces/a+b%20c/tables/%C3%A4~",
        "/namespaces/ns/views/v",
        "/namespaces/ns/tables/t/credentials",
        "/namespaces?pageToken=&parent=a%1Fb",
        "/namespaces/ns/functions/not-yet-known",
        "/not/yet/known?a=%2B&b",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_paths_and_queries_arrive_as_they_were_sent(behind: Behind, method: str, path: str) -> None:
    behind.says(answer(204, b""))
    with raw_request(behind.server.url, f"{method} /v1/main{path} HTTP/1.1".encode()) as answered:
        assert answered.status == 204
    assert behind.asked == [(method, PREFIX + path)]


def test_without_a_prefix_the_only_warehouse_is_meant(behind: Behind) -> None:
    behind.says(answer(204, b""))
    requests.get(f"{behind.server.url}/v1/namespaces/ns", timeout=60)
    assert behind.asked == [("GET", f"{PREFIX}/namespaces/ns")]


def test_a_route_outside_of_any_prefix(behind: Behind) -> None:
    behind.says(answer(204, b""))
    requests.post(f"{behind.server.url}/v1/aws/s3/sign", json={}, timeout=60)
    assert behind.asked == [("POST", "/v1/aws/s3/sign")]


def test_another_warehouse_is_not_that_of_the_server_behind(behind: Behind) -> None:
    behind.says(answer(204, b""))
    answered = requests.get(f"{behind.server.url}/v1/other/namespaces", timeout=60)
    assert (answered.status_code, answered.json()["error"]["type"]) == (404, "NoSuchWarehouseException")
    assert behind.asked == []


@pytest.mark.parametrize(
    "reply",
    [
        error(404, "NoSuchTableException"),
        error(409, ""),
        error(429, "TooMany", [("Retry-After", "7")]),
        error(503, "Slow", [("Retry-After", "3")]),
        error(500, "Whatever"),
        answer(418, b"no json at all", [("Content-Type", "text/plain")]),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_errors_come_back_as_they_are(behind: Behind, method: str, reply: Reply) -> None:
    seen: list[bytes] = []
    behind.says(reply)
    straight = requests.request(method, f"{behind.upstream.url}/v1/x", timeout=60)
    seen = [straight.content]
    behind.says(reply)
    through = requests.request(method, f"{behind.base}/namespaces", json={}, timeout=60)
    assert (through.status_code, [through.content]) == (straight.status_code, seen)
    assert through.headers.get("retry-after") == straight.headers.get("retry-after")
    assert len(behind.asked) == 1


def test_headers_of_the_client_arrive(behind: Behind) -> None:
    behind.says(loaded())
    sent = {
        "X-Iceberg-Access-Delegation": "vended-credentials",
        "Idempotency-Key": "018f",
        "If-None-Match": '"theirs"',
        "X-Client-Version": "1",
        "Accept-Encoding": "br, gzip;q=0.5",
        "Authorization": "Bearer for-the-bridge",
        "Cookie": "a=b",
    }
    requests.get(f"{behind.base}{TABLE}", headers=sent, timeout=60)
    (received,) = behind.upstream.requests
    got = dict(received.headers)
    for name in ("X-Iceberg-Access-Delegation", "Idempotency-Key", "If-None-Match", "X-Client-Version"):
        assert got[name.lower()] == sent[name]
    assert got["accept-encoding"] == "gzip", "else nobody could look into the answer"
    assert "authorization" not in got and "cookie" not in got, "they were for the bridge"
    assert received.header("host") == behind.upstream.url.removeprefix("http://")


def test_a_compressed_answer_stays_as_it_was_compressed(behind: Behind) -> None:
    packed = gzip.compress(load_result(), mtime=7)
    behind.says(answer(body=packed, headers=[*JSON, ("Content-Encoding", "gzip")]))
    with raw_request(
        behind.server.url, f"GET /v1/main{TABLE} HTTP/1.1\r\nAccept-Encoding: gzip".encode()
    ) as answered:
        assert answered.headers["content-encoding"] == "gzip"
        assert answered.read() == packed


@pytest.mark.parametrize("path", [TABLE, "/namespaces"])
def test_a_large_answer_is_streamed(behind: Behind, path: str) -> None:
    chunk = b"0123456789abcdef" * 4096
    behind.says(streamed(40_000_000, chunk))
    size = 0
    with requests.get(f"{behind.base}{path}", stream=True, timeout=60) as answered:
        for piece in answered.iter_content(1 << 20):
            assert piece[:16] in (chunk + chunk)
            size += len(piece)
    assert size >= 40_000_000


@pytest.mark.parametrize("path", [TABLE, "/namespaces"])
def test_a_large_answer_that_breaks_off_is_not_taken_for_a_whole_one(behind: Behind, path: str) -> None:
    behind.says(half(b"x" * 4_000_000))
    with pytest.raises(requests.RequestException):
        answered = requests.get(f"{behind.base}{path}", timeout=60)
        answered.raise_for_status()


def test_a_small_answer_that_breaks_off_is_an_error_of_the_gateway(behind: Behind) -> None:
    behind.says(half(load_result()))
    answered = requests.get(f"{behind.base}{TABLE}", timeout=60)
    assert answered.status_code == 502
    assert behind.upstream.url in answered.json()["error"]["message"]


def test_what_is_no_http_is_an_error_of_the_gateway(behind: Behind) -> None:
    behind.says(raw(b"SSH-2.0-OpenSSH\r\n\r\n"))
    assert requests.get(f"{behind.base}/namespaces", timeout=60).status_code == 502


class TestChanges:
    def test_a_commit_of_a_table_that_was_loaded_is_one_request(self, behind: Behind) -> None:
        uuid = uuid4()
        behind.says(loaded(uuid))
        requests.get(f"{behind.base}{TABLE}", timeout=60)
        behind.says(COMMITTED)
        body = json.dumps(commit(uuid), indent=3).encode()
        answered = requests.post(f"{behind.base}{TABLE}", data=body, headers=dict(JSON), timeout=60)
        assert answered.content == b'{"metadata-location": "m",  "metadata": {}}'
        assert answered.headers["etag"] == '"e"'
        assert behind.asked == [("POST", f"{PREFIX}{TABLE}")]
        assert behind.upstream.requests[0].body == body

    @pytest.mark.parametrize("asserted", [True, False])
    def test_a_commit_of_a_table_that_nobody_loaded_looks_first(self, behind: Behind, asserted: bool) -> None:
        uuid = uuid4()
        behind.does(in_turn(loaded(uuid), COMMITTED))
        answered = requests.post(f"{behind.base}{TABLE}", json=commit(uuid if asserted else None), timeout=60)
        assert answered.status_code == 200
        assert [method for method, _ in behind.asked] == ["GET", "POST"]

    def test_a_commit_that_creates_is_one_request(self, behind: Behind) -> None:
        behind.says(COMMITTED)
        body = {"requirements": [{"type": "assert-create"}], "updates": []}
        assert requests.post(f"{behind.base}{TABLE}", json=body, timeout=60).status_code == 200
        assert behind.asked == [("POST", f"{PREFIX}{TABLE}")]

    @pytest.mark.parametrize("purge", [None, "false", "true"])
    def test_a_drop_looks_first_only_when_files_go(self, behind: Behind, purge: str | None) -> None:
        def reply(received: Received) -> Reply:
            return answer(204, b"") if received.method == "DELETE" else loaded()

        behind.does(reply)
        query = {} if purge is None else {"purgeRequested": purge}
        assert requests.delete(f"{behind.base}{TABLE}", params=query, timeout=60).status_code == 204
        assert [method for method, _ in behind.asked] == (["GET", "DELETE"] if purge == "true" else ["DELETE"])

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/namespaces/ns/tables", CREATE),
            ("/namespaces/ns/register", {"name": "t", "metadata-location": "s3://b/t/1.metadata.json"}),
            ("/tables/rename", {}),
            ("/namespaces", {"namespace": ["a/b", ".", "$"]}),
            ("/namespaces/ns/views", {}),
            ("/namespaces/ns/tables/t/metrics", {}),
            ("/namespaces/ns/tables", "no json"),
        ],
    )
    def test_what_is_not_about_a_lance_table_is_one_request(self, behind: Behind, path: str, body: object) -> None:
        behind.says(COMMITTED)
        sent = json.dumps(body, indent=5).encode()
        assert requests.post(f"{behind.base}{path}", data=sent, headers=dict(JSON), timeout=60).status_code == 200
        assert behind.asked == [("POST", PREFIX + path)]
        assert behind.upstream.requests[0].body == sent

    def test_a_transaction_looks_at_the_tables_that_it_does_not_know(self, behind: Behind) -> None:
        known, unknown = uuid4(), uuid4()
        behind.says(loaded(known))
        requests.get(f"{behind.base}{TABLE}", timeout=60)
        behind.does(in_turn(loaded(unknown), answer(204, b"")))
        changes = [
            {"identifier": {"namespace": ["a", "b c"], "name": f"t/{n}"}, **commit(uuid)}
            for n, uuid in enumerate((known, unknown))
        ]
        answered = requests.post(f"{behind.base}/transactions/commit", json={"table-changes": changes}, timeout=60)
        assert answered.status_code == 204
        assert behind.asked == [
            ("GET", f"{PREFIX}/namespaces/a%1Fb%20c/tables/t%2F1?snapshots=refs"),
            ("POST", f"{PREFIX}/transactions/commit"),
        ]


class TestNamesThatAreEncodedTwice:
    """As the published Lance client sends them."""

    def test_are_understood_where_nothing_of_the_literal_name_exists(self, behind: Behind) -> None:
        behind.does(in_turn(error(404, "NoSuchNamespaceException"), answer(204, b"")))
        assert requests.get(f"{behind.base}/namespaces/my%2520ns", timeout=60).status_code == 204
        assert [target for _, target in behind.asked] == [
            f"{PREFIX}/namespaces/my%2520ns",
            f"{PREFIX}/namespaces/my%20ns",
        ]

    def test_mean_what_they_say_where_that_exists(self, behind: Behind) -> None:
        behind.says(answer(204, b""))
        requests.get(f"{behind.base}/namespaces/my%2520ns", timeout=60)
        assert len(behind.asked) == 1

    def test_the_first_refusal_is_told_when_neither_exists(self, behind: Behind) -> None:
        behind.does(in_turn(answer(404, b"first"), answer(404, b"second")))
        assert requests.get(f"{behind.base}/namespaces/my%2520ns", timeout=60).content == b"first"


class TestConfig:
    def test_is_true_of_the_bridge(self, behind: Behind) -> None:
        said = requests.get(f"{behind.server.url}/v1/config?warehouse=main", timeout=60).json()
        assert said == {
            "defaults": {"prefix": "main", "a": "b"},
            "overrides": {"prefix": "main", "scan-planning-mode": "client"},
            "endpoints": ["GET /v1/{prefix}/namespaces", "POST /v1/{prefix}/x/y"],
            "idempotency-key-lifetime": "PT30M",
        }

    def test_of_a_warehouse_that_is_not_there(self, behind: Behind) -> None:
        answered = requests.get(f"{behind.server.url}/v1/config?warehouse=other", timeout=60)
        assert (answered.status_code, answered.json()["error"]["type"]) == (404, "NoSuchWarehouseException")

    def test_no_tokens_are_given_out(self, behind: Behind) -> None:
        answered = requests.post(f"{behind.server.url}/v1/oauth/tokens", timeout=60)
        assert answered.status_code == 400
        assert behind.asked == []
