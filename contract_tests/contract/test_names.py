"""Names arrive in many encodings and mean one namespace; names that are refused never reach storage."""

import itertools
import json
import string
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contract_tests.contract.tables import SEARCH
from contract_tests.worlds.bridge import (
    SCHEMA,
    Client,
    assert_error,
    assert_ok,
    encoded,
    namespace_path,
    raw_request,
    table_path,
)
from contract_tests.worlds.world import NESTED_WORLDS_AND_S3, ONE_WORLD, Bridge

Place = tuple[str, ...]
PURGE = {"purgeRequested": "true"}

REFUSED = ["", ".", "..", "a$b", "$", "a/b", "/", "a\x00b", "\n", "tab\t", "\x1f", "a\x1fb", "\x7f", "\x85"]


def ask(bridge: Bridge, path: str | bytes, method: str = "GET") -> tuple[int, Any]:
    """The path goes out byte for byte as it is here."""
    raw = path if isinstance(path, bytes) else path.encode("ascii")
    line = f"{method} /v1/main/".encode() + raw + b" HTTP/1.1"
    with raw_request(bridge.server.url, line) as response:
        body = response.read()
        return response.status, json.loads(body) if body else None


def lance_client(levels: Place) -> str:
    """As the published Lance client for Iceberg REST encodes a namespace: twice (notes)."""
    return quote("\x1f".join(quote(level, safe="") for level in levels), safe="")


@ONE_WORLD
class TestEncodings:
    @pytest.fixture
    def levels(self, client: Client, name: str) -> Place:
        client.create_namespace(f"{name} a")
        client.create_namespace(f"{name} a", "b c")
        client.create_table((f"{name} a", "b c"), "my table")
        return (f"{name} a", "b c")

    @pytest.mark.parametrize(
        "form",
        [
            b"%s%%20a%%1Fb%%20c", b"%s%%20a%%1fb%%20c", b"%s+a%%1Fb+c",
            b"%s%%2520a%%1Fb%%2520c", b"%s%%2520a%%251Fb%%2520c", b"%s%%20a%%251Fb%%20c", b"%s+a%%251fb+c",
        ],
        ids=lambda form: repr(form)[5:-1],
    )  # fmt: skip
    def test_all_mean_the_same(self, bridge: Bridge, name: str, levels: Place, form: bytes) -> None:
        path = form % name.encode()
        status, body = ask(bridge, b"namespaces/" + path)
        assert (status, body and body["namespace"]) == (200, list(levels))
        status, body = ask(bridge, b"namespaces/" + path + b"/tables")
        assert status == 200
        assert body["identifiers"] == [{"namespace": list(levels), "name": "my table"}]
        for table in (b"my%20table", b"my+table", b"my%2520table"):
            status, body = ask(bridge, b"namespaces/" + path + b"/tables/" + table)
            assert (status, body and body["metadata"]["current-snapshot-id"]) == (200, 1)
            assert ask(bridge, b"namespaces/" + path + b"/tables/" + table, "HEAD") == (204, None)

    @pytest.mark.parametrize("form", [b"%s%%20a", b"%s+a", b"%s%%2520a"])
    def test_so_does_the_parent(self, bridge: Bridge, name: str, levels: Place, form: bytes) -> None:
        status, body = ask(bridge, b"namespaces?parent=" + form % name.encode())
        assert (status, body and body["namespaces"]) == (200, [list(levels)])

    @pytest.mark.parametrize("separator", [b"%1F", b"%251F", b"%1f"])
    def test_a_parent_of_two_levels(self, bridge: Bridge, name: str, levels: Place, separator: bytes) -> None:
        bridge.client.create_namespace(*levels, "deep")
        parent = f"{name}+a".encode() + separator + b"b+c"
        status, body = ask(bridge, b"namespaces?parent=" + parent)
        assert (status, body and body["namespaces"]) == (200, [[*levels, "deep"]])

    def test_a_raw_separator_leaves_the_client_encoded(self, client: Client, levels: Place) -> None:
        """pyiceberg joins levels with the byte 0x1F itself; its HTTP library encodes it."""
        path = "namespaces/" + "\x1f".join(quote(level, safe="") for level in levels)
        assert assert_ok(client.get(path))["namespace"] == list(levels)

    def test_a_raw_separator_on_the_wire_is_never_misread(self, bridge: Bridge, name: str, levels: Place) -> None:
        line = b"GET /v1/main/namespaces/%s%%20a\x1fb%%20c HTTP/1.1" % name.encode()
        with raw_request(bridge.server.url, line) as response:
            body = response.read()
            assert response.status == 400 or json.loads(body)["namespace"] == list(levels)

    def test_tables_are_made_and_dropped_under_any(self, bridge: Bridge, name: str, levels: Place) -> None:
        client = bridge.client
        body = {"name": "t", "schema": SCHEMA}
        assert_ok(client.post(f"namespaces/{lance_client(levels)}/tables", json=body))
        assert client.tables(levels) == ["my table", "t"]
        assert client.delete(f"namespaces/{name}+a%251Fb+c/tables/t").status_code == 204
        update = {"updates": {"owner": "me"}, "removals": []}
        assert_ok(client.post(f"namespaces/{lance_client(levels)}/properties", json=update))
        assert assert_ok(client.get(namespace_path(levels)))["properties"] == {"owner": "me"}

    def test_a_literal_name_goes_before_a_decoded_one(self, client: Client, name: str) -> None:
        client.create_namespace(f"{name} x", which="space")
        client.create_namespace(f"{name}%20x", which="percent")
        path = f"namespaces/{name}%2520x"
        assert assert_ok(client.get(path))["properties"] == {"which": "percent"}
        assert client.delete(path).status_code == 204
        assert assert_ok(client.get(path))["properties"] == {"which": "space"}

    def test_a_literal_table_goes_before_a_decoded_one(self, client: Client, namespace: Place, name: str) -> None:
        client.create_table(namespace, "t x", properties={"which": "space"})
        client.create_table(namespace, "t%20x", properties={"which": "percent"})
        path = f"{namespace_path(namespace)}/tables/t%2520x"
        assert assert_ok(client.get(path))["metadata"]["properties"]["which"] == "percent"
        assert client.delete(path, params=PURGE).status_code == 204
        assert assert_ok(client.get(path))["metadata"]["properties"]["which"] == "space"

    def test_a_name_is_decoded_twice_at_most(self, client: Client, name: str) -> None:
        client.create_namespace(f"{name} x")
        assert client.head(f"namespaces/{name}%252520x").status_code == 404

    def test_a_plus_in_a_name(self, client: Client, name: str) -> None:
        client.create_namespace(f"{name}+x", which="plus")
        client.create_namespace(f"{name} x", which="space")
        for path, which in ((f"{name}%2Bx", "plus"), (f"{name}+x", "space"), (f"{name}%20x", "space")):
            assert assert_ok(client.get(f"namespaces/{path}"))["properties"] == {"which": which}


