"""What goes to the server behind when a client commits to a table that could be a Lance table, or become one."""

import json
from typing import Any
from uuid import uuid4

import pytest
import requests

from contract_tests.upstream.conftest import Behind
from contract_tests.upstream.faulty import Received, Reply
from contract_tests.upstream.iceberg import COMMITTED, commit, load_result, loaded
from contract_tests.upstream.replies import JSON, answer, error

SETTINGS = 'root = "/nowhere/below"\n'
TABLE = "/namespaces/ns/tables/t"
IDENTIFIER = {"namespace": ["ns"], "name": "t"}
LANCE = {"action": "set-properties", "updates": {"table_type": "lance"}}
MOVE = {"action": "set-location", "location": "s3://elsewhere/t"}
INSIDE = {"action": "set-location", "location": "/nowhere/below/t"}
PROPERTY = {"action": "set-properties", "updates": {"a": "b"}}


def looked_at(reply: Reply) -> Any:
    return lambda received: reply if received.method == "GET" else COMMITTED


def sent(behind: Behind) -> list[dict[str, Any]]:
    return [json.loads(each.body) for each in behind.upstream.of("POST")]


def post(
    behind: Behind, *updates: object, requirements: object = (), transaction: bool = False
) -> requests.Response:
    change = {"requirements": list(requirements), "updates": list(updates)}  # type: ignore[call-overload]
    if transaction:
        body = {"table-changes": [{"identifier": IDENTIFIER, **change}]}
        return requests.post(f"{behind.base}/transactions/commit", json=body, timeout=60)
    return requests.post(f"{behind.base}{TABLE}", json=change, timeout=60)


@pytest.mark.parametrize("transaction", [False, True])
class TestAnIcebergTable:
    def test_moves_only_as_long_as_it_is_the_same(self, behind: Behind, transaction: bool) -> None:
        """Somebody may put a Lance table under the name meanwhile."""
        uuid = uuid4()
        behind.does(looked_at(loaded(uuid)))
        assert post(behind, MOVE, transaction=transaction).status_code == 200
        (body,) = sent(behind)
        change = body["table-changes"][0] if transaction else body
        assert change["requirements"] == [{"type": "assert-table-uuid", "uuid": str(uuid)}]
        assert change["updates"] == [MOVE]

    def test_that_was_seen_before_is_looked_at_again_before_it_moves(
        self, behind: Behind, transaction: bool
    ) -> None:
        uuid = uuid4()
        behind.does(looked_at(loaded(uuid)))
        requests.get(f"{behind.base}{TABLE}", timeout=60)
        behind.upstream.requests.clear()
        asserted = [{"type": "assert-table-uuid", "uuid": str(uuid)}]
        assert post(behind, PROPERTY, requirements=asserted, transaction=transaction).ok
        assert [method for method, _ in behind.asked] == ["POST"]
        assert post(behind, MOVE, requirements=asserted, transaction=transaction).ok
        assert [method for method, _ in behind.asked] == ["POST", "GET", "POST"]

    def test_becomes_a_lance_table_with_its_place(self, behind: Behind, transaction: bool) -> None:
        uuid = uuid4()
        behind.does(looked_at(loaded(uuid, location="s3://elsewhere/t")))
        assert post(behind, INSIDE, LANCE, transaction=transaction).status_code == 200
        (body,) = sent(behind)
        change = body["table-changes"][0] if transaction else body
        place = {"irc-bridge.location": "file:///nowhere/below/t", "gc.enabled": "false"}
        assert change["updates"] == [INSIDE, LANCE, {"action": "set-properties", "updates": place}]
        assert change["requirements"] == [{"type": "assert-table-uuid", "uuid": str(uuid)}]

    @pytest.mark.parametrize("updates", [[LANCE], [MOVE, LANCE], [INSIDE, MOVE, LANCE], [LANCE, INSIDE, MOVE]])
    def test_does_not_become_one_elsewhere(
        self, behind: Behind, transaction: bool, updates: list[dict[str, Any]]
    ) -> None:
        behind.does(looked_at(loaded(location="s3://elsewhere/t")))
        refused = post(behind, *updates, transaction=transaction)
        assert refused.status_code == 400
        assert "allowed_locations" in refused.json()["error"]["message"]
        assert sent(behind) == []

    @pytest.mark.parametrize("updates", [[MOVE], [INSIDE, LANCE]])
    def test_that_is_not_there_is_not_committed_to(
        self, behind: Behind, transaction: bool, updates: list[dict[str, Any]]
    ) -> None:
        """It may be there, as a Lance table, when the commit arrives."""
        behind.does(looked_at(error(404, "NoSuchTableException")))
        refused = post(behind, *updates, transaction=transaction)
        assert (refused.status_code, refused.json()["error"]["type"]) == (404, "NoSuchTableException")
        assert sent(behind) == []

    @pytest.mark.parametrize(
        "metadata", [{}, {"table-uuid": 1, "location": "s3://x/y"}, {"location": "s3://x/y"}, []]
    )
    def test_of_which_the_server_says_too_little(
        self, behind: Behind, transaction: bool, metadata: object
    ) -> None:
        behind.does(looked_at(answer(200, json.dumps({"metadata": metadata}).encode())))
        assert post(behind, MOVE, transaction=transaction).status_code == 502
        assert sent(behind) == []


