"""A server behind that is slow, refuses, resets, breaks off: the client hears what is true, and nothing hangs."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

from contract_tests.upstream.conftest import Behind
from contract_tests.upstream.faulty import Received, Reply, refusing, unreachable
from contract_tests.upstream.iceberg import CREATE, commit, load_result, loaded
from contract_tests.upstream.replies import (
    answer,
    close,
    half,
    half_chunked,
    half_head,
    held,
    in_turn,
    never,
    reset,
    streamed,
    trickle,
)
from contract_tests.worlds.upstream import bridge_over

SETTINGS = "connect_timeout = 0.5\nread_timeout = 0.5\n"
TABLE = "/namespaces/ns/tables/t"
UNKNOWN = "CommitStateUnknownException"

READS: dict[str, tuple[str, str, Any]] = {
    "load": ("GET", TABLE, None),
    "list": ("GET", "/namespaces/ns/tables", None),
    "exists": ("HEAD", TABLE, None),
}
CHANGES: dict[str, tuple[str, str, Any]] = {
    "create": ("POST", "/namespaces/ns/tables", CREATE),
    "drop": ("DELETE", TABLE, None),
    "rename": ("POST", "/tables/rename", {}),
}
COMMITS: dict[str, tuple[str, str, Any]] = {
    "commit": ("POST", TABLE, {"requirements": [{"type": "assert-create"}], "updates": []}),
    "transaction": ("POST", "/transactions/commit", {"table-changes": []}),
    "view": ("POST", "/namespaces/ns/views/v", {}),
}
BREAKS = {
    "closes": close(),
    "resets": reset(),
    "half a head": half_head(),
    "half a body": half(b"x" * 1000),
    "half a chunked body": half_chunked(b"x" * 1000),
    "half a body, then reset": half(b"x" * 1000, reset()),
}
SILENCES = {
    "never answers": never(),
    "falls silent in the head": half_head(never()),
    "falls silent in the body": half(b"x" * 1000, never()),
    "trickles": trickle(b"x" * 1000, 0.2),
}


def ask(base: str, request: tuple[str, str, Any]) -> requests.Response:
    method, path, body = request
    return requests.request(method, base + path, json=body, timeout=30)


def kind(answered: requests.Response) -> str:
    return "" if answered.request.method == "HEAD" else str(answered.json()["error"]["type"])


@pytest.mark.parametrize("fault", BREAKS)
@pytest.mark.parametrize("read", ["load", "list"])
def test_a_read_that_breaks_off(behind: Behind, read: str, fault: str) -> None:
    behind.says(BREAKS[fault])
    assert ask(behind.base, READS[read]).status_code == 502
    assert 1 <= len(behind.asked) <= 3


@pytest.mark.parametrize("read", READS)
def test_a_read_is_tried_again_where_that_helps(behind: Behind, read: str) -> None:
    behind.does(in_turn(close(), reset(), loaded()))
    assert ask(behind.base, READS[read]).status_code == 200
    assert len(behind.asked) == 3


@pytest.mark.parametrize("fault", BREAKS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_breaks_off_is_sent_once(behind: Behind, change: str, fault: str) -> None:
    behind.says(BREAKS[fault])
    answered = ask(behind.base, CHANGES[change])
    assert answered.status_code == 502
    assert "is not known" in answered.json()["error"]["message"]
    assert len(behind.asked) == 1


@pytest.mark.parametrize("fault", BREAKS)
@pytest.mark.parametrize("name", COMMITS)
def test_a_commit_that_breaks_off_is_sent_once_and_its_fate_unknown(behind: Behind, name: str, fault: str) -> None:
    behind.says(BREAKS[fault])
    answered = ask(behind.base, COMMITS[name])
    assert (answered.status_code, kind(answered)) == (502, UNKNOWN)
    assert "retry-after" not in answered.headers
    assert len(behind.asked) == 1


@pytest.mark.parametrize("fault", SILENCES)
@pytest.mark.parametrize("name", ["load", "create", "commit"])
def test_a_silence_ends(behind: Behind, name: str, fault: str) -> None:
    behind.says(SILENCES[fault])
    begun = time.monotonic()
    answered = ask(behind.base, (READS | CHANGES | COMMITS)[name])
    assert answered.status_code == 504
    assert (kind(answered) == UNKNOWN) == (name == "commit")
    assert time.monotonic() - begun < 15
    assert len(behind.asked) == 1


@pytest.mark.parametrize("place", [refusing, unreachable])
def test_who_cannot_be_reached_has_changed_nothing(
    place: Callable[[], AbstractContextManager[str]], tmp_path: Path
) -> None:
    with place() as url, bridge_over(url, tmp_path, "connect_timeout = 0.2\n") as server:
        for request in (READS["load"], *CHANGES.values(), *COMMITS.values()):
            answered = ask(f"{server.url}/v1/main", request)
            assert (answered.status_code, kind(answered)) == (503, "ServiceUnavailableException")
            assert "retry-after" not in answered.headers
        ready = requests.get(f"{server.url}/health/ready", timeout=30)
        assert (ready.status_code, ready.json()["status"]) == (503, "down")


def test_the_look_before_a_commit_is_lost(behind: Behind) -> None:
    """Then the commit was not sent."""
    behind.says(never())
    answered = ask(behind.base, ("POST", TABLE, commit(uuid4())))
    assert (answered.status_code, kind(answered)) == (504, "ServiceUnavailableException")
    assert [method for method, _ in behind.asked] == ["GET"]


def test_who_waits_holds_up_nobody(behind: Behind) -> None:
    """More clients than there are threads wait for the server behind."""
    go_on = threading.Event()

    def reply(received: Received) -> Reply:
        return held(go_on, answer(204, b"")) if received.method == "HEAD" else loaded()

    behind.does(reply)
    waiting = [threading.Thread(target=ask, args=(behind.base, READS["exists"])) for _ in range(60)]
    for each in waiting:
        each.start()
    assert behind.upstream.wait(lambda: len(behind.upstream.of("HEAD")) == 60, 20)
    assert ask(behind.base, READS["load"]).status_code == 200
    assert requests.get(f"{behind.server.url}/health/live", timeout=5).status_code == 200
    go_on.set()
    for each in waiting:
        each.join(30)


def test_a_client_that_goes_away_leaves_no_connection_behind(behind: Behind) -> None:
    behind.says(streamed(50_000_000))
    before = len(behind.upstream.open)
    with requests.get(f"{behind.base}/namespaces", stream=True, timeout=30) as answered:
        assert next(answered.iter_content(1000))
    assert behind.upstream.wait(lambda: len(behind.upstream.open) <= before)
    behind.says(answer(body=load_result()))
    assert ask(behind.base, READS["load"]).status_code == 200
