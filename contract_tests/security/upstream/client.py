"""What a client of an `irc` warehouse sends, in good or bad faith."""

from dataclasses import dataclass
from typing import Any

import requests

from contract_tests.security.upstream.canary import Canary
from contract_tests.worlds.bridge import SCHEMA, Server
from contract_tests.worlds.world import UpstreamWorld

LANCE = {"table_type": "lance"}


@dataclass(frozen=True)
class Client:
    """Requests below /v1/main and /lance of one bridge, for the tables of one namespace."""

    url: str
    namespace: str

    def post(self, path: str, body: object = None, **more: Any) -> requests.Response:
        sent = more if "data" in more else {"json": body, **more}
        return requests.post(f"{self.url}/v1/main{path}", timeout=60, **sent)

    def lance(self, table: str, operation: str, body: object) -> requests.Response:
        url = f"{self.url}/lance/v1/table/{self.namespace}${table}/{operation}"
        return requests.post(url, json=body, timeout=60)

    def table(self, name: str) -> str:
        return f"/namespaces/{self.namespace}/tables/{name}"

    def load(self, name: str) -> requests.Response:
        return requests.get(f"{self.url}/v1/main{self.table(name)}", timeout=60)

    def create(self, name: str, **more: Any) -> requests.Response:
        return self.post(f"/namespaces/{self.namespace}/tables", {"name": name, "schema": SCHEMA, **more})

    def commit(self, name: str, *updates: object, requirements: object = ()) -> requests.Response:
        return self.post(self.table(name), {"requirements": list(requirements), "updates": list(updates)})  # type: ignore[call-overload]

    def transaction(self, name: str, *updates: object) -> requests.Response:
        identifier = {"namespace": [self.namespace], "name": name}
        change = {"identifier": identifier, "requirements": [], "updates": list(updates)}
        return self.post("/transactions/commit", {"table-changes": [change]})

    def register(self, name: str, location: str) -> requests.Response:
        return self.post(f"/namespaces/{self.namespace}/register", {"name": name, "metadata-location": location})

    def purge(self, name: str) -> requests.Response:
        return requests.delete(f"{self.url}/v1/main{self.table(name)}?purgeRequested=true", timeout=60)

    def drop(self, name: str) -> requests.Response:
        return requests.delete(f"{self.url}/v1/main{self.table(name)}", timeout=60)


def set_properties(**properties: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": properties}


def set_location(location: str) -> dict[str, Any]:
    return {"action": "set-location", "location": location}


def created_by_commit(location: str | None, properties: dict[str, str] | None = None) -> dict[str, Any]:
    updates = [
        {"action": "assign-uuid", "uuid": "12345678-1234-4234-8234-123456789012"},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        *([] if location is None else [set_location(location)]),
        set_properties(**LANCE, **(properties or {})),
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}


def client_of(server: Server, upstream: UpstreamWorld, name: str) -> Client:
    body = {"namespace": [f"places_{name}"]}
    assert requests.post(f"{upstream.url}/v1/namespaces", json=body, timeout=60).status_code == 200
    return Client(server.url, f"places_{name}")


def is_not_lance(client: Client, name: str) -> None:
    for operation in ("describe", "count_rows", "drop"):
        answered = client.lance(name, operation, {})
        assert answered.status_code == 404, answered.text


def outside_is_spared(client: Client, name: str, outside: Canary) -> None:
    client.lance(name, "drop", {})
    client.purge(name)
    assert outside.is_unchanged()
