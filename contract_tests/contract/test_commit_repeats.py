"""Clients that send a commit again: each one on principle, or because the connection broke before the answer."""

import json
import random
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
import requests

from contract_tests.contract.test_commits import commit, remove_properties, set_properties
from contract_tests.contract.test_tags import expires, removes, sets
from contract_tests.contract.test_version_commits import adds, asserts
from contract_tests.directory.staging import stage
from contract_tests.worlds.bridge import Client, assert_ok, table_path, versions_in
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import COMPATIBLE, IRC, S3_WORLDS, VERSIONS, Bridge, _worlds

PLACE = ("default",)
pytestmark = _worlds(COMPATIBLE, VERSIONS[1], S3_WORLDS[0], IRC)

Body = dict[str, Any]
Send = Callable[[str, Body], None]


class Table:
    """Makes the next commit of a table, from what the server says about it."""

    def __init__(self, client: Client, root: Root, name: str, seed: int) -> None:
        self.name = name
        self._client = client
        self._root = root
        self._chance = random.Random(seed)
        self._columns = 0
        made = client.create_table(PLACE, name, properties={"managed_by": "impl"})["metadata"]
        self.location = made["location"]

    def metadata(self) -> Any:
        return self._client.metadata(PLACE, self.name)

    def next_commit(self, number: int) -> Body:
        kinds = [self.rows, self.properties, self.asserted, self.column, self.renaming, self.dropping, self.tag]
        make = self._chance.choice([*kinds, self.expiry, self.rows])
        return make(number, self.metadata())

    def rows(self, number: int, metadata: Any) -> Body:
        schema = self._root.open(self.location).schema
        data = pa.Table.from_pylist([{"id": number}], schema=schema)
        asked = stage(self.location, data=data, options=self._root.options)
        latest = metadata["current-snapshot-id"]
        return {"requirements": [asserts(latest)], "updates": adds(latest + 1, f"/{asked.manifest_path}")}

    def properties(self, number: int, metadata: Any) -> Body:
        updates = [set_properties(**{f"p{number % 3}": str(number)}), remove_properties(f"p{(number + 1) % 3}")]
        return {"requirements": [], "updates": updates}

    def asserted(self, number: int, metadata: Any) -> Body:
        latest = asserts(metadata["current-snapshot-id"])
        return {"requirements": [latest], "updates": [set_properties(last=str(number))]}

    def column(self, number: int, metadata: Any) -> Body:
        self._columns += 1
        field = {"id": metadata["last-column-id"] + 1, "name": f"c{number}", "type": "long", "required": False}
        return self._schema(metadata, [*metadata["schemas"][0]["fields"], field])

    def renaming(self, number: int, metadata: Any) -> Body:
        fields = metadata["schemas"][0]["fields"]
        return self._schema(metadata, [*fields[:-1], {**fields[-1], "name": f"r{number}"}])

    def dropping(self, number: int, metadata: Any) -> Body:
        fields = metadata["schemas"][0]["fields"]
        return self._schema(metadata, fields[:-1] if len(fields) > 2 else fields)

    def tag(self, number: int, metadata: Any) -> Body:
        latest = metadata["current-snapshot-id"]
        return {"requirements": [], "updates": [sets("now", latest), sets(f"t{number}", latest)]}

    def expiry(self, number: int, metadata: Any) -> Body:
        oldest = versions_in(metadata)[0]["snapshot-id"]
        tags = [name for name, ref in metadata["refs"].items() if ref["snapshot-id"] == oldest and name != "main"]
        if oldest == metadata["current-snapshot-id"]:
            return {"requirements": [], "updates": []}
        return {"requirements": [], "updates": [*map(removes, tags), expires(oldest)]}

    def _schema(self, metadata: Any, fields: list[Any]) -> Body:
        updates = [
            {"action": "add-schema", "schema": {**metadata["schemas"][0], "fields": fields}},
            {"action": "set-current-schema", "schema-id": -1},
        ]
        last = {"type": "assert-last-assigned-field-id", "last-assigned-field-id": metadata["last-column-id"]}
        return {"requirements": [last, asserts(metadata["current-snapshot-id"])], "updates": updates}

    def seen(self) -> Any:
        """What should be the same however often each commit was sent."""
        metadata = self.metadata()
        properties = {key: value.replace(self.location, "") for key, value in metadata["properties"].items()}
        return (
            properties,
            metadata["schemas"][0]["fields"],
            metadata["refs"],
            [each["snapshot-id"] for each in versions_in(metadata)],
            self._root.open(self.location).count_rows(),
        )


def post(client: Client, name: str, body: Body) -> None:
    assert_ok(commit(client, PLACE, name, *body["updates"], requirements=body["requirements"]))


def post_twice(client: Client, name: str, body: Body) -> None:
    post(client, name, body)
    post(client, name, body)


def post_unheard(client: Client, name: str, body: Body) -> None:
    """The connection goes as soon as the request is out; then the same again."""
    parts, content = urlsplit(client.url), json.dumps(body).encode()
    head = f"POST /v1/main/{table_path(PLACE, name)} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as connection:
        connection.sendall(head.encode() + content)
    post(client, name, body)


@pytest.mark.parametrize("send", [post_twice, post_unheard])
@pytest.mark.parametrize("seed", range(2))
def test_it_ends_as_if_sent_once(bridge: Bridge, name: str, send: Any, seed: int) -> None:
    once = Table(bridge.client, bridge.root, f"{name}_once", seed)
    often = Table(bridge.client, bridge.root, f"{name}_often", seed)
    for number in range(12):
        post(bridge.client, once.name, once.next_commit(number))
        send(bridge.client, often.name, often.next_commit(number))
        assert often.seen() == once.seen()


def test_over_the_lance_protocol(bridge: Bridge, client: Client, name: str) -> None:
    table = Table(client, bridge.root, name, 0)
    for _ in range(3):
        asked = stage(table.location, 1, options=bridge.root.options)
        body = {"version": asked.version, "manifest_path": asked.manifest_path}
        answers = [
            requests.post(
                f"{client.url}/lance/v1/table/{bridge.world.lance_id(name)}/version/create", json=body, timeout=60
            )
            for _ in range(2)
        ]
        paths = {assert_ok(answer)["version"]["manifest_path"] for answer in answers}
        assert len(paths) == 1
    assert bridge.root.open(table.location).count_rows() == 3
