"""Whatever the server behind answers, the client gets a sentence, and neither 500 nor silence; the log gets no
stack trace (`bridge_over` looks), and the bridge goes on."""

import gzip
import json
import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import lance
import pyarrow as pa
import pytest
import requests

from contract_tests.upstream import wrong
from contract_tests.upstream.faulty import Handler, Received, Reply, Upstream, faulty_upstream
from contract_tests.upstream.iceberg import load_result
from contract_tests.upstream.replies import JSON, answer, error, in_turn
from contract_tests.upstream.wrong import ENCODED, NO_JSON, NO_OBJECT, TABLES, WIRE, said, table
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.upstream import bridge_over

SETTINGS = "connect_timeout = 0.3\nread_timeout = 0.3\n"
TABLE = "/namespaces/ns/tables/t"
GOOD_CONFIG, GOOD_TOKEN = said({"defaults": {}, "overrides": {}}), said({"access_token": "good"})


@dataclass
class Behind:
    server: Server
    upstream: Upstream
    config: list[Reply] = field(default_factory=lambda: [GOOD_CONFIG])
    token: list[Reply] = field(default_factory=lambda: [GOOD_TOKEN])
    other: list[Handler] = field(default_factory=list)

    def says(self, reply: Reply) -> None:
        self.does(lambda _: reply)

    def does(self, handler: Handler) -> None:
        self.other[:] = [handler]
        self.upstream.requests.clear()

    def handle(self, received: Received) -> Reply | None:
        if received.path == "/v1/config":
            return self.config[0]
        if received.path == "/v1/oauth/tokens":
            return self.token[0]
        return self.other[0](received)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Behind]]:
    with ExitStack() as stack:

        def start() -> Behind:
            behind: list[Behind] = []
            upstream = stack.enter_context(faulty_upstream(lambda received: behind[0].handle(received)))
            folder = tmp_path_factory.mktemp("bridge")
            url = upstream.url.replace("//", "//user:pass@")
            settings = f'{SETTINGS}credential = "id:secret"\n'
            server = stack.enter_context(bridge_over(url, folder, settings))
            behind.append(Behind(server, upstream))
            return behind[0]

        yield start


@pytest.fixture(scope="module")
def one(started: Callable[[], Behind]) -> Behind:
    return started()


@pytest.fixture
def behind(one: Behind) -> Behind:
    one.config[:], one.token[:] = [GOOD_CONFIG], [GOOD_TOKEN]
    return one


@pytest.fixture(scope="module")
def never_configured(started: Callable[[], Behind]) -> Behind:
    """It asks for its configuration again and again, as long as that is wrong."""
    return started()


@pytest.fixture(scope="module")
def never_signed_in(started: Callable[[], Behind]) -> Behind:
    return started()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lance") / "t.lance"
    lance.write_dataset(pa.table({"id": [1]}), place)
    return place


def lance_request(behind: Behind, path: str, body: object = None) -> requests.Response:
    method = "GET" if body is None else "POST"
    return requests.request(method, f"{behind.server.url}/lance/v1/{path}", json=body, timeout=60)


def iceberg(behind: Behind, path: str, body: object = None) -> requests.Response:
    method = "GET" if body is None else "POST"
    return requests.request(method, f"{behind.server.url}/v1/main{path}", json=body, timeout=60)


COMMIT = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
ASKS: dict[str, Callable[[Behind], requests.Response]] = {
    "load": lambda behind: iceberg(behind, TABLE),
    "look before a commit": lambda behind: iceberg(behind, TABLE, COMMIT),
    "close look before a commit": lambda behind: iceberg(
        behind, TABLE, {"requirements": [], "updates": [{"action": "set-location", "location": "file:///x/y"}]}
    ),
    "describe": lambda behind: lance_request(behind, "table/ns$t/describe", {}),
    "declare": lambda behind: lance_request(behind, "table/ns$t/declare", {}),
    "list namespaces": lambda behind: lance_request(behind, "namespace/$/list"),
    "list tables": lambda behind: lance_request(behind, "namespace/ns/table/list"),
    "describe a namespace": lambda behind: lance_request(behind, "namespace/ns/describe", {}),
}
READ_AS_IT_CAME = ("load", "look before a commit")
EACH_CLIENT = ("load", "close look before a commit", "list namespaces")
"""The one that passes requests on, the same for a whole answer, and the one that waits in threads."""


def require_sentence(behind: Behind, answered: requests.Response, *statuses: int) -> None:
    assert answered.status_code in (statuses or (502,)), answered.text[:1000]
    content = answered.json()
    error = content["error"]
    message = error["message"] if isinstance(error, dict) else error
    assert len(message.split()) > 4
    assert "user" not in message.replace("user name", "") and "pass@" not in message, message
    assert requests.get(f"{behind.server.url}/health/live", timeout=10).status_code == 200


