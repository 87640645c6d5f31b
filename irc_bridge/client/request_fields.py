"""The fields of a request. pylance's Rust code sends dictionaries, others send the models of lance_namespace."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

from lance_namespace.errors import LanceNamespaceError, from_error_code

from irc_bridge.catalog.models import Levels, NewVersion, VersionRange
from irc_bridge.errors import BridgeError, InvalidInput, TableVersionAlreadyExists, Unsupported

T = TypeVar("T")
S = TypeVar("S")


def operation(method: Callable[[S, Any], T]) -> Callable[[S, Any], T]:
    """Errors leave as those of lance_namespace, by their codes."""

    @wraps(method)
    def run(self: S, request: Any) -> T:
        try:
            return method(self, request)
        except BridgeError as error:
            raise lance_error(error) from error

    return run


def lance_error(error: BridgeError) -> LanceNamespaceError:
    # the published protocol gave the seeds' number of this one to another error
    code = 14 if isinstance(error, TableVersionAlreadyExists) else error.lance_code
    return from_error_code(code, error.message)


class RequestFields:
    def __init__(self, request: Any) -> None:
        self._fields: Mapping[str, Any] = dict(request)
        branch = self._fields.get("branch")
        if branch not in (None, "", "main"):
            raise Unsupported(f"A table in an Iceberg REST catalog has one branch of versions, main: not {branch}")

    def __getitem__(self, name: str) -> Any:
        value = self._fields.get(name)
        if value is None:
            raise InvalidInput(f"The field {name} is required")
        return value

    def get(self, name: str) -> Any:
        return self._fields.get(name)

    @property
    def namespace(self) -> Levels:
        """Empty for the root, which is the server itself."""
        return tuple(self._fields.get("id") or ())

    @property
    def table(self) -> Levels:
        return table_levels(self["id"])

    @property
    def properties(self) -> dict[str, str]:
        return dict(self._fields.get("properties") or {})

    def mode(self, name: str, *allowed: str) -> str:
        """The first is meant where none is fields for. PascalCase and snake_case are the same."""
        given = self._fields.get(name) or allowed[0]
        word = given.replace("_", "").lower()
        if word not in allowed:
            raise Unsupported(f"{name} {given} is not supported here: {', '.join(allowed)}")
        return str(word)


def table_levels(given: Sequence[str]) -> Levels:
    levels = tuple(given)
    if len(levels) < 2:
        raise InvalidInput(
            f"In an Iceberg REST catalog a table lies in a namespace: {list(levels)} names none. Irc-bridge shows "
            f"the table [t] of a Lance root as [default, t]"
        )
    return levels


def new_version(entry: Any) -> NewVersion:
    fields = RequestFields(entry)
    scheme = fields.get("naming_scheme")
    return NewVersion(
        fields.table,
        fields["version"],
        fields["manifest_path"],
        scheme if scheme in ("V1", "V2") else None,
        fields.get("e_tag"),
    )


def version_range(given: Any) -> VersionRange:
    fields = dict(given)
    return VersionRange(fields["start_version"], fields["end_version"])


def number_of(token: str | None) -> int | None:
    if token and not token.isdigit():
        raise InvalidInput(f"page_token is not one that this namespace gave out: {token[:100]}")
    return int(token) if token else None