class TestRefused:
    @pytest.mark.parametrize("bad", REFUSED, ids=repr)
    def test_tables_in_a_body(self, bridge: Bridge, place: Place, bad: str) -> None:
        before = bridge.root.files()
        body = {"name": bad, "schema": SCHEMA}
        for path in ("tables", "register"):
            more = {"metadata-location": f"{bridge.root}/x"} if path == "register" else {}
            response = bridge.client.post(f"{namespace_path(place)}/{path}", json={**body, **more})
            message = assert_error(response, 400, "BadRequestException")
            assert len(message.split()) > 3
        assert bridge.root.files() == before

    @pytest.mark.needs("child namespaces")
    @pytest.mark.parametrize("bad", REFUSED, ids=repr)
    def test_namespaces_in_a_body(self, bridge: Bridge, name: str, bad: str) -> None:
        bridge.client.create_namespace(name)
        before = bridge.root.files()
        for levels in ([bad], [name, bad], [bad, name]):
            response = bridge.client.post("namespaces", json={"namespace": levels})
            message = assert_error(response, 400, "BadRequestException")
            assert len(message.split()) > 3
        assert bridge.root.files() == before

    @pytest.mark.needs("rename")
    @pytest.mark.parametrize("bad", REFUSED, ids=repr)
    def test_the_new_name_of_a_table(self, bridge: Bridge, place: Place, name: str, bad: str) -> None:
        bridge.client.create_table(place, name)
        before = bridge.root.files()
        body = {
            "source": {"namespace": place, "name": name},
            "destination": {"namespace": place, "name": bad},
        }
        assert_error(bridge.client.post("tables/rename", json=body), 400, "BadRequestException")
        assert bridge.root.files() == before
        assert bridge.client.head(table_path(place, name)).status_code == 204

    @ONE_WORLD
    @pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
    @pytest.mark.parametrize(
        "bad", ["a%2Fb", "%2F", "%2E%2E", "%2e", "..%2F..%2Fetc", "a%24b", "$", "a%00b", "%0A", "%7F"]
    )
    def test_in_a_path(self, bridge: Bridge, method: str, bad: str) -> None:
        """Nothing of such a name can be there, so "not found" is as true as "refused"."""
        before = bridge.root.files()
        for path in (f"namespaces/{bad}", f"namespaces/default/tables/{bad}", f"namespaces/{bad}/tables/t"):
            status, body = ask(bridge, path, method)
            assert status in (400, 404), (path, body)
            assert (body is None) == (method == "HEAD")
        assert bridge.root.files() == before

    @ONE_WORLD
    @pytest.mark.parametrize("bad", ["%1F", "a%1F", "%1Fa", "a%1F%1Fb"])
    def test_empty_levels_in_a_path(self, bridge: Bridge, bad: str) -> None:
        status, body = ask(bridge, f"namespaces/{bad}")
        assert (status, body["error"]["code"]) in ((400, 400), (404, 404))

    @ONE_WORLD
    @pytest.mark.parametrize("bad", ["%", "%zz", "a%2", "%FF", "%C3%28", "%ED%A0%80"])
    def test_broken_encodings(self, bridge: Bridge, bad: str) -> None:
        for path in (f"namespaces/{bad}", f"namespaces/default/tables/{bad}", f"namespaces?parent={bad}"):
            status, body = ask(bridge, path)
            assert status in (400, 404), (path, body)
            assert body["error"]["code"] == status

    @pytest.mark.parametrize("length", [200, 255, 256, 300, 1000, 5000])
    def test_long_names(self, client: Client, place: Place, length: int) -> None:
        long = "x" * length
        response = client.post(f"{namespace_path(place)}/tables", json={"name": long, "schema": SCHEMA})
        if response.status_code == 200:
            assert client.tables(place).count(long) == 1
            assert client.metadata(place, long)["current-snapshot-id"] == 1
            client.delete(table_path(place, long), params=PURGE)
        else:
            assert_error(response, 400, "BadRequestException")
            assert long not in client.tables(place)