@pytest.mark.parametrize("status", [401, 403, 500, 503])
@pytest.mark.parametrize("what", ["commit", "transaction", "purge", "plan"])
def test_nothing_is_changed_while_nobody_knows_what_it_is(behind: Behind, status: int, what: str) -> None:
    behind.does(looked_at(error(status, "No")))
    if what == "purge":
        answered = requests.delete(f"{behind.base}{TABLE}?purgeRequested=true", timeout=60)
    elif what == "plan":
        answered = requests.post(f"{behind.base}{TABLE}/plan", json={}, timeout=60)
    else:
        answered = post(behind, PROPERTY, transaction=what == "transaction")
    assert answered.status_code == status
    assert {each.method for each in behind.upstream.requests} == {"GET"}


@pytest.mark.parametrize("key", ["table-uuid", "table-uuid "])
def test_a_property_does_not_pass_for_the_uuid_of_the_table(behind: Behind, key: str) -> None:
    """Some servers write properties before the uuid."""
    lance_table = uuid4()
    result = json.loads(load_result())
    metadata = {
        "properties": {key: str(lance_table)},
        **{k: v for k, v in result["metadata"].items() if k != "properties"},
    }
    behind.says(answer(body=json.dumps({**result, "metadata": metadata}).encode()))
    requests.get(f"{behind.base}{TABLE}", timeout=60)
    behind.does(looked_at(loaded(lance_table)))
    requests.post(f"{behind.base}{TABLE}", json=commit(lance_table), timeout=60)
    assert [method for method, _ in behind.asked] == ["GET", "POST"], "it has to be looked at"


def test_a_redirect_is_not_passed_on(behind: Behind) -> None:
    for status in (301, 302, 303, 307, 308):
        behind.says(answer(status, b"{}", [*JSON, ("Location", "http://user:pass@elsewhere/v1/x")]))
        for path in ("/namespaces", TABLE, "/x/y"):
            answered = requests.get(f"{behind.base}{path}", timeout=60, allow_redirects=False)
            assert answered.status_code == 502
            assert "location" not in answered.headers and "pass" not in answered.text


def test_an_encoding_that_the_client_takes_is_passed_on(behind: Behind) -> None:
    """Of those that the bridge can read."""
    seen: list[str | None] = []

    def reply(received: Received) -> Reply:
        seen.append(received.header("accept-encoding"))
        return answer(200, b"{}")

    behind.does(reply)
    for path in ("/namespaces", TABLE):
        for accepted in ("br, gzip", "br", "identity"):
            requests.get(f"{behind.base}{path}", headers={"Accept-Encoding": accepted}, timeout=60)
    assert seen == ["gzip", "identity", "identity"] * 2
