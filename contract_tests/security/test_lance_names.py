"""Names and locations that clients choose: what is accepted can be used, what is refused leaves nothing."""

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import requests
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from contract_tests.lance.client import ROWS, Lance, ipc
from contract_tests.worlds.bridge import DUMMY_SCHEMA, SCHEMA, Client, Server, table_path
from contract_tests.worlds.roots import LocalRoot, Root, S3Root
from contract_tests.worlds.s3 import S3

DEFAULT = ("default",)
SEARCH = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass
class Place:
    server: Server
    client: Client
    rest: Lance
    root: Root
    has_names: bool

    def send(self, how: str, name: str, location: str | None) -> requests.Response:
        body: dict[str, Any] = {} if location is None else {"location": location}
        if how == "create":
            return self.client.post("namespaces/default/tables", json={"name": name, "schema": SCHEMA, **body})
        if how == "stage":
            more = {"stage-create": True}
            return self.client.post(
                "namespaces/default/tables", json={"name": name, "schema": SCHEMA, **body, **more}
            )
        if how == "declare there":
            kind = {"schema": DUMMY_SCHEMA, "properties": {"table_type": "lance"}}
            return self.client.post("namespaces/default/tables", json={"name": name, **kind, **body})
        if how == "register there":
            metadata = {"metadata-location": location or ""}
            return self.client.post("namespaces/default/register", json={"name": name, **metadata})
        path = quote(name, safe="")
        if how == "register":
            return self.rest.post(f"table/{path}/register", {"location": location or ""}, delimiter=NEVER)
        if how == "declare":
            return self.rest.post(f"table/{path}/declare", body, delimiter=NEVER)
        return self.rest.post(f"table/{path}/create", ipc(ROWS), delimiter=NEVER)

    def require_good(self, name: str) -> None:
        assert name in self.client.tables(DEFAULT)
        path = quote(name, safe="")
        described = self.rest.post(f"table/{path}/describe", {}, delimiter=NEVER)
        assert described.status_code == 200, described.text
        loaded = self.client.get(table_path(DEFAULT, name))
        assert loaded.status_code == 200, loaded.text
        assert loaded.json()["metadata"]["location"] == described.json()["location"]
        dropped = self.rest.post(f"table/{path}/drop", None, delimiter=NEVER)
        assert dropped.status_code == 200, dropped.text

    def require_absent(self, name: str) -> None:
        assert name not in self.client.tables(DEFAULT)


NEVER = "\U0010fffe"
"""A delimiter that no name has."""
MODES = {"compat": "", "v1": "manifest_enabled = false\n", "v2": "dir_listing_enabled = false\n"}


