"""Bodies of requests that may go to another server, read so strictly that both servers read the same content.

Iceberg's own parsers accept more than the specification says: other cases of `action`, other names of fields, text
behind the end of the JSON. So dangerous content is searched everywhere in a body, and not only at its proper
place.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from starlette.datastructures import Headers

from irc_bridge.catalog.models import TABLE_TYPE
from irc_bridge.catalog.properties import check_keys
from irc_bridge.errors import InvalidInput

Json = Mapping[str, Any]

_REMOVED = ("removals", "removed")
"""The fields in which remove-properties names its keys."""


def read_strictly(body: bytes, headers: Headers) -> Any:
    """The JSON of a body. InvalidInput for content that another server could read differently, and for the
    bridge's own properties at any place."""
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise InvalidInput(f"The request body has the content-encoding {encoding}: send it as plain JSON")
    for value in headers.getlist("content-type"):
        charset = value.lower().partition("charset=")[2].partition(";")[0].strip(" \"'")
        if charset not in ("", "utf-8", "utf8"):
            raise InvalidInput(f"The request body is in the charset {charset}: send it in UTF-8")
    try:
        content = json.loads(body.decode(), object_pairs_hook=_without_repeats, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The request body is not JSON: {error}") from None
    _refuse_reserved(content)
    return content


def _refuse_reserved(content: object) -> None:
    for item in _objects_in(content):
        check_keys(item)
        for name in _REMOVED:
            keys = item.get(name)
            check_keys(key for key in keys if isinstance(key, str)) if isinstance(keys, list) else None


def marks_lance(content: object) -> bool:
    """Whether any object in the body has table_type=lance."""
    return any(is_lance(item.get(TABLE_TYPE)) for item in _objects_in(content))


def is_lance(table_type: object) -> bool:
    return isinstance(table_type, str) and table_type.lower() == "lance"


def locations_in(change: Json) -> list[str]:
    """The locations that the updates of a commit set, in the order of the updates."""
    updates = change.get("updates")
    if not isinstance(updates, list):
        return []
    locations = (update.get("location") for update in updates if isinstance(update, Mapping))
    return [location for location in locations if isinstance(location, str)]


def commit_creates(change: Json) -> bool:
    """Whether a CommitTableRequest creates a table."""
    return any(_type_of(requirement) == "assert-create" for requirement in _requirements(change))


def asserted_uuid(change: Json) -> str | None:
    """The uuid that a CommitTableRequest requires, None where it requires none."""
    for requirement in _requirements(change):
        if _type_of(requirement) == "assert-table-uuid":
            return str(requirement.get("uuid"))
    return None


def _requirements(change: Json) -> list[Json]:
    values = change.get("requirements")
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def _type_of(requirement: Json) -> str:
    """In lower case: Iceberg's own parsers ignore the case."""
    return str(requirement.get("type")).lower()


def _objects_in(content: object) -> Iterator[Json]:
    waiting = [content]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            yield item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("an object has the same key twice")
    return content


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")