@pytest.mark.parametrize("fault", WIRE)
@pytest.mark.parametrize("ask", EACH_CLIENT)
def test_no_http(behind: Behind, ask: str, fault: str) -> None:
    behind.says(WIRE[fault])
    require_sentence(behind, ASKS[ask](behind), *((502, 504) if "trickle" in fault or "end" in fault else (502,)))


@pytest.mark.parametrize("fault", WIRE)
def test_no_http_for_what_passes_through(behind: Behind, fault: str) -> None:
    behind.says(WIRE[fault])
    try:
        require_sentence(behind, iceberg(behind, "/namespaces"), 502, 504)
    except requests.ConnectionError:
        assert "end" in fault, "a large answer that is passed on breaks off"


@pytest.mark.parametrize("fault", ENCODED)
@pytest.mark.parametrize("ask", [*EACH_CLIENT, "look before a commit"])
def test_an_encoding_that_nobody_asked_for(behind: Behind, ask: str, fault: str) -> None:
    behind.says(ENCODED[fault])
    require_sentence(behind, ASKS[ask](behind))
    assert peak_mib(behind.server) < 1000


@pytest.mark.parametrize("fault", NO_JSON)
@pytest.mark.parametrize("ask", ASKS)
def test_no_json(behind: Behind, ask: str, fault: str) -> None:
    behind.says(answer(200, NO_JSON[fault]))
    answered = ASKS[ask](behind)
    if ask in READ_AS_IT_CAME and fault in ("html", "UTF-16"):
        assert answered.content == NO_JSON[fault], "nothing in it is about Lance"
    else:
        require_sentence(behind, answered)


@pytest.mark.parametrize("fault", NO_OBJECT)
@pytest.mark.parametrize("ask", ASKS)
def test_no_object(behind: Behind, ask: str, fault: str) -> None:
    behind.says(answer(200, NO_OBJECT[fault]))
    answered = ASKS[ask](behind)
    if ask in READ_AS_IT_CAME:
        assert answered.content == NO_OBJECT[fault], "nothing in it is about Lance"
    else:
        require_sentence(behind, answered)


@pytest.mark.parametrize("fault", TABLES)
@pytest.mark.parametrize("ask", ["load", "look before a commit", "describe", "declare"])
def test_a_wrong_shape_of_a_lance_table(behind: Behind, folder: Path, ask: str, fault: str) -> None:
    behind.says(said(TABLES[fault](table(folder.as_uri()))))
    require_sentence(behind, ASKS[ask](behind))
    assert lance.dataset(str(folder)).version == 1


@pytest.mark.parametrize("fault", [*TABLES, "not JSON", "a list", "empty"])
def test_a_wrong_answer_to_a_commit_leaves_open_what_became_of_it(
    behind: Behind, folder: Path, fault: str
) -> None:
    right = table(folder.as_uri())
    others = {"not JSON": b"{", "a list": b"[]", "empty": b""}
    answered = answer(200, others[fault]) if fault in others else None
    after = answered or said(TABLES[fault](table(folder.as_uri(), right["metadata"]["table-uuid"])))
    behind.does(lambda received: after if received.method == "POST" else said(right))
    refused = iceberg(behind, TABLE, COMMIT | {"updates": [{"action": "set-properties", "updates": {"c": "d"}}]})
    if fault in ("credentials an object", "credential null", "credential without a config"):
        assert refused.status_code in (200, 502)
    else:
        require_sentence(behind, refused)
    assert len(behind.upstream.of("POST")) == 1
    if refused.status_code == 502:
        assert refused.json()["error"]["type"] == "CommitStateUnknownException"


@pytest.mark.parametrize("fault", wrong.CONFIGURATIONS)
def test_a_wrong_configuration(never_configured: Behind, fault: str) -> None:
    behind = never_configured
    behind.says(said({"namespaces": []}))
    behind.config[0] = said(wrong.CONFIGURATIONS[fault])
    require_sentence(behind, lance_request(behind, "namespace/$/list"))
    require_sentence(behind, iceberg(behind, "/namespaces"))
    if "prefix" not in fault and "separator" not in fault:
        require_sentence(behind, requests.get(f"{behind.server.url}/v1/config", timeout=60))


FAULTS: dict[str, Reply] = {**WIRE, **ENCODED}


@pytest.mark.parametrize("fault", ["half of it", "a redirect", "a trickle", "brotli", "half of gzip", "a bomb"])
def test_a_configuration_that_is_no_answer(never_configured: Behind, fault: str) -> None:
    behind = never_configured
    behind.config[0] = FAULTS[fault]
    require_sentence(behind, lance_request(behind, "namespace/$/list"), 502, 504)
    require_sentence(behind, iceberg(behind, "/namespaces"), 502, 504)
    require_sentence(behind, requests.get(f"{behind.server.url}/v1/config", timeout=60), 502, 504)