_counter = itertools.count()
LETTERS = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="$/")


def is_no_dot_segment(name: str) -> bool:
    """Dots are refused in a path, however often they are encoded, because a server behind may decode them again,
    take a backslash for a slash, or end a segment at a semicolon."""
    while (decoded := unquote(name)) != name:
        name = decoded
    return not any(part.partition(";")[0] in (".", "..") for part in name.replace("\\", "/").split("/"))


GOOD_NAMES = st.text(LETTERS, min_size=1, max_size=20).filter(is_no_dot_segment)
HARD_NAMES = st.text("%+ .2EF0ab?#&=;:@!'\"*<>|~`{}[]^é🎈" + string.digits, min_size=1, max_size=12).filter(
    is_no_dot_segment
)
NAMES = GOOD_NAMES | HARD_NAMES


@NESTED_WORLDS_AND_S3
@SEARCH
@given(parent=NAMES, child=NAMES, table=NAMES)
@example(parent="%2520", child="%1F", table="+")
@example(parent=" ", child=" x ", table="  ")
@example(parent="a.b", child=".lance", table="x.lance")
@example(parent="__manifest", child="_versions", table="__manifest")
@example(parent="e\u0301", child="\u00e9", table="\ufeff")
@example(parent="'", child="' OR 1=1 --", table="''")
@example(parent='"', child="%", table="_")
def test_any_good_name_makes_the_round(client: Client, parent: str, child: str, table: str) -> None:
    top = f"{parent}{next(_counter)}"
    client.create_namespace(top)
    client.create_namespace(top, child)
    client.declare_table((top, child), table)
    assert client.namespaces().count((top,)) == 1
    assert client.namespaces((top,)) == [(top, child)]
    assert client.tables((top, child)) == [table]
    assert client.tables((top,)) == []
    for path in (encoded((top, child)), lance_client((top, child))):
        assert assert_ok(client.get(f"namespaces/{path}"))["namespace"] == [top, child]
    for path in (
        table_path((top, child), table),
        f"namespaces/{lance_client((top, child))}/tables/{quote(table, safe='')}",
    ):
        assert assert_ok(client.get(path))["metadata"]["properties"]["table_type"] == "lance"
        assert client.head(path).status_code == 204
    assert client.delete(table_path((top, child), table), params=PURGE).status_code == 204
    assert client.delete(namespace_path((top, child))).status_code == 204
    assert client.delete(namespace_path((top,))).status_code == 204
    assert (top,) not in client.namespaces()


@SEARCH
@given(table=NAMES)
@example(table="%41")
@example(table="a b+c%20d")
@example(table="x.lance")
@example(table=".hidden")
def test_any_good_name_makes_the_round_in_the_root(client: Client, table: str) -> None:
    name, place = f"{table}{next(_counter)}", ("default",)
    location = client.create_table(place, name)["metadata"]["location"]
    assert client.tables(place).count(name) == 1
    assert client.metadata(place, name)["location"] == location
    assert client.delete(table_path(place, name), params=PURGE).status_code == 204
    assert name not in client.tables(place)


@SEARCH
@given(
    bad=NAMES,
    refused=st.sampled_from(["/", "$", "\x00", "\x1f", "\n", "\r", "\x7f", "\x9f"]),
    at=st.integers(0, 20),
)
def test_one_refused_letter_anywhere_is_enough(bridge: Bridge, bad: str, refused: str, at: int) -> None:
    name = bad[:at] + refused + bad[at:]
    before = bridge.root.files()
    response = bridge.client.post("namespaces/default/tables", json={"name": name, "schema": SCHEMA})
    assert_error(response, 400, "BadRequestException")
    assert bridge.root.files() == before
