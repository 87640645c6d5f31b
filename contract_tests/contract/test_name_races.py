"""Many clients make, drop, register, rename and overwrite one name at once, over two servers and both protocols:
no answer is a 500, and afterwards everything that is listed can be loaded and read."""

import itertools
import json
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pytest
import requests

from contract_tests.lance.client import InDefault, Lance
from contract_tests.worlds.bridge import DUMMY_SCHEMA, SCHEMA, Client, namespace_path, table_path
from contract_tests.worlds.world import (
    COMPATIBLE,
    IRC,
    LISTING,
    MANIFEST,
    S3_WORLDS,
    VERSIONS,
    Bridge,
    UpstreamWorld,
    World,
    _worlds,
)

pytestmark = _worlds(COMPATIBLE, LISTING, MANIFEST, VERSIONS[0], S3_WORLDS[0], IRC)

PLACE = ("default",)
CLIENTS, STEPS = 7, 5
ROUNDS, SLOW_ROUNDS = 24, 4
MAKES = ["create", "create with rows"]
GOES = ["purge", "drop", "deregister"]
COUNTED = [*MAKES, *GOES, "register", "load", "describe"]
"""Of these each success makes one table, or takes one away."""
EVERYTHING = [*COUNTED, "overwrite", "overwrite", "declare", "declare", "exist ok", "rename"]
PURGE = {"purgeRequested": "true"}
_BEHIND = "the server answered 500"


@dataclass(frozen=True)
class Done:
    operation: str
    mark: str
    """What a table that is made by it is known by."""
    answer: requests.Response

    @property
    def succeeded(self) -> bool:
        return self.answer.ok

    @property
    def error(self) -> str:
        return "" if self.answer.ok else self.answer.text[:300]


@dataclass
class Crowd:
    """Clients that do what comes into their minds to two names."""

    servers: list[Bridge]
    names: list[str]
    operations: list[str]
    seed: int
    locations: list[str] = field(default_factory=list)
    """Of tables that were made, for those who register."""

    def run(self) -> list[Done]:
        start = threading.Barrier(CLIENTS)
        with ThreadPoolExecutor(CLIENTS) as pool:
            return list(itertools.chain(*pool.map(lambda who: self._one(who, start), range(CLIENTS))))

    def _one(self, who: int, start: threading.Barrier) -> list[Done]:
        chance, bridge = random.Random(f"{self.seed} {who}"), self.servers[who % len(self.servers)]
        done = []
        with bridge.server.client() as client, lance_of(bridge) as lance:
            client.get("/v1/config")
            start.wait()
            for number in range(STEPS):
                operation, mark = chance.choice(self.operations), f"{who} {number} {self.seed}"
                answer = self._do(operation, mark, chance.choice(self.names), client, lance)
                done.append(Done(operation, mark, answer))
        return done

    def _do(self, operation: str, mark: str, name: str, client: Client, lance: Lance) -> requests.Response:
        tables, path, own = f"{namespace_path(PLACE)}/tables", table_path(PLACE, name), {"mark": mark}
        match operation:
            case "create":
                answer = client.post(tables, json={"name": name, "schema": SCHEMA, "properties": own})
            case "declare":
                properties = {"table_type": "lance", **own}
                answer = client.post(tables, json={"name": name, "schema": DUMMY_SCHEMA, "properties": properties})
            case "create with rows":
                answer = lance.create([name], properties=json.dumps(own))
            case "overwrite" | "exist ok":
                mode = operation.replace(" ", "")
                answer = lance.create([name], mode=mode, properties=json.dumps(own))
            case "register":
                location = self.locations[-1] if self.locations else "file:///nowhere/at/all"
                body = {"name": name, "metadata-location": location}
                answer = client.post(f"{namespace_path(PLACE)}/register", json=body)
            case "rename":
                names = [{"namespace": PLACE, "name": each} for each in (name, self._other(name))]
                answer = client.post("tables/rename", json={"source": names[0], "destination": names[1]})
            case "purge":
                answer = client.delete(path, params=PURGE)
            case "deregister":
                answer = client.delete(path)
            case "load":
                answer = client.get(path)
            case "drop" | "describe":
                answer = lance.table([name], operation, {})
        if operation in MAKES and answer.ok:
            body = answer.json()
            self.locations.append(body["metadata"]["location"] if "metadata" in body else body["location"])
        return answer

    def _other(self, name: str) -> str:
        return next(each for each in self.names if each != name)


