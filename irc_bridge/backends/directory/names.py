"""Names of objects, and the ids under which `__manifest` keeps them."""

from irc_bridge.catalog.models import Levels
from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.table_folders import CONTROL, LONGEST_PART
from irc_bridge.names import DELIMITER as DELIMITER
from irc_bridge.names import dotted, identifier, levels_of

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


def require_valid_namespace(namespace: Levels) -> None:
    require_valid(namespace, "namespace")
    longest = LONGEST_PART - _HASH_AND_UNDERSCORE - 2
    if len(object_id(namespace).encode()) > longest:
        raise InvalidInput(
            f"Not a name for a namespace: {dotted(namespace)[:40]}... is too long. It may have {longest} bytes, "
            f"because it is a part of the names of its tables' folders"
        )


def require_valid_table(table: Levels) -> None:
    require_valid(table, "table")
    if len(object_id(table).encode()) + _HASH_AND_UNDERSCORE > LONGEST_PART:
        raise InvalidInput(
            f"Not a name for a table: {dotted(table)[:40]}... is too long. With its namespaces it may have "
            f"{LONGEST_PART - _HASH_AND_UNDERSCORE} bytes, because it becomes the name of a folder"
        )


def why_not(name: str) -> str | None:
    if not name:
        return "is empty"
    if name in (".", ".."):
        return "means a folder"
    for letter in (DELIMITER, "/"):
        if letter in name:
            return f"contains {letter}"
    if CONTROL.search(name):
        return "contains a control character"
    return None
