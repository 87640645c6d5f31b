import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contract_tests.conftest import Start
from contract_tests.contract.reports import SCAN_REPORT
from contract_tests.worlds.bridge import SCHEMA, Server, assert_error, assert_ok, raw_request, table_path
from contract_tests.worlds.world import COMPATIBLE
from contract_tests.worlds.writer import files_below, write

TOKEN = "t0ken-Of-Nobody"
SECRET = "hush-hush-storage"
SECRETS = f'storage.aws_secret_access_key = "{SECRET}"\nstorage.region = "us-west-2"\n'
PLACE = ("default",)
DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}


def guarded(folder: Path) -> str:
    return f'[server]\ntoken = "{TOKEN}"\n' + COMPATIBLE.configuration(folder, SECRETS)


class TestToken:
    @pytest.fixture
    def server(self, start: Start, tmp_path: Path) -> Server:
        return start(guarded(tmp_path / "tables"))

    def test_every_route_but_health_wants_it(self, server: Server) -> None:
        routes = [
            ("GET", "/v1/config"), ("GET", "/v1/main/namespaces"), ("POST", "/v1/main/namespaces"),
            ("GET", "/v1/main/namespaces/default"), ("DELETE", "/v1/main/namespaces/default"),
            ("GET", "/v1/main/namespaces/default/tables/t"), ("POST", "/v1/main/tables/rename"),
            ("GET", "/v1/nowhere/namespaces"), ("GET", "/v1/no/such/route"), ("PUT", "/v1/main/namespaces"),
        ]  # fmt: skip
        for token in (None, "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.lower()):
            with server.client(token=token) as client:
                for method, path in routes:
                    response = client.request(method, path, json={} if method == "POST" else None)
                    message = assert_error(response, 401, "NotAuthorizedException")
                    assert TOKEN not in message and (token is None or token not in message)
                assert client.head("/v1/main/namespaces/default").status_code == 401
                assert client.get("/").status_code == 401
                assert client.get("/health/live").status_code == 200
                assert client.get("/health/ready").status_code == 200

    def test_who_has_it_comes_in(self, server: Server) -> None:
        with server.client(token=TOKEN) as client:
            client.create_table(PLACE, "t")
            assert client.tables(PLACE) == ["t"]
            assert_error(client.get("/v1/no/such/route"), 404)

    @pytest.mark.parametrize(
        ("header", "status"),
        [
            (f"Bearer {TOKEN}", 200), (f"bearer {TOKEN}", 200), (f"BEARER  {TOKEN}", None), (TOKEN, 401),
            (f"Basic {TOKEN}", 401), ("Bearer", 401), ("Bearer ", 401), ("", 401), (f"Bearer {TOKEN} x", 401),
            (f"Bearer {TOKEN}é", 401), ("Bearer é", 401), ("\xff\xfe", 401), (f"Bearer {TOKEN},{TOKEN}", 401),
        ],
    )  # fmt: skip
    def test_forms_of_the_header(self, server: Server, header: str, status: int | None) -> None:
        line = b"GET /v1/config HTTP/1.1\r\nAuthorization: " + header.encode("latin-1")
        with raw_request(server.url, line) as response:
            response.read()
            assert response.status == status or (status is None and response.status in (200, 401))
            assert response.status == 200 or response.headers["WWW-Authenticate"].startswith("Bearer")

    def test_the_health_of_other_paths_is_not_open(self, server: Server) -> None:
        with server.client() as client:
            for path in ("/health", "/healthx/live", "/v1/health/live", "/health/../v1/config", "/health%2Flive"):
                assert client.get(path).status_code == 401
        for raw in (
            b"/health/../v1/config",
            b"/health/..%2fv1/config",
            b"//v1/config",
            b"/health/%2e%2e/v1/config",
        ):
            with raw_request(server.url, b"GET " + raw + b" HTTP/1.1") as response:
                assert response.status in (400, 401, 404)
                assert b"prefix" not in response.read()

    def test_no_secret_is_told(self, server: Server, tmp_path: Path) -> None:
        said = []
        with server.client(token=TOKEN) as client:
            client.create_table(PLACE, "t", properties={"owner": "me"})
            paths = ["/v1/config", "namespaces", "/health/ready", "/v1/none", "namespaces?pageToken=garbage"]
            paths += [table_path(PLACE, "t"), f"{table_path(PLACE, 't')}/credentials", table_path(PLACE, "no")]
            said = [client.get(path, headers=DELEGATION).text for path in paths]
            said.append(client.post("namespaces", data=b"{").text)
            said += [str(client.get(path).headers) for path in paths]
        with server.client(token="Wrong-Token") as client:
            said.append(client.get("namespaces").text)
        said.append(server.text())
        for each in said:
            assert TOKEN not in each and SECRET not in each and "Wrong-Token" not in each

    def test_the_oauth_route_answers_in_its_own_way(self, start: Start, tmp_path: Path) -> None:
        """The shape of the body is checked against the specification with every answer."""
        form = {"grant_type": "client_credentials", "client_id": "a", "client_secret": "b"}
        with start(COMPATIBLE.configuration(tmp_path / "a")).client() as client:
            response = client.post("/v1/oauth/tokens", data=form)
            assert response.status_code == 400
            assert isinstance(response.json()["error"], str)
        with start(guarded(tmp_path / "b")).client() as client:
            response = client.post("/v1/oauth/tokens", data=form)
            assert response.status_code == 401
            assert isinstance(response.json()["error"], str)


class TestReadOnly:
    CHANGES: tuple[tuple[str, str, Any], ...] = (
        ("POST", "namespaces", {"namespace": ["new"]}),
        ("DELETE", "namespaces/default", None),
        ("POST", "namespaces/default/properties", {"updates": {"a": "b"}, "removals": []}),
        ("POST", "namespaces/default/tables", {"name": "new", "schema": SCHEMA}),
        ("POST", "namespaces/default/tables", {"name": "new", "schema": SCHEMA, "stage-create": True}),
        ("POST", "namespaces/default/tables/t",
         {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}),
        ("DELETE", "namespaces/default/tables/t", None),
        ("DELETE", "namespaces/default/tables/t?purgeRequested=true", None),
        ("DELETE", "namespaces/default/tables/no-such-table", None),
        ("POST", "namespaces/default/register", {"name": "new", "metadata-location": "x"}),
        ("POST", "tables/rename", {"source": {"namespace": ["default"], "name": "t"},
                                   "destination": {"namespace": ["default"], "name": "u"}}),
        ("POST", "transactions/commit", {"table-changes": []}),
    )  # fmt: skip

    def test_every_change_is_forbidden(self, start: Start, tmp_path: Path) -> None:
        root = tmp_path / "tables"
        write(root / "t.lance")
        server = start(COMPATIBLE.configuration(root, "read_only = true\n"))
        before = files_below(root)
        with server.client() as client:
            assert client.metadata(PLACE, "t")["current-snapshot-id"] == 1
            for method, path, body in self.CHANGES:
                message = assert_error(client.request(method, path, json=body), 403, "ForbiddenException")
                assert "read" in message.lower()
            assert client.namespaces() == [PLACE]
            assert client.tables(PLACE) == ["t"]
            assert client.post(f"{table_path(PLACE, 't')}/metrics", json=SCAN_REPORT).status_code == 204
            endpoints = assert_ok(client.get("/v1/config"))["endpoints"]
            assert all(each.split()[0] in ("GET", "HEAD") or each.endswith("/metrics") for each in endpoints)
        assert files_below(root) == before

    def test_it_works_on_an_empty_folder(self, start: Start, tmp_path: Path) -> None:
        (tmp_path / "tables").mkdir()
        with start(COMPATIBLE.configuration(tmp_path / "tables", "read_only = true\n")).client() as client:
            assert client.tables(PLACE) == []
        assert files_below(tmp_path / "tables") == []


class TestVending:
    @pytest.mark.parametrize("vends", [True, False])
    def test_storage_options_go_to_clients_that_ask(self, start: Start, tmp_path: Path, vends: bool) -> None:
        more = SECRETS + f"vend_credentials = {str(vends).lower()}\n"
        with start(COMPATIBLE.configuration(tmp_path / "tables", more)).client() as client:
            client.create_table(PLACE, "t")
            plain = client.get(table_path(PLACE, "t"))
            asked = client.get(table_path(PLACE, "t"), headers=DELEGATION)
            credentials = client.get(f"{table_path(PLACE, 't')}/credentials", headers=DELEGATION)
            assert SECRET not in plain.text
            assert (SECRET in asked.text) == (SECRET in credentials.text) == vends
            for response in (asked, credentials):
                if vends:
                    assert "no-store" in response.headers["Cache-Control"]
            signing = {"X-Iceberg-Access-Delegation": "remote-signing"}
            assert SECRET not in client.get(table_path(PLACE, "t"), headers=signing).text
            both = {"X-Iceberg-Access-Delegation": "remote-signing,vended-credentials"}
            assert (SECRET in client.get(table_path(PLACE, "t"), headers=both).text) == vends
            location = asked.json()["metadata"]["location"]
            for each in credentials.json()["storage-credentials"]:
                assert location.startswith(each["prefix"])


class TestExposure:
    def test_it_binds_to_loopback(self, start: Start, tmp_path: Path) -> None:
        assert start(arguments=(str(tmp_path),)).url.startswith("http://127.0.0.1:")

    def test_another_host_wants_a_token_or_insecure(self, start: Start, tmp_path: Path) -> None:
        said = start(arguments=(str(tmp_path), "--host", "0.0.0.0")).refused()
        assert "--insecure" in said and "token" in said

    def test_insecure_is_allowed_with_a_warning(self, start: Start, tmp_path: Path) -> None:
        server = start(arguments=(str(tmp_path), "--host", "0.0.0.0", "--insecure"))
        server.wait_for(lambda line: "warning" in line.lower() and "token" in line)
        assert server.url

    def test_settings_are_shown_masked(self, tmp_path: Path) -> None:
        (tmp_path / "irc-bridge.toml").write_text(guarded(tmp_path / "tables"))
        for output in ("text", "json"):
            command = [sys.executable, "-m", "irc_bridge", "config", "--output", output]
            said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
            assert "us-west-2" in said.stdout
            assert TOKEN not in said.stdout + said.stderr and SECRET not in said.stdout + said.stderr