@pytest.fixture(scope="module", params=[*MODES, "compat on S3"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("names")
    root: Root = LocalRoot(folder / "a root")
    settings = MODES.get(request.param, "")
    if request.param == "compat on S3":
        s3: S3 = request.getfixturevalue("s3")
        root = S3Root(s3.bucket("names"), s3.options)
        settings = "".join(f'storage.{key} = "{value}"\n' for key, value in s3.options.items())
    (folder / "irc-bridge.toml").write_text(f'[warehouses.main]\nroot = "{root}"\n{settings}')
    with ExitStack() as stack:
        server = stack.enter_context(Server("--port", "0", cwd=folder))
        client, rest = stack.enter_context(server.client()), stack.enter_context(Lance(server.url))
        yield Place(server, client, rest, root, request.param != "v1")
        assert "Traceback" not in server.text() and "panicked" not in server.text()


PARTS = st.sampled_from(
    [
        *(
            "a",
            "b",
            "..",
            ".",
            "",
            " ",
            ".lance",
            "~",
            "data",
            "_versions",
            "__manifest",
            "_iceberg",
            "_irc_bridge",
        ),
        *(
            "\n",
            "\t",
            "\0",
            "\x7f",
            "\u0085",
            "%",
            "%2f",
            "%2e%2e",
            "%00",
            "%0a",
            "?",
            "#",
            "\\",
            ":",
            "*",
            "|",
            "'",
        ),
        *('"', "<", "é", "e\u0301", "\u202e", "\ufeff", "\U0001f600", "$", "&", "+", ";", "@", "=", "x" * 100),
        *(".irc-bridge-staged-", ".irc-bridge-dropped", ".lance-reserved", "x" * 246, "x" * 256, "é" * 123, "CON"),
    ]
)
NAMES = st.lists(PARTS, max_size=4).map("".join) | st.text(max_size=6)
PATHS = st.lists(NAMES, max_size=5).map("/".join)
LOCATIONS = st.tuples(st.sampled_from(["{root}/", "{uri}/", "{uri}", "", "/", "file:", "s3://", "x://"]), PATHS)
HOW_BY_NAME = st.sampled_from(["create", "stage", "declare", "send", "declare there"])
HOW_BY_PLACE = st.sampled_from(["create", "stage", "declare", "declare there", "register", "register there"])
_numbers = itertools.count()


def judge(place: Place, how: str, name: str, answer: requests.Response) -> None:
    if answer.status_code == 200 and how == "stage":
        place.require_absent(name)
    elif answer.status_code == 200:
        place.require_good(name)
    else:
        assert 400 <= answer.status_code < 500, answer.text
        error = answer.json()["error"]
        message = error if isinstance(error, str) else error["message"]
        assert len(message.split()) > 2
        assert len(message) < 3000
        place.require_absent(name)


@SEARCH
@given(HOW_BY_NAME, NAMES)
@example("create", "x" * 246)
@example("send", "x" * 247)
@example("declare", "x" * 5000)
@example("create", "é" * 123)
@example("create", "é" * 124)
@example("create", " ")
@example("send", " a ")
@example("declare", "a.")
@example("create", "...")
@example("create", "%41%2f%00")
@example("create", "a\n")
@example("send", "\ud800")
def test_any_name(place: Place, how: str, name: str) -> None:
    before = place.root.files()
    try:
        answer = place.send(how, name, None)
    except UnicodeEncodeError:
        # half a surrogate pair cannot stand in a URL
        return
    judge(place, how, name, answer)
    if answer.status_code != 200:
        assert place.root.files() == before


@SEARCH
@given(HOW_BY_PLACE, LOCATIONS)
@example("create", ("{root}/", "a\n"))
@example("declare", ("{root}/", "a\0b"))
@example("create", ("", ""))
@example("register", ("", ""))
@example("register there", ("", ""))
@example("create", ("{root}/", "x" * 255))
@example("create", ("{root}/", "x" * 256))
@example("declare", ("{root}/", "/".join(["x" * 200] * 30)))
@example("create", ("{root}/", "/".join(["x"] * 2100)))
@example("create", ("{root}/", "/".join(["x"] * 200)))
@example("create", ("{root}/", "x" * 100_000))
@example("create", ("{root}/", "a "))
@example("create", ("{uri}/", "a "))
@example("create", ("{uri}/", "a%20"))
@example("create", ("{uri}/", "a%2F..%2F..%2Fb"))
@example("create", ("{uri}/", "%2e%2e/b"))
@example("create", ("{uri}/", "a%0a"))
@example("create", ("{uri}/", "a%00"))
@example("create", ("{uri}/", "%ff"))
@example("create", ("{uri}/", "%"))
@example("create", ("~", "nobody-here/t"))
@example("register", ("{root}/", "_irc_bridge/t"))
@example("register", ("_irc_bridge/", "t"))
def test_any_location(place: Place, how: str, location: tuple[str, str]) -> None:
    start, rest = location
    name = f"n{next(_numbers)}"
    asked = start.format(root=place.root, uri=place.root.uri) + rest
    before = place.root.files()
    answer = place.send(how, name, asked)
    judge(place, how, name, answer)
    if answer.status_code != 200:
        assert place.root.files() == before


WORKING = [
    *("__manifest", "_irc_bridge", "_iceberg", "_versions", "_indices", "_deletions", "_transactions", "_refs"),
    *(
        ".irc-bridge-dropped",
        ".irc-bridge-staged-1",
        ".irc-bridge-moving",
        ".lance-reserved",
        ".lance-deregistered",
    ),
]


@pytest.mark.parametrize("folder", WORKING)
def test_a_working_folder_holds_no_table(place: Place, folder: str) -> None:
    name = f"w{next(_numbers)}"
    for form in ("{folder}", "{folder}/t", "deep/{folder}", "deep/{folder}/t", "deep/er/{folder}/t/u"):
        asked = f"{place.root}/{form.format(folder=folder)}"
        for how in ("create", "stage", "declare", "declare there", "register", "register there"):
            answer = place.send(how, name, asked)
            assert answer.status_code == 400, f"{how} {asked}: {answer.text}"
            place.require_absent(name)


@pytest.mark.parametrize("folder", ["data", "tree", "_versions", "x", "data/x"])
def test_a_table_holds_no_table(place: Place, folder: str) -> None:
    name = f"w{next(_numbers)}"
    outer: str = place.rest.table([name], "create", ipc(ROWS)).json()["location"]
    for how in ("create", "stage", "declare", "declare there", "register", "register there"):
        answer = place.send(how, f"{name}in", f"{outer}/{folder}")
        assert answer.status_code == 400, answer.text
        place.require_absent(f"{name}in")
    place.require_good(name)


@pytest.mark.parametrize(
    "folder",
    ["_irc_bridge", "_iceberg", "data", "_indices", "_deletions", "_transactions", "_refs/tags", "tree/x"],
)
def test_a_staged_manifest_lies_among_versions(place: Place, folder: str) -> None:
    name = f"w{next(_numbers)}"
    place.rest.table([name], "create", ipc(ROWS))
    staged = f"{folder}/18446744073709551613.manifest-00000000-0000-0000-0000-000000000000"
    for path in (staged, f"{place.rest.table([name], 'describe', {}).json()['location']}/{staged}"):
        answer = place.rest.table([name], "version/create", {"version": 2, "manifest_path": path})
        assert answer.status_code == 400, answer.text
    place.require_good(name)


@SEARCH
@given(NAMES)
@example("x" * 246)
@example("x" * 247)
@example("")
@example(" ")
@example("a\n")
def test_any_new_name(place: Place, new: str) -> None:
    old = f"r{next(_numbers)}"
    assert place.send("create", old, None).status_code == 200
    source, destination = ({"namespace": ["default"], "name": each} for each in (old, new))
    answer = place.client.post("tables/rename", json={"source": source, "destination": destination})
    if answer.status_code == 204:
        place.require_absent(old)
        place.require_good(new)
    else:
        assert 400 <= answer.status_code < 500, answer.text
        place.require_good(old)
    assert json.dumps(place.client.tables(DEFAULT))


def test_no_folder_of_a_table_is_longer_than_the_disk_takes(tmp_path: Path) -> None:
    """In a root whose path is nearly as long as a path can be."""
    root = tmp_path
    while len(str(root)) < 3800:
        root = root / ("x" * 100)
    root.mkdir(parents=True)
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "irc-bridge.toml").write_text(f'[warehouses.main]\nroot = "{root}"\n')
    with Server("--port", "0", cwd=folder) as server, server.client() as client, Lance(server.url) as rest:
        long = Place(server, client, rest, LocalRoot(root), True)
        for how, length in itertools.product(("create", "send", "declare"), (1, 100, 200, 240)):
            judge(long, how, "n" * length, long.send(how, "n" * length, None))
        assert "Traceback" not in server.text() and "panicked" not in server.text()
