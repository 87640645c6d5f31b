"""Requests that are refused before anything looks at what they ask for."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from contract_tests.security.conftest import StartTarget
from contract_tests.security.target import TABLE, Answer, Target, running_target
from contract_tests.upstream.faulty import Upstream, faulty_upstream
from contract_tests.upstream.replies import JSON as FOR_JSON
from contract_tests.upstream.replies import answer
from contract_tests.worlds.upstream import bridge_over

FOR_PAGES = [("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Credentials", "true")]
TOKEN = "a-token-of-the-bridge"
ALLOWED = "https://console.example:8443"
JSON = "application/json"
NAMESPACES = "/v1/main/namespaces"
LANCE_DROP = "/lance/v1/table/t/drop"
DROP = f"{TABLE}?purgeRequested=true"


def message(answer: Answer) -> str:
    """Of the envelope, whichever protocol's it is."""
    content = json.loads(answer.body)
    assert answer.headers["content-type"] == JSON
    if isinstance(content["error"], str):  # Lance's, or that of OAuth
        text = content.get("error_description", content["error"])
    else:
        assert content["error"]["code"] == answer.status
        text = content["error"]["message"]
    assert isinstance(text, str) and len(text.split()) > 3
    return text


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A bridge with a token, and with two origins that may use it."""
    settings = f'token = "{TOKEN}"\nallowed_origins = ["https://a.example", "{ALLOWED}"]'
    with running_target(tmp_path_factory.mktemp("guarded"), settings) as target:
        yield target


class TestHost:
    """A domain that was made to point at this machine (DNS rebinding) stands in `Host`."""

    @pytest.mark.parametrize(
        "host",
        ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8181", "127.8.9.10:80", "[::1]", "[::1]:8181",
         "[0:0:0:0:0:0:0:1]:5", "localhost.", "catalog.localhost:99", "localhost:"],
    )  # fmt: skip
    def test_of_this_machine_with_any_port(self, target: Target, host: str) -> None:
        assert target.request("GET", TABLE, Host=host).status == 200

    @pytest.mark.parametrize(
        "host",
        ["evil.example", "evil.example:8181", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost",
         "0.0.0.0:8181", "192.168.1.1", "[::2]", "[::1", "::1", "localhost@evil.example", "evil.example#localhost",
         "128.0.0.1", "127.0.0.1, evil.example", "", "\xff", "x" * 5000 + ".localhost", "localhost:x", "[::1%l]"],
    )  # fmt: skip
    def test_of_anybody_else_is_refused(self, target: Target, host: str) -> None:
        for method, path in (("GET", TABLE), ("DELETE", DROP), ("POST", LANCE_DROP), ("GET", "/health/ready")):
            refused = target.request(method, path, Host=host)
            assert refused.status == 403
            assert "localhost" in message(refused)

    def test_none_is_for_http_1_0(self, target: Target) -> None:
        assert target.send(f"GET {TABLE} HTTP/1.0\r\n\r\n".encode()).status == 200
        assert target.send(f"GET {TABLE} HTTP/1.1\r\n\r\n".encode()).status == 400

    def test_with_a_token_or_with_insecure_any_will_do(self, guarded: Target, start_target: StartTarget) -> None:
        assert guarded.request("GET", TABLE, Host="catalog.example", **guarded.token).status == 200
        assert start_target("", "--insecure").request("GET", TABLE, Host="catalog.example").status == 200


class TestOrigin:
    """Of web pages that other servers gave out."""

    FOREIGN = ("http://evil.example", "https://localhost", "http://localhost:1", "null", "file://", "", "x",
               "http://127.0.0.1", "chrome-extension://abc")  # fmt: skip

    @pytest.mark.parametrize("origin", FOREIGN)
    def test_a_foreign_one_is_refused(self, target: Target, guarded: Target, origin: str) -> None:
        for each in (target, guarded):
            for method, path in (("GET", TABLE), ("DELETE", DROP), ("POST", LANCE_DROP), ("OPTIONS", TABLE)):
                refused = each.request(
                    method, path, Origin=origin, Access_Control_Request_Method="DELETE", **each.token
                )
                assert refused.status == 403
                assert "server.allowed_origins" in message(refused)
                assert not [name for name in refused.headers if name.lower().startswith("access-control")]

    @pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
    def test_a_foreign_page_without_origin_is_refused(self, target: Target, site: str) -> None:
        """Pictures, scripts and forms by GET have no Origin, in browsers of today they have this."""
        assert target.request("GET", TABLE, Sec_Fetch_Site=site).status == 403

    @pytest.mark.parametrize("site", ["same-origin", "none"])
    def test_the_own_page_and_the_user_are_not(self, target: Target, site: str) -> None:
        assert target.request("GET", TABLE, Sec_Fetch_Site=site).status == 200
        own = f"http://{target.host}"
        given = target.request("GET", TABLE, Origin=own, Sec_Fetch_Site="same-origin")
        assert given.status == 200
        assert "access-control-allow-origin" not in given.headers
        assert target.request("OPTIONS", TABLE, Origin=own, Access_Control_Request_Method="PUT").status == 405


class TestAllowedOrigin:
    ORIGIN = ALLOWED

    @pytest.fixture
    def target(self, guarded: Target) -> Target:
        return guarded

    def test_it_is_told_what_it_may_do_before_it_shows_a_token(self, target: Target) -> None:
        asked = target.request(
            "OPTIONS",
            DROP,
            Origin=self.ORIGIN,
            Sec_Fetch_Site="cross-site",
            Access_Control_Request_Method="DELETE",
            Access_Control_Request_Headers="authorization, x-iceberg-access-delegation",
            Access_Control_Request_Private_Network="true",
        )
        assert asked.status == 200
        assert asked.headers["access-control-allow-origin"] == self.ORIGIN
        assert "DELETE" in asked.headers["access-control-allow-methods"].split(", ")
        allowed = asked.headers["access-control-allow-headers"].split(", ")
        assert {"authorization", "x-iceberg-access-delegation"} <= set(allowed)
        assert asked.headers["access-control-allow-private-network"] == "true"
        assert "origin" in asked.headers["vary"].lower()
        assert "access-control-allow-credentials" not in asked.headers

    def test_it_may_read_the_answers(self, target: Target) -> None:
        shown = {"Authorization": f"Bearer {TOKEN}", "Origin": self.ORIGIN, "Sec_Fetch_Site": "cross-site"}
        for path, status in ((TABLE, 200), (f"{TABLE}x", 404)):
            given = target.request("GET", path, **shown)
            assert given.status == status
            assert given.headers["access-control-allow-origin"] == self.ORIGIN
            assert "etag" in given.headers["access-control-expose-headers"].lower()

    def test_it_needs_the_token_all_the_same(self, target: Target) -> None:
        refused = target.request("GET", TABLE, Origin=self.ORIGIN)
        assert refused.status == 401
        assert refused.headers["access-control-allow-origin"] == self.ORIGIN, "else the page sees no 401"

    def test_others_are_told_nothing(self, target: Target) -> None:
        for origin in ("https://console.example", "https://console.example:8443.evil.example", "http://b.example"):
            refused = target.request("GET", TABLE, Origin=origin, Authorization=f"Bearer {TOKEN}")
            assert refused.status == 403
            assert "access-control-allow-origin" not in refused.headers

    def test_without_a_preflight_options_is_no_method(self, target: Target) -> None:
        shown = {"Authorization": f"Bearer {TOKEN}"}
        assert target.request("OPTIONS", TABLE, **shown).status == 405
        assert target.request("OPTIONS", TABLE, Origin=self.ORIGIN, **shown).status == 405


class TestContentType:
    """What a web page can send without a preflight is text, a form, or a body without a type."""

    BODY = b'{"namespace": ["made"]}'

    @pytest.mark.parametrize(
        "kind",
        ["text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "", "*/*", "image/json",
         "multipart/form-data; boundary=x", "text/plain; application/json", "application/json, text/plain",
         "application/jsonx", "application/octet-stream"],
    )  # fmt: skip
    def test_only_json_and_arrow_are_taken(self, target: Target, kind: str) -> None:
        for path in (NAMESPACES, TABLE, "/v1/main/tables/rename", "/lance/v1/namespace/made/create", LANCE_DROP,
                     "/lance/v1/table/u/create", "/v1/nothing", "/lance/v1/nothing"):  # fmt: skip
            refused = target.request("POST", path, self.BODY, Content_Type=kind)
            assert refused.status in (415, 404)
            message(refused)
        assert target.request("DELETE", TABLE, self.BODY, Content_Type=kind).status == 415
        assert b"made" not in target.request("GET", NAMESPACES).body

    def test_a_body_without_a_type_is_refused_in_pieces_too(self, target: Target) -> None:
        assert target.request("POST", NAMESPACES, self.BODY).status == 415
        head = f"POST {NAMESPACES} HTTP/1.1\r\nHost: {target.host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        piece = b"%x\r\n%s\r\n0\r\n\r\n" % (len(self.BODY), self.BODY)
        assert target.send(head + piece).status == 415
        typed = b"Content-Type: application/json\r\n\r\n"
        assert target.send(head + piece[:-2] + typed).status == 415, "what comes behind the body is no header"

    def test_an_empty_body_needs_none(self, target: Target) -> None:
        assert target.request("POST", "/lance/v1/table/t/exists").status == 200
        chunked = (
            f"POST /lance/v1/table/t/exists HTTP/1.1\r\nHost: {target.host}\r\nTransfer-Encoding: chunked\r\n"
        )
        assert target.send(chunked.encode() + b"\r\n0\r\n\r\n").status == 200

    def test_a_form_is_for_tokens(self, target: Target) -> None:
        form = "application/x-www-form-urlencoded"
        asked = target.request("POST", "/v1/oauth/tokens", b"grant_type=client_credentials", Content_Type=form)
        assert (asked.status, json.loads(asked.body)["error"]) == (400, "unsupported_grant_type")
        assert target.request("POST", "/v1/oauth/tokens", b"x", Content_Type="text/plain").status == 415


class TestHeaders:
    @pytest.mark.parametrize(
        "pair",
        [("Authorization", "Bearer x"), ("Host", "localhost"), ("Content-Type", JSON), ("X-Api-Key", "x"),
         ("Origin", "http://localhost"), ("Sec-Fetch-Site", "none")],
    )  # fmt: skip
    def test_one_that_decides_comes_once(self, target: Target, pair: tuple[str, str]) -> None:
        line = f"{pair[0]}: {pair[1]}\r\n"
        host = "" if pair[0] == "Host" else f"Host: {target.host}\r\n"
        for path in (TABLE, "/lance/v1/table", "/health/live"):
            twice = target.send(f"GET {path} HTTP/1.1\r\n{host}{line}{line.lower()}\r\n".encode())
            assert twice.status == 400
            assert pair[0].lower() in message(twice)

    def test_others_may_come_often(self, target: Target) -> None:
        head = f"GET {TABLE} HTTP/1.1\r\nHost: {target.host}\r\nAccept: a\r\nAccept: b\r\n\r\n"
        assert target.send(head.encode()).status == 200


class TestQuery:
    def test_a_long_one_is_refused(self, target: Target) -> None:
        assert target.request("GET", f"{TABLE}?x={'y' * (8 * 1024 - 2)}").status == 200
        for path in (TABLE, "/lance/v1/table", "/v1/config", "/health/ready"):
            refused = target.request("GET", f"{path}?x={'y' * (8 * 1024 - 1)}")
            assert refused.status == 414
            assert "8192" in message(refused)


METHODS = ["TRACE", "CONNECT", "PATCH", "OPTIONS", "PROPFIND", "LINK", "M-SEARCH", "NONSENSE", "get"]
DOTS = [
    "/v1/main/../../admin", "/v1/main/./admin", "/v1/main/..", "/v1/main/.", "/v1/main/%2e%2e/admin",
    "/v1/main/%2E%2e/admin", "/v1/main/.%2E/admin", "/v1/main/%2E/admin", "/v1/main/%252e%252e/admin",
    "/v1/main/%25252e%25252e/x", "/v1/main/%25%32%65%25%32%65/x", "/v1/main/..%2fadmin",
    "/v1/main/x%2f..%2fadmin", "/v1/main/..%5cadmin", "/v1/main/..%255cadmin", "/v1/main/..\\admin",
    "/v1/main/..;/admin", "/v1/main/..;x=1/a", "/lance/../v1/config", "/lance/v1/../../x",
    "/health/../v1/config", "/health/%2e%2e/v1/config", "/..", "/./", f"{TABLE}/../../../..",
    "/" + "a/" * 2000 + "../x",
]  # fmt: skip


@dataclass(frozen=True)
class Relay:
    """A bridge before another server, with a token of its own for that."""

    target: Target
    upstream: Upstream

    def sent_on(self) -> list[str]:
        return [each.target for each in self.upstream.requests if each.path != "/v1/config"]

    @property
    def request(self) -> Callable[..., Answer]:
        return self.target.request


@pytest.fixture(scope="module")
def started(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    folder = tmp_path_factory.mktemp("relay")
    settings = f'token = "{TOKEN}"\n[server]\nallowed_origins = ["{ALLOWED}"]\n'
    with (
        faulty_upstream(lambda _: answer(body=b"{}", headers=[*FOR_JSON, *FOR_PAGES])) as upstream,
        bridge_over(upstream.url, folder, settings) as server,
    ):
        yield Relay(replace(target, server=server), upstream)


class TestBeforeAnotherServer:
    @pytest.fixture
    def relay(self, started: Relay) -> Relay:
        started.upstream.requests.clear()
        return started

    def test_methods_are_those_of_the_protocols(self, relay: Relay) -> None:
        for method in METHODS:
            for path in (NAMESPACES, TABLE, "/v1/main/not/yet/known", "/"):
                refused = relay.request(method, path)
                assert refused.status == (405 if method != "NONSENSE" and method != "get" else 400), method
                assert TOKEN.encode() not in refused.body
        assert relay.sent_on() == []

    @pytest.mark.parametrize("path", DOTS, ids=lambda path: path[:40])
    def test_dot_segments_do_not_go_on(self, relay: Relay, path: str) -> None:
        for method in ("GET", "POST", "DELETE"):
            refused = relay.request(method, path)
            assert refused.status == 400
            assert "'..'" in message(refused)
        assert relay.sent_on() == []

    @pytest.mark.parametrize(
        "name", ["a..b", "...", "..a", ".hidden", "a.b", "%2e%2e%2e", "a%2e%2e", "x%1F..%1Fy"]
    )
    def test_names_may_have_dots(self, relay: Relay, name: str) -> None:
        relay.request("GET", f"{NAMESPACES}/ns/tables/{name}")
        assert relay.sent_on()[0] == f"/v1/namespaces/ns/tables/{name}"

    def test_which_pages_may_read_is_not_for_the_other_server_to_say(self, relay: Relay) -> None:
        plain = relay.request("GET", f"{NAMESPACES}/ns")
        assert plain.status == 200
        assert not [name for name in plain.headers if name.lower().startswith("access-control-")]
        allowed = relay.request("GET", f"{NAMESPACES}/ns", Origin=ALLOWED)
        assert allowed.headers.get_all("access-control-allow-origin") == [ALLOWED]
        assert relay.upstream.requests[-1].header("origin") is None

    def test_web_pages_do_not_go_on(self, relay: Relay) -> None:
        assert relay.request("DELETE", TABLE, Origin="http://evil.example").status == 403
        assert relay.request("POST", TABLE, b"{}", Content_Type="text/plain").status == 415
        assert relay.request("POST", "/v1/not/known", b"{}", Content_Type="text/plain").status == 415
        assert relay.sent_on() == []


@pytest.mark.parametrize("path", DOTS, ids=lambda path: path[:40])
def test_dot_segments_are_refused_before_a_folder(target: Target, path: str) -> None:
    assert target.request("DELETE", path).status == 400


def test_methods_are_those_of_the_protocols(target: Target) -> None:
    for method in METHODS[:-2]:
        refused = target.request(method, TABLE)
        assert refused.status == 405
        assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD", "POST", "PUT", "DELETE"}
