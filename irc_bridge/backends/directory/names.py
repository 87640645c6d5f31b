"""Names of objects, and the ids under which `__manifest` keeps them."""

import re

from irc_bridge.catalog.models import Levels
from irc_bridge.errors import InvalidInput
from irc_bridge.names import DELIMITER as DELIMITER
from irc_bridge.names import dotted, identifier, levels_of

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LONGEST_FILE_NAME = 255
_HASH_AND_UNDERSCORE = 9


def object_id(levels: Levels) -> str:
    return identifier(levels)


def levels(object_id: str) -> Levels:
    return levels_of(object_id)


def is_valid(levels: Levels) -> bool:
    return all(why_not(name) is None for name in levels)


def require_valid(levels: Levels, kind: str) -> None:
    for name in levels:
        if reason := why_not(name):
            raise InvalidInput(f"Not a name for a {kind}: {name!r} {reason}")


def require_valid_table(table: Levels) -> None:
    require_valid(table, "table")
    if len(object_id(table).encode()) + _HASH_AND_UNDERSCORE > _LONGEST_FILE_NAME:
        raise InvalidInput(
            f"Not a name for a table: {dotted(table)[:40]}... is too long. With its namespaces it may have "
            f"{_LONGEST_FILE_NAME - _HASH_AND_UNDERSCORE} bytes, because it becomes the name of a folder"
        )


def why_not(name: str) -> str | None:
    if not name:
        return "is empty"
    if name in (".", ".."):
        return "means a folder"
    for letter in (DELIMITER, "/"):
        if letter in name:
            return f"contains {letter}"
    if _CONTROL.search(name):
        return "contains a control character"
    return None
