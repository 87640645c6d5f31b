"""Request bodies: their types, their limits, and JSON that is parsed without holding up other requests.

The C parser of JSON holds the interpreter from the first byte to the last: 8 MiB stop the event loop for 100 ms
and more. So JSON of many values is parsed by the standard library's parser in Python, which takes ten times as
long and lets other threads run. One such body is parsed at a time; the memory of several would add up.
"""

import gc
import json
import json.decoder
import json.scanner
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from threading import Lock
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.types import Scope

from irc_bridge.errors import BodyTooLarge, InvalidInput, ServiceUnavailable, UnsupportedMediaType
from irc_bridge.http.replies import JSON

FORM = "application/x-www-form-urlencoded"
LARGEST_JSON = 8 * 1024 * 1024
LARGE = 64 * 1024
"""A larger body is not read on the event loop."""

_ARROW = "application/vnd.apache.arrow."
_MANY_VALUES = 20_000
"""The C parser holds the interpreter for a few milliseconds for this number of values."""
MOST_VALUES = 250_000
"""The values of a table of 50,000 columns. A validator may keep a kilobyte for each wrong value."""
_DEEPEST = 100
"""The most objects and arrays that may lie in one another."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

Model = TypeVar("Model", bound=BaseModel)

_one_at_a_time = Lock()


class BodyMemory:
    """Counts the bytes of the large bodies of all requests that are not answered yet."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    def take(self, scope: Scope, size: int) -> None:
        if self._taken + size > self._most:
            raise ServiceUnavailable(
                f"The large bodies of other requests have {self._taken} bytes, and this server takes "
                f"{self._most} at a time: send the request again later"
            )
        self._taken += size
        scope["body_bytes"] = scope.get("body_bytes", 0) + size

    def give_back(self, scope: Scope) -> None:
        self._taken -= scope.pop("body_bytes", 0)


async def body_of(
    request: Request,
    limit: int,
    memory: BodyMemory,
    *,
    takes_form: bool = False,
    most_values: float = MOST_VALUES,
) -> bytes:
    """The whole body, empty where there is none. It may have `limit` bytes and must be JSON or Arrow.
    `most_values` limits the values of JSON. The caller gives the memory of the body back."""
    length = request.headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in request.headers:
        return b""
    if length != "0":
        _require_type(request, takes_form)
    if length.isdigit() and int(length) > limit:
        raise BodyTooLarge(f"The request body has {length} bytes; this request may have {limit}")
    body, values, taken = bytearray(), 0, 0
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGE:
            memory.take(request.scope, len(body) - taken)
            taken = len(body)
        if len(body) > limit:
            raise BodyTooLarge(f"The request body is larger than the {limit} bytes that this request may have")
        if most_values != inf:
            values += _values(chunk)
            if values > most_values:
                raise BodyTooLarge(f"The request body has more than the {most_values} values that it may have")
    if body:
        _require_type(request, takes_form)
    return bytes(body)


def _require_type(request: Request, takes_form: bool) -> None:
    """Web pages of other origins can send text, forms and bodies without a type, and nothing else."""
    given = request.headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    is_json = kind == JSON or (kind.startswith("application/") and kind.endswith("+json"))
    if not is_json and not kind.startswith(_ARROW) and not (takes_form and kind == FORM):
        named = f"Content-Type {given[:100]!r}" if given else "A body without Content-Type"
        raise UnsupportedMediaType(f"{named} is not taken: send {JSON}, or an Arrow type where rows are sent")


def is_large_json(request_type: str | None, body: bytes) -> bool:
    return len(body) > LARGE and not (request_type or "").startswith(_ARROW)


class ShortTurns:
    """A context in which threads switch ten times as often, so that a thread that computes does not hold up the
    event loop."""

    SECONDS = 0.0005

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._usual = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(self.SECONDS)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                sys.setswitchinterval(self._usual)


def read(body: bytes, model: type[Model]) -> Model:
    """The body as a model. InvalidInput names the first field that is wrong."""
    if len(body) <= LARGE:
        return _validated(_parsed(body, json.loads), model)
    parse = json.loads if _values(body) <= _MANY_VALUES else _parse_in_python
    with _one_at_a_time, _without_collections():
        return _validated(_parsed(body, parse), model)


def _validated(content: object, model: type[Model]) -> Model:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        raise InvalidInput(f"Invalid request body: {field}: {first['msg']}") from None
    except KeyError as error:
        raise InvalidInput(f"Invalid request body: {error.args[0]}: Field required") from None
    except Exception as error:  # noqa: BLE001 - pyiceberg's models raise errors of their own
        raise InvalidInput(f"Invalid request body: {error}") from None


def _parsed(body: bytes, parse: Callable[[bytes], object]) -> object:
    try:
        content = parse(body)
        if _SURROGATE.search(body):
            json.dumps(content, ensure_ascii=False).encode()  # one half of a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The request body is not JSON: {error}") from None
    if _openings(body) > _DEEPEST and _is_deep(content):
        raise InvalidInput(f"The request body is nested more than {_DEEPEST} levels deep")
    return content


def _openings(body: bytes) -> int:
    """The number of objects and arrays, or a little more: brackets in texts are counted too."""
    return body.count(b"{") + body.count(b"[")


def _values(body: bytes) -> int:
    """The number of values, or a little more: commas in texts are counted too."""
    return _openings(body) + body.count(b",")


def _is_deep(content: object) -> bool:
    level = [content]
    for _ in range(_DEEPEST):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return any(isinstance(value, dict | list) for value in level)


def _parse_in_python(body: bytes) -> object:
    return _PythonDecoder().decode(body.decode(json.detect_encoding(body), "surrogatepass"))


class _PythonDecoder(json.JSONDecoder):
    """The standard library's decoder in Python; only strings are parsed in C."""

    def __init__(self) -> None:
        super().__init__()
        self.parse_object: Any = json.decoder.JSONObject  # type: ignore[attr-defined]
        self.parse_array: Any = json.decoder.JSONArray  # type: ignore[attr-defined]
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


@contextmanager
def _without_collections() -> Iterator[None]:
    """Runs the block with the garbage collector off: it would scan millions of new objects again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
