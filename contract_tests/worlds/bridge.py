"""The bridge in a process of its own, and clients that speak to it over real sockets."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import requests

from contract_tests.strangers.openapi import watch
from contract_tests.worlds.process import Guard

Levels = Sequence[str]

SECONDS = 60
GUARD = "This-is-a-Lance-table--clean-it-up-with-Lance"
"""Part of the name of the guard snapshot's manifest list, which does not exist: clients that want it show it."""
BANNER = re.compile(r"http://\S+?:\d+")


def encoded(levels: Levels) -> str:
    return "%1F".join(quote(level, safe="") for level in levels)


def namespace_path(namespace: Levels) -> str:
    return f"namespaces/{encoded(namespace)}"


def table_path(namespace: Levels, name: str) -> str:
    return f"{namespace_path(namespace)}/tables/{quote(name, safe='')}"


class Client:
    """Requests below `/v1/{prefix}` of one server; every answer is held against the specification."""

    def __init__(self, url: str, prefix: str | None = "main", token: str | None = None) -> None:
        self.url = url
        self.base = f"{url}/v1/{prefix}/" if prefix else f"{url}/v1/"
        self.session = watch(requests.Session())
        self.session.trust_env = False
        if token:
            self.session.headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def request(self, method: str, path: str, **more: Any) -> requests.Response:
        """`path` goes below the warehouse, or below the server itself when it starts with a slash. Bytes are JSON
        where `headers` do not say what they are."""
        if isinstance(more.get("data"), bytes):
            more["headers"] = {"Content-Type": "application/json", **more.get("headers", {})}
        url = f"{self.url}{path}" if path.startswith("/") else f"{self.base}{path}"
        return self.session.request(method, url, timeout=SECONDS, allow_redirects=False, **more)

    def get(self, path: str, **more: Any) -> requests.Response:
        return self.request("GET", path, **more)

    def head(self, path: str, **more: Any) -> requests.Response:
        return self.request("HEAD", path, **more)

    def post(self, path: str, **more: Any) -> requests.Response:
        return self.request("POST", path, **more)

    def delete(self, path: str, **more: Any) -> requests.Response:
        return self.request("DELETE", path, **more)

    def create_namespace(self, *levels: str, **properties: str) -> tuple[str, ...]:
        body = {"namespace": levels, "properties": properties}
        assert_ok(self.post("namespaces", json=body))
        return levels

    def create_table(self, namespace: Levels, name: str, **more: Any) -> dict[str, Any]:
        body = {"name": name, "schema": SCHEMA, **more}
        return assert_ok(self.post(f"{namespace_path(namespace)}/tables", json=body))

    def declare_table(self, namespace: Levels, name: str, **more: Any) -> dict[str, Any]:
        """As the published Lance client for Iceberg REST does."""
        properties = {"table_type": "lance", **more.pop("properties", {})}
        return self.create_table(namespace, name, schema=DUMMY_SCHEMA, properties=properties, **more)

    def load(self, namespace: Levels, name: str, **query: str) -> dict[str, Any]:
        return assert_ok(self.get(table_path(namespace, name), params=query))

    def metadata(self, namespace: Levels, name: str, **query: str) -> dict[str, Any]:
        metadata: dict[str, Any] = self.load(namespace, name, **query)["metadata"]
        return metadata

    def tables(self, namespace: Levels, **query: str) -> list[str]:
        listed = assert_ok(self.get(f"{namespace_path(namespace)}/tables", params=query))
        assert all(entry["namespace"] == list(namespace) for entry in listed["identifiers"])
        return [entry["name"] for entry in listed["identifiers"]]

    def namespaces(self, parent: Levels = (), **query: str) -> list[tuple[str, ...]]:
        """Through `params`, requests itself encodes the 0x1F between the levels."""
        query |= {"parent": "\x1f".join(parent)} if parent else {}
        listed = assert_ok(self.get("namespaces", params=query))
        return [tuple(levels) for levels in listed["namespaces"]]


