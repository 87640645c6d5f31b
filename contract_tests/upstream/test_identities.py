"""Who the server behind hears from: the bridge, or the client itself, and never both."""

from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
import requests

from contract_tests.upstream.faulty import Received, Reply, Upstream, faulty_upstream
from contract_tests.upstream.iceberg import load_result, loaded
from contract_tests.upstream.replies import JSON, answer, error
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.upstream import bridge_over

TABLE = "/v1/main/namespaces/ns/tables/t"
CONFIG = b'{"defaults":{},"overrides":{"oauth2-server-uri":"http://idp","token":"yours"}}'


class Guarded:
    """Lets in who shows a token that it knows, and gives tokens for a credential."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = set(tokens)
        self.given = 0

    def __call__(self, received: Received) -> Reply:
        if received.path == "/v1/oauth/tokens":
            self.given += 1
            self.tokens = {f"given-{self.given}"}
            body = b'{"access_token":"given-%d","token_type":"bearer","expires_in":3600}' % self.given
            return answer(body=body)
        if (received.header("authorization") or "").removeprefix("Bearer ") not in self.tokens:
            return error(401, "NotAuthorizedException")
        return answer(body=CONFIG) if received.path == "/v1/config" else loaded()


def authorizations(upstream: Upstream) -> set[str | None]:
    return {each.header("authorization") for each in upstream.requests if each.path != "/v1/oauth/tokens"}


def get(server: Server, path: str = TABLE, token: str | None = None) -> requests.Response:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return requests.get(server.url + path, headers=headers, timeout=30)


def test_the_bridge_shows_its_own_token(tmp_path: Path) -> None:
    with (
        faulty_upstream(Guarded("ours")) as upstream,
        bridge_over(upstream.url, tmp_path, 'token = "ours"\n') as server,
    ):
        assert get(server, token="somebody's").status_code == 200
        assert authorizations(upstream) == {"Bearer ours"}
        said = get(server, "/v1/config").json()
        assert said["overrides"] == {"prefix": "main"}, "these tokens are not for clients"


def test_the_bridge_gets_tokens_for_its_credential_and_new_ones_when_they_are_refused(tmp_path: Path) -> None:
    guard = Guarded()
    with (
        faulty_upstream(guard) as upstream,
        bridge_over(upstream.url, tmp_path, 'credential = "id:secret"\n') as server,
    ):
        assert get(server).status_code == 200
        assert guard.given == 1
        guard.tokens = set()
        assert get(server).status_code == 200
        assert guard.given == 2
        assert "secret" not in server.text()


@pytest.fixture
def passing(tmp_path: Path) -> Iterator[tuple[Upstream, Server]]:
    with (
        faulty_upstream(Guarded("hers", "his")) as upstream,
        bridge_over(upstream.url, tmp_path, 'auth = "passthrough"\n') as server,
    ):
        yield upstream, server


def test_clients_speak_for_themselves(passing: tuple[Upstream, Server]) -> None:
    upstream, server = passing
    assert get(server, token="hers").status_code == 200
    assert authorizations(upstream) == {"Bearer hers"}
    for stranger in (None, "nobody's"):
        refused = get(server, token=stranger)
        assert (refused.status_code, refused.json()["error"]["type"]) == (401, "NotAuthorizedException")


def test_clients_sign_in_at_the_server_behind(passing: tuple[Upstream, Server]) -> None:
    _, server = passing
    form = {"grant_type": "client_credentials", "client_secret": "x"}
    token = requests.post(f"{server.url}/v1/oauth/tokens", data=form, timeout=30).json()["access_token"]
    assert get(server, token=token).status_code == 200
    said = get(server, "/v1/config", token).json()
    assert said["overrides"] == {"oauth2-server-uri": "http://idp", "token": "yours", "prefix": "main"}


def test_the_lance_protocol_speaks_for_its_client(passing: tuple[Upstream, Server]) -> None:
    upstream, server = passing
    for token, status in (("hers", 404), ("nobody's", 401)):
        headers = {"Authorization": f"Bearer {token}"}
        answered = requests.post(
            f"{server.url}/lance/v1/table/ns$t/describe", json={}, headers=headers, timeout=30
        )
        assert answered.status_code == status, answered.text
    assert authorizations(upstream) == {"Bearer hers", "Bearer nobody's"}


def test_a_commit_to_a_lance_table_is_the_client_s(tmp_path: Path) -> None:
    """From the look that tells what it is to the answer."""
    folder = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": [1]}), folder)
    properties = {"table_type": "lance"}
    result = load_result(location=folder.as_uri(), properties=properties, snapshots=[], refs={})

    def reply(received: Received) -> Reply:
        return answer(body=CONFIG if received.path == "/v1/config" else result)

    with (
        faulty_upstream(reply) as upstream,
        bridge_over(upstream.url, tmp_path, 'auth = "passthrough"\n') as server,
    ):
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
        hers = {"Authorization": "Bearer hers"}
        answered = requests.post(server.url + TABLE, json=body, headers=hers, timeout=30)
        assert answered.status_code == 200, answered.text
        assert [each.method for each in upstream.requests if each.path != "/v1/config"][:2] == ["GET", "POST"]
        assert authorizations(upstream) == {"Bearer hers"}


def test_a_crowd_is_never_taken_for_one_another(tmp_path: Path) -> None:
    """Every answer says for whom it was made."""

    def reply(received: Received) -> Reply:
        who = (received.header("authorization") or "").removeprefix("Bearer ")
        if received.path == "/v1/config":
            return answer(body=CONFIG)
        return answer(body=b'{"metadata":{"properties":{"for":"%s"}}}' % who.encode(), headers=JSON)

    with (
        faulty_upstream(reply) as crowd,
        bridge_over(crowd.url, tmp_path, 'auth = "passthrough"\n') as server,
    ):
        for _ in range(3):
            for who in ("a", "b", "c"):
                assert get(server, token=who).json()["metadata"]["properties"]["for"] == who