@pytest.mark.parametrize("fault", [*wrong.TOKENS, "half of it", "a redirect", "a trickle", "a bomb"])
def test_a_token_that_is_none(never_signed_in: Behind, fault: str) -> None:
    behind = never_signed_in
    behind.token[0] = wrong.TOKENS.get(fault) or FAULTS[fault]
    for answered in (lance_request(behind, "namespace/$/list"), iceberg(behind, "/namespaces")):
        require_sentence(behind, answered, 502, 503, 504)
        assert "secret" not in answered.text
    assert {each.path for each in behind.upstream.requests} == {"/v1/oauth/tokens"}


@pytest.mark.parametrize("fault", wrong.NAMESPACES)
def test_wrong_lists_of_namespaces(behind: Behind, fault: str) -> None:
    behind.says(said(wrong.NAMESPACES[fault]))
    require_sentence(behind, lance_request(behind, "namespace/$/list"))


@pytest.mark.parametrize("fault", wrong.IDENTIFIERS)
def test_wrong_lists_of_tables(behind: Behind, fault: str) -> None:
    behind.says(said(wrong.IDENTIFIERS[fault]))
    require_sentence(behind, lance_request(behind, "namespace/ns/table/list"))


@pytest.mark.parametrize("fault", wrong.NAMESPACE)
def test_wrong_properties_of_a_namespace(behind: Behind, fault: str) -> None:
    behind.says(said(wrong.NAMESPACE[fault]))
    require_sentence(behind, lance_request(behind, "namespace/ns/describe", {}))


def test_a_namespace_that_is_its_own_child(behind: Behind) -> None:
    behind.does(
        lambda received: said({"identifiers": []} if "/tables" in received.path else {"namespaces": [["a"]]})
    )
    answered = requests.get(f"{behind.server.url}/lance/v1/table", timeout=60)
    assert answered.status_code == 200, answered.text


@pytest.mark.parametrize("pause", ["nan", "inf", "-1", "1e400", "soon", "", "Thu, 01 Jan 2099 00:00:00 GMT"])
def test_a_pause_that_is_none(behind: Behind, pause: str) -> None:
    refusal = error(503, "Slow", [("Retry-After", pause)])
    behind.does(in_turn(refusal, said({"namespaces": [["ns"]]})))
    answered = lance_request(behind, "namespace/$/list")
    assert answered.json()["namespaces"] == ["ns"]
    behind.says(refusal)
    assert iceberg(behind, "/namespaces").status_code == 503


@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_errors_tell_no_password(behind: Behind, encoding: str | None) -> None:
    message = "could not reach jdbc:postgresql://admin:hunter2@db/x and http://me:hunter3@idp/"
    body = json.dumps({"error": {"message": message, "type": "X", "code": 500}}).encode()
    headers = [*JSON, *([("Content-Encoding", encoding)] if encoding else [])]
    behind.says(answer(500, gzip.compress(body) if encoding else body, headers))
    for answered in (
        iceberg(behind, "/namespaces"),
        iceberg(behind, TABLE),
        lance_request(behind, "namespace/$/list"),
    ):
        assert answered.status_code == 500
        assert "hunter" not in answered.text and "db/x" in answered.text
    ready = requests.get(f"{behind.server.url}/health/ready", timeout=60)
    assert "hunter" not in ready.text and "pass@" not in ready.text
    assert "hunter" not in behind.server.text() and "pass@" not in behind.server.text()


def test_a_cookie_of_one_request_is_not_sent_with_another(behind: Behind) -> None:
    cookie = [*JSON, ("Set-Cookie", "session=of-somebody; Path=/")]
    behind.says(answer(200, b'{"namespaces": []}', cookie))
    for _ in range(2):
        assert lance_request(behind, "namespace/$/list").status_code == 200
        assert "set-cookie" not in iceberg(behind, "/namespaces").headers
    assert all(each.header("cookie") is None for each in behind.upstream.requests)


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_large_table_passes_as_it_came(behind: Behind, encoding: str) -> None:
    words = random.Random(7).choices(["a", "table_type", '"lance"', "0123456789abcdef" * 8], k=1_300_000)
    body = load_result(snapshots=words)
    assert len(body) > 50_000_000
    sent = gzip.compress(body, 1) if encoding == "gzip" else body
    behind.says(answer(200, sent, [*JSON, ("Content-Encoding", encoding)]))
    answered = iceberg(behind, TABLE)
    assert answered.status_code == 200
    assert answered.content == body


def test_nobody_waits_while_a_bomb_is_looked_into(behind: Behind) -> None:
    behind.says(ENCODED["a large bomb"])
    answers: list[int] = []

    def load() -> None:
        answers.append(iceberg(behind, TABLE).status_code)

    loading = [threading.Thread(target=load) for _ in range(2)]
    for each in loading:
        each.start()
    slowest = 0.0
    while any(each.is_alive() for each in loading):
        live = requests.get(f"{behind.server.url}/health/live", timeout=30)
        slowest = max(slowest, live.elapsed.total_seconds())
    assert answers == [502] * 2
    assert slowest < 2


def peak_mib(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert match
    return int(match[1]) // 1024