DUMMY_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "dummy", "type": "string", "required": False}],
}
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "name", "type": "string", "required": False},
    ],
}


def as_loaded(created: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a create answer as a load shows it: there the schema has the id 1, not its client's own."""
    schema, snapshots = dict(created["schemas"][0]), created["snapshots"]
    return {
        **created,
        "schemas": [{**schema, "schema-id": 1}],
        "current-schema-id": 1,
        "snapshots": [{**snapshot, "schema-id": 1} for snapshot in snapshots],
    }


def versions_in(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The snapshots of TableMetadata that are Lance versions: all but the guard."""
    return [each for each in metadata["snapshots"] if each["summary"].get("irc-bridge.guard") != "true"]


def version_numbers(snapshots: Iterable[Any]) -> list[int]:
    """The same of pyiceberg's snapshots: their ids."""
    return [each.snapshot_id for each in snapshots if each.summary["irc-bridge.guard"] != "true"]


def assert_ok(response: requests.Response) -> dict[str, Any]:
    assert response.status_code == 200, f"{response.status_code}: {response.text[:500]}"
    body: dict[str, Any] = response.json()
    return body


def assert_error(response: requests.Response, status: int, *types: str, names: str = "") -> str:
    """The envelope with one of the types; gives the message."""
    assert response.status_code == status, f"{response.status_code}: {response.text[:500]}"
    error = response.json()["error"]
    assert error["code"] == status
    assert not types or error["type"] in types, error
    assert names in error["message"], error
    message: str = error["message"]
    return message


class Server:
    """`irc-bridge serve` in its own process; its URL is what its banner says."""

    module = "irc_bridge"
    command = "serve"

    def __init__(
        self,
        *arguments: str | Path,
        cwd: Path,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        """`prefix` is a command that runs the bridge's own, such as one that sets limits."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("IRC_BRIDGE__")}
        self.cwd = cwd
        self.log: list[str] = []
        self._said = threading.Condition()
        self._ended = False
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", self.module, self.command, *arguments],
            cwd=cwd,
            env={**own, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._guard = Guard(self.process)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        stopped = self.stop()
        if failed is None:
            assert stopped, f"the server did not end within seconds of Ctrl-C:\n{self.text()}"

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with self._said:
                self.log.append(line)
                self._said.notify_all()
        with self._said:
            self._ended = True
            self._said.notify_all()

    def text(self) -> str:
        return "".join(self.log)

    def wait_for(self, wanted: Callable[[str], bool]) -> str:
        """The first line of the log that is wanted, as soon as it is there."""
        with self._said:
            found = self._said.wait_for(lambda: self._ended or any(map(wanted, self.log)), SECONDS)
            lines = [line for line in self.log if wanted(line)]
        assert found and lines, f"the server never said it:\n{self.text()}"
        return lines[0]

    @property
    def url(self) -> str:
        match = BANNER.search(self.wait_for(lambda line: BANNER.search(line) is not None))
        assert match
        return match[0]

    def client(self, prefix: str | None = "main", token: str | None = None) -> Client:
        return Client(self.url, prefix, token)

    def refused(self) -> str:
        """What the server says when it ends by itself without serving."""
        assert self.process.wait(SECONDS) not in (0, None), self.text()
        self._reader.join(SECONDS)
        return self.text()

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._close()

    def stop(self) -> bool:
        """By Ctrl-C; False when only kill -9 ended it."""
        if self.process.poll() is not None:
            self._close()
            return True
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        self._close()
        return True

    def _close(self) -> None:
        self._guard.release()
        self._reader.join(SECONDS)
        assert self.process.stdout
        self.process.stdout.close()


@contextmanager
def raw_request(url: str, head: bytes, *body: bytes) -> Iterator[http.client.HTTPResponse]:
    """Bytes on the wire that no HTTP library would send. `head` has no final blank line."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), SECONDS) as connection:
        connection.sendall(head + f"\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
        for part in body:
            connection.sendall(part)
        with http.client.HTTPResponse(connection, method=head.split()[0].decode()) as response:
            response.begin()
            yield response