def lance_of(bridge: Bridge) -> Lance:
    kind = InDefault if isinstance(bridge.world, UpstreamWorld) else Lance
    return kind(bridge.server.url)


@pytest.fixture(scope="module")
def servers(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Bridge]]:
    """Two over one root. Before another server files stay: where that keeps its own beside them, it answers 500 by
    itself when they go while it reads them."""
    after = "1h" if isinstance(world, UpstreamWorld) else "0s"
    own = replace(world, unsafe=f'purge_after = "{after}"\n')
    with ExitStack() as stack:
        first = stack.enter_context(own.start(tmp_path_factory.mktemp(f"crowd-{world.name}")))
        yield [first, stack.enter_context(own.start_another(first))]


def able(world: World, operations: list[str]) -> list[str]:
    unable = {"rename"} if "rename" in world.cannot else {"drop"} if isinstance(world, UpstreamWorld) else set()
    return [each for each in operations if each not in unable]


def rounds_in(world: World) -> int:
    return SLOW_ROUNDS if world.on_s3 or isinstance(world, UpstreamWorld) else ROUNDS


@pytest.mark.parametrize("operations", [COUNTED, EVERYTHING], ids=["counted", "everything"])
def test_what_is_listed_can_be_read(servers: list[Bridge], world: World, name: str, operations: list[str]) -> None:
    for number in range(rounds_in(world)):
        names = [f"{name}_{number}", f"{name}_{number}_other"][: 2 if "rename" in operations else 1]
        if "rename" in world.cannot:
            names = names[:1]
        done = Crowd(servers, names, able(world, operations), number).run()
        assert_plain(done)
        left = assert_whole(servers, names)
        if operations is COUNTED:
            assert_nothing_lost(done, left)


def assert_plain(done: list[Done]) -> None:
    for each in done:
        status = each.answer.status_code
        if _BEHIND in each.error:
            # the reference server is not made for such crowds: it says so itself
            continue
        assert status in (200, 204, 400, 404, 409), f"{each.operation}: {status}: {each.error}"
        if each.operation in ("load", "describe"):
            assert status in (200, 404), f"{each.operation}: {status}: {each.error}"
        if each.operation in MAKES:
            assert status in (200, 409), f"{each.operation}: {status}: {each.error}"


def assert_whole(servers: list[Bridge], names: list[str]) -> list[str]:
    """Gives the marks of the tables that are there."""
    marks = []
    for name in names:
        for bridge in servers:
            answer = bridge.client.get(table_path(PLACE, name))
            assert (name in bridge.client.tables(PLACE)) is (answer.status_code == 200), answer.text[:300]
            assert answer.status_code in (200, 404), answer.text[:300]
        if answer.status_code == 200:
            metadata = answer.json()["metadata"]
            marks.append(metadata["properties"].get("mark"))
            if metadata.get("current-snapshot-id", -1) > 0:
                table = servers[0].root.open(metadata["location"])
                assert table.to_table().num_rows == table.count_rows()
    return marks


def assert_nothing_lost(done: list[Done], left: list[str]) -> None:
    """A table that somebody was told was made is there, unless another one was told that it is gone."""
    story = "\n".join(f"{each.operation} {each.mark}: {each.answer.status_code} {each.error}" for each in done)
    if any(_BEHIND in each.error for each in done):
        # nobody can tell whether a request that the reference server answered with 500 was carried out
        return
    made = [each for each in done if each.succeeded and each.operation in (*MAKES, "register")]
    gone = [each for each in done if each.succeeded and each.operation in GOES]
    assert len(made) - len(gone) <= len(left), story
    for mark in left:
        # before another server a registered table has lost its properties
        assert mark is None or mark in {each.mark for each in made if each.operation in MAKES}, story
