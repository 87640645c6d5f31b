"""What is different for clients where another server keeps Iceberg tables beside Lance tables."""

from typing import Any

import requests

from contract_tests.strangers.openapi import check_response
from contract_tests.worlds.bridge import Client, Server


class MarkingClient(Client):
    """Says of each table that it makes that it is a Lance table."""

    def __init__(self, url: str, prefix: str | None = "main", token: str | None = None) -> None:
        super().__init__(url, prefix, token)
        self.session.hooks["response"] = [_as_specified]

    def request(self, method: str, path: str, **more: Any) -> requests.Response:
        body = more.get("json")
        if method == "POST" and path.endswith("/tables") and isinstance(body, dict):
            given = body.get("properties", {})
            if isinstance(given, dict):
                more["json"] = {**body, "properties": {"table_type": "lance", **given}}
        return super().request(method, path, **more)


class MarkingServer(Server):
    def client(self, prefix: str | None = "main", token: str | None = None) -> Client:
        return MarkingClient(self.url, prefix, token)


def _as_specified(response: requests.Response, *_: object, **__: object) -> None:
    """What the other server answers goes on as it is. The reference server says 200 where the specification says
    204, so only what is said of a Lance table is held against the specification."""
    if response.status_code == 200 and not response.content:
        response.status_code = 204
    if b'"table_type":"lance"' in response.content.replace(b" ", b""):
        check_response(response)
