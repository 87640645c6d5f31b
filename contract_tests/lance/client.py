"""Requests to /lance; every answer is held against the specification."""

from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote

import pyarrow as pa
import requests

from contract_tests.lance.specification import check_response

SECONDS = 60
JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
Body = Mapping[str, Any] | bytes | None

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]})


def ipc(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


class Lance:
    def __init__(self, url: str, warehouse: str | None = None, **headers: str) -> None:
        self.uri = f"{url}/lance" if warehouse is None else f"{url}/lance/{warehouse}"
        self.session = requests.Session()
        self.session.hooks["response"].append(check_response)
        self.session.trust_env = False
        self.session.headers.update(headers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def request(self, method: str, path: str, body: Body = None, **query: str) -> requests.Response:
        """`path` goes behind /v1/. Bytes are rows where rows are sent, JSON elsewhere."""
        sent: dict[str, Any] = {"json": body}
        if isinstance(body, bytes):
            takes_rows = path.startswith("table/") and path.endswith("/create") and path.count("/") == 2
            sent = {"data": body, "headers": {"Content-Type": ARROW if takes_rows else JSON}}
        return self.session.request(method, f"{self.uri}/v1/{path}", params=query, timeout=SECONDS, **sent)

    def get(self, path: str, **query: str) -> requests.Response:
        return self.request("GET", path, None, **query)

    def post(self, path: str, body: Body = None, **query: str) -> requests.Response:
        return self.request("POST", path, body, **query)

    def namespace(self, levels: Sequence[str], what: str, body: Body = None, **query: str) -> requests.Response:
        return self.post(f"namespace/{id_of(levels, query)}/{what}", body, **query)

    def table(self, levels: Sequence[str], what: str, body: Body = None, **query: str) -> requests.Response:
        return self.post(f"table/{id_of(levels, query)}/{what}", body, **query)

    def list(self, namespace: Sequence[str], what: str = "list", **query: str) -> requests.Response:
        return self.get(f"namespace/{id_of(namespace, query)}/{what}", **query)

    def create(self, levels: Sequence[str], rows: pa.Table = ROWS, **query: str) -> requests.Response:
        return self.table(levels, "create", ipc(rows), **query)


class InDefault(Lance):
    """For catalogs without tables in the root: those lie in the namespace `default` instead."""

    def table(self, levels: Sequence[str], what: str, body: Body = None, **query: str) -> requests.Response:
        named = ["default", *levels] if len(levels) == 1 else levels
        if isinstance(body, dict) and "id" in body:
            body = {**body, "id": named}
        return super().table(named, what, body, **query)


def id_of(levels: Sequence[str], query: Mapping[str, str]) -> str:
    delimiter = query.get("delimiter", "$")
    return quote(delimiter.join(levels) or delimiter, safe="")


def ok(response: requests.Response) -> Any:
    assert response.status_code == 200, f"{response.status_code}: {response.text[:500]}"
    return response.json() if response.content else None


def refused(response: requests.Response, status: int, code: int, *said: str) -> str:
    """The envelope with this status and code; gives the message."""
    assert response.status_code == status, f"{response.status_code}: {response.text[:500]}"
    error = response.json()
    assert error["code"] == code, error
    assert error["instance"] == response.headers["x-request-id"]
    for word in said:
        assert word in error["error"], error
    message: str = error["error"]
    return message
