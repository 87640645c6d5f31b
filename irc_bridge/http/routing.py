"""Routing on the raw path. A name may hold an encoded slash, so a path is cut into words before the words are
decoded. Starlette's own routes match decoded paths."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

from starlette.datastructures import URLPath
from starlette.routing import BaseRoute, NoMatchFound
from starlette.routing import Match as HowFar
from starlette.types import ASGIApp, Receive, Scope, Send

from irc_bridge.errors import MethodNotAllowed, RouteNotFound

Shape = tuple[str, ...]
"""The words of a path, with a star for each name."""

PREFIX = "prefix"
"""The placeholder that names the warehouse."""
_LONGEST_CACHED_PATH = 512


class RawRoute(BaseRoute):
    """A route of Starlette that looks at the raw path."""

    def __init__(
        self, match: Callable[[Scope], dict[str, Any] | None], app: ASGIApp, catch_all: bool = False
    ) -> None:
        """`match` gives the entries that it adds to the scope of a request, None where the route does not fit.
        A route that is a `catch_all` leaves a path to another route that knows it, with any method."""
        self._match = match
        self._app = app
        self._how_far = HowFar.PARTIAL if catch_all else HowFar.FULL

    def matches(self, scope: Scope) -> tuple[HowFar, Scope]:
        more = self._match(scope) if scope["type"] == "http" else None
        return (HowFar.NONE, {}) if more is None else (self._how_far, more)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        raise NoMatchFound(name, path_params)


def below(prefix: bytes) -> Callable[[Scope], dict[str, Any] | None]:
    """Matches every path that starts with `prefix`."""
    return lambda scope: {} if scope["raw_path"].startswith(prefix) else None


class _Endpoint(Protocol):
    @property
    def method(self) -> str: ...


EndpointT = TypeVar("EndpointT", bound=_Endpoint)


@dataclass(frozen=True, slots=True)
class Match(Generic[EndpointT]):
    """An endpoint and the raw values of the placeholders in its path."""

    endpoint: EndpointT
    prefix: str | None
    params: Mapping[str, str]


class PathTable(Generic[EndpointT]):
    """The endpoints of a protocol by the shapes of their paths."""

    def __init__(
        self, endpoints: Iterable[tuple[str, EndpointT]], cut: Callable[[str], Iterable[tuple[Shape, list[str]]]]
    ) -> None:
        """`endpoints` are pairs of a path template and its endpoint. `cut` gives the shapes that a path may have,
        the likeliest first, each with the names in it."""
        self._methods: dict[Shape, dict[str, tuple[EndpointT, list[str]]]] = {}
        for template, endpoint in endpoints:
            for shape, placeholders in _shapes(template):
                self._methods.setdefault(shape, {})[endpoint.method] = endpoint, placeholders
        self._cut = cut
        self._cached_find = lru_cache(1024)(self._find)

    def find(self, method: str, raw_path: bytes) -> Match[EndpointT]:
        """RouteNotFound or MethodNotAllowed where there is no such endpoint."""
        find = self._cached_find if len(raw_path) <= _LONGEST_CACHED_PATH else self._find
        return find(method, raw_path)

    def has(self, path: str) -> bool:
        """Whether there is an endpoint with this path, of any method."""
        return any(shape in self._methods for shape, _ in self._cut(path))

    def _find(self, method: str, raw_path: bytes) -> Match[EndpointT]:
        path = raw_path.decode(errors="replace")
        for shape, values in self._cut(path):
            if shape in self._methods:
                return self._match(method, shape, values)
        raise RouteNotFound(f"No such route: {path}")

    def _match(self, method: str, shape: Shape, values: list[str]) -> Match[EndpointT]:
        methods = self._methods[shape]
        if method not in methods:
            raise MethodNotAllowed(method, sorted(methods))
        endpoint, placeholders = methods[method]
        params = dict(zip(placeholders, values, strict=True))
        return Match(endpoint, params.pop(PREFIX, None), params)


def _shapes(template: str) -> Iterator[tuple[Shape, list[str]]]:
    """The shapes of a path template with their placeholders. Clients may leave out the prefix."""
    words = template.split("/")[1:]
    for kept in (words, [word for word in words if word != f"{{{PREFIX}}}"]):
        shape = tuple("*" if word.startswith("{") else word for word in kept)
        yield shape, [word[1:-1] for word in kept if word.startswith("{")]
