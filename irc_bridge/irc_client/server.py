"""The operations of an IRC server, with the JSON of the specification."""

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from irc_bridge.answers import Unreadable
from irc_bridge.errors import (
    BadGateway,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    TableAlreadyExists,
    TableNotFound,
    WarehouseNotFound,
)
from irc_bridge.irc_client import shapes
from irc_bridge.irc_client.connection import Connection
from irc_bridge.irc_client.failures import Request
from irc_bridge.names import SEPARATOR, dotted

Levels = tuple[str, ...]
Json = dict[str, Any]

REGISTER = "POST /v1/{prefix}/namespaces/{namespace}/register"
TRANSACTION = "POST /v1/{prefix}/transactions/commit"
_ALWAYS = {REGISTER, TRANSACTION}
"""Of what we ask for, that which a server without a list of endpoints has (1.9.0)."""
_DELEGATION = {"x-iceberg-access-delegation": "vended-credentials"}


@dataclass(frozen=True, slots=True)
class Config:
    prefix: str
    separator: str
    """As it stands in a path."""
    endpoints: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Listed:
    items: tuple[Levels, ...]
    next_page: str | None


class IrcServer:
    def __init__(self, connection: Connection, warehouse: str | None = None, prefix: str | None = None) -> None:
        self._connection = connection
        self._warehouse = warehouse
        self._prefix = prefix
        self._lock = threading.Lock()
        self._known: Config | None = None

    @property
    def config(self) -> Config:
        """Asked for once, when it is first needed."""
        with self._lock:
            if self._known is None:
                self._known = self._ask_for_config()
            return self._known

    def check(self) -> None:
        """Raises what keeps the server from answering."""
        self._ask_for_config()

    def offers(self, endpoint: str) -> bool:
        endpoints = self.config.endpoints
        return endpoint in (_ALWAYS if endpoints is None else endpoints)

    def list_namespaces(self, parent: Levels, page: str | None, size: int | None) -> Listed:
        query = {"parent": unquote(self.config.separator).join(parent)} if parent else {}
        what = f"list the namespaces in {_shown(parent)}"
        answer = self._read(shapes.Namespaces, self._list("/namespaces", what, page, size, query), what)
        names = map(tuple, answer.namespaces or [])
        # a server that lists others than children would be asked for theirs for ever
        return Listed(tuple(each for each in names if each[:-1] == parent), answer.next_page_token)

    def list_tables(self, namespace: Levels, page: str | None, size: int | None) -> Listed:
        path = self._namespace(namespace) + "/tables"
        what = f"list the tables in {_shown(namespace)}"
        answer = self._read(shapes.Identifiers, self._list(path, what, page, size), what)
        tables = ((*each.namespace, each.name) for each in answer.identifiers or [])
        return Listed(tuple(tables), answer.next_page_token)

    def create_namespace(self, namespace: Levels, properties: Mapping[str, str]) -> Json:
        body = {"namespace": namespace, "properties": properties}
        what = f"create the namespace {_shown(namespace)}"
        return self._ask("POST", "/namespaces", what, body=body, conflict=NamespaceAlreadyExists)

    def load_namespace(self, namespace: Levels) -> Json:
        what = f"load the namespace {_shown(namespace)}"
        answer = self._ask("GET", self._namespace(namespace), what)
        self._read(shapes.NamespaceResult, answer, what)
        return answer

    def drop_namespace(self, namespace: Levels) -> None:
        what = f"drop the namespace {_shown(namespace)}"
        self._ask("DELETE", self._namespace(namespace), what, conflict=NamespaceNotEmpty)

    def update_namespace_properties(
        self, namespace: Levels, removals: Sequence[str], updates: Mapping[str, str]
    ) -> shapes.ChangedProperties:
        body = {"removals": removals, "updates": updates}
        what = f"change the properties of the namespace {_shown(namespace)}"
        answer = self._ask("POST", self._namespace(namespace) + "/properties", what, body=body)
        return self._read(shapes.ChangedProperties, answer, what)

    def create_table(self, table: Levels, body: Json) -> Json:
        path = self._namespace(table[:-1]) + "/tables"
        what = f"create the table {_shown(table)}"
        return self._ask("POST", path, what, body=body, conflict=TableAlreadyExists, headers=_DELEGATION)

    def register_table(self, table: Levels, metadata_location: str) -> Json:
        body = {"name": table[-1], "metadata-location": metadata_location}
        path = self._namespace(table[:-1]) + "/register"
        what = f"register the table {_shown(table)}"
        return self._ask("POST", path, what, body=body, conflict=TableAlreadyExists, headers=_DELEGATION)

    def load_table(self, table: Levels, snapshots: str, delegate: bool) -> Json:
        return self._ask(
            "GET",
            self._table(table),
            f"load the table {_shown(table)}",
            missing=TableNotFound,
            query={"snapshots": snapshots},
            headers=_DELEGATION if delegate else {},
        )

    def drop_table(self, table: Levels, purge: bool) -> None:
        query = {"purgeRequested": "true" if purge else "false"}
        what = f"drop the table {_shown(table)}"
        self._ask("DELETE", self._table(table), what, missing=TableNotFound, query=query)

    def rename_table(self, source: Levels, destination: Levels) -> None:
        body = {"source": _identifier(source), "destination": _identifier(destination)}
        what = f"rename the table {_shown(source)} to {_shown(destination)}"
        path = "/tables/rename"
        self._ask("POST", path, what, body=body, missing=TableNotFound, conflict=TableAlreadyExists)

    def commit(self, table: Levels, change: Json) -> Json:
        body = {"identifier": _identifier(table), **change}
        what = f"commit to the table {_shown(table)}"
        return self._ask("POST", self._table(table), what, body=body, missing=TableNotFound, commits=True)

    def commit_transaction(
        self, changes: Sequence[tuple[Levels, Mapping[str, Any]]], others: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """`others` have their identifiers in them."""
        named = [{"identifier": _identifier(table), **change} for table, change in changes]
        body = {"table-changes": [*named, *others]}
        what = f"commit to the tables {', '.join(_shown(table) for table, _ in changes)}"
        what += f" and {len(others)} more" if others else ""
        path = "/transactions/commit"
        self._ask("POST", path, what, body=body, missing=TableNotFound, commits=True)

    def _ask_for_config(self) -> Config:
        query = {"warehouse": self._warehouse} if self._warehouse else {}
        what = f"read the configuration of {self._connection.uri}"
        asked = Request("GET", "/v1/config", what, missing=WarehouseNotFound, query=query)
        answer = self._read(shapes.Configuration, self._connection.ask(asked), what)
        given = {"prefix": self._prefix} if self._prefix else {}
        merged = {**(answer.defaults or {}), **given, **(answer.overrides or {})}
        prefix, separator = merged.get("prefix", ""), merged.get("namespace-separator", SEPARATOR)
        parts = prefix.split("/") if isinstance(prefix, str) else ["."]
        if {".", ".."} & set(parts) or not isinstance(separator, str) or not separator:
            raise BadGateway(f"Could not {what}: its prefix or its namespace-separator cannot stand in a path")
        return Config(
            prefix="".join("/" + quote(part, safe="") for part in parts if part),
            # it stands between levels that are encoded; some servers give it encoded already
            separator=quote(unquote(separator), safe=""),
            endpoints=None if answer.endpoints is None else frozenset(answer.endpoints),
        )

    def _read(self, shape: type[shapes.ShapeT], answer: Json, what: str) -> shapes.ShapeT:
        try:
            return shapes.read(shape, answer)
        except Unreadable as error:
            raise BadGateway(f"Could not {what}: the answer of {self._connection.uri} {error}") from None

    def _list(
        self, path: str, what: str, page: str | None, size: int | None, query: Mapping[str, str] | None = None
    ) -> Json:
        """A server need not cut its answer where no token is sent: the first page is asked for by an empty one."""
        paging = {"pageToken": page or ""} if page is not None or size is not None else {}
        sized = {"pageSize": str(size)} if size is not None else {}
        return self._ask("GET", path, what, query={**(query or {}), **paging, **sized})

    def _ask(self, method: str, path: str, what: str, **more: Any) -> Json:
        return self._connection.ask(Request(method, f"/v1{self.config.prefix}{path}", what, **more))

    def _namespace(self, namespace: Levels) -> str:
        return "/namespaces/" + self.config.separator.join(_segment(level) for level in namespace)

    def _table(self, table: Levels) -> str:
        return f"{self._namespace(table[:-1])}/tables/{_segment(table[-1])}"


def _segment(name: str) -> str:
    if not name or {".", ".."} & set(re.split(r"[/\\]", name)):
        raise InvalidInput(f"A name cannot be {name!r}, because a server could take it for a path")
    return quote(name, safe="")


def _identifier(table: Levels) -> Json:
    return {"namespace": table[:-1], "name": table[-1]}


def _shown(levels: Levels) -> str:
    return dotted(levels) or "the root"
