"""A request as a handler of the Lance protocol gets it: the identifier is decoded."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from irc_bridge import names
from irc_bridge.catalog.models import Levels, PageRequest
from irc_bridge.catalog.ports import Catalog
from irc_bridge.catalog.warehouses import Warehouse
from irc_bridge.errors import InvalidInput, Unsupported
from irc_bridge.http import bodies
from irc_bridge.http.cache import AnswerCache
from irc_bridge.http.calls import Ability, Call
from irc_bridge.lance_rest.requests import LanceRequest

MAIN = "main"
"""The branch of a request that names none."""

RequestT = TypeVar("RequestT", bound=LanceRequest)


@dataclass
class LanceCall:
    http: Call
    answers: AnswerCache
    max_body_bytes: int

    @property
    def warehouse(self) -> Warehouse:
        return self.http.warehouse

    @property
    def catalog(self) -> Catalog:
        return self.http.catalog

    def able(self, ability: type[Ability]) -> Ability:
        return self.http.able(ability)

    @property
    def delimiter(self) -> str:
        return self.http.query.get("delimiter", names.DELIMITER)

    @cached_property
    def id(self) -> Levels:
        return names.levels_of(names.decode(self.http.params["id"]), self.delimiter)

    @property
    def table(self) -> Levels:
        if not self.id:
            raise InvalidInput("The root namespace is no table: name one in the path")
        return self.id

    def read(self, model: type[RequestT]) -> RequestT:
        """The body as a model. Some clients send no body, or null, in place of an empty object."""
        request = bodies.read(b"{}" if self.http.body in (b"", b"null") else self.http.body, model)
        if request.id is not None and request.id != self.id:
            raise InvalidInput(f"id: the body names {list(request.id)}, the path {list(self.id)}")
        require_main(request.branch)
        return request

    def flag(self, name: str) -> bool | None:
        value = self.http.query.get(name)
        if value is not None and value.lower() not in ("true", "false"):
            raise InvalidInput(f"{name} must be true or false: {value}")
        return None if value is None else value.lower() == "true"

    @property
    def limit(self) -> int | None:
        value = self.http.query.get("limit")
        return None if value is None else whole_number("limit", value)

    @property
    def after(self) -> str | None:
        token = self.http.query.get("page_token")
        return names.name_of_page_token(token) if token else None

    @property
    def page(self) -> PageRequest:
        return PageRequest(self.after, self.limit)


def whole_number(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        raise InvalidInput(f"{name} must be a whole number below 10^18: {value[:100]}")
    return int(value)


def require_main(branch: str | None) -> None:
    if branch not in (None, MAIN):
        raise Unsupported(f"This server serves the branch {MAIN} only: open the table with pylance for {branch}")
