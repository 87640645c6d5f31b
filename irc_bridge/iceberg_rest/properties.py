"""Table properties as clients send them: checked, and without what is not theirs to keep."""

from collections.abc import Iterable, Mapping, Sequence

from irc_bridge.catalog.models import MANAGED_BY, TABLE_TYPE
from irc_bridge.errors import InvalidInput

FORMAT_VERSION = "format-version"
RESERVED_PREFIX = "irc-bridge."


def kept(properties: Mapping[str, str]) -> dict[str, str]:
    check_keys(properties)
    result = dict(properties)
    table_type = result.pop(TABLE_TYPE, "lance")
    if table_type.lower() != "lance":
        raise InvalidInput(f"This warehouse keeps Lance tables: {TABLE_TYPE} cannot be {table_type}")
    check_format_version(result.pop(FORMAT_VERSION, "2"))
    if MANAGED_BY in result:
        result[MANAGED_BY] = _managed_by(result[MANAGED_BY])
    return result


def check_format_version(version: str) -> None:
    if version not in ("1", "2"):
        raise InvalidInput(f"Lance tables appear in format version 2: {FORMAT_VERSION} cannot be {version}")


def refuse_layout(what: str, fields: Sequence[object] | None) -> None:
    if fields:
        raise InvalidInput(f"Lance tables are neither partitioned nor sorted: the {what} must have no fields")


def check_keys(keys: Iterable[str]) -> None:
    for key in keys:
        if key.startswith(RESERVED_PREFIX):
            raise InvalidInput(f"Properties that start with {RESERVED_PREFIX} are the server's own: {key}")


def _managed_by(value: str) -> str:
    if value.lower() not in ("storage", "impl"):
        raise InvalidInput(f"{MANAGED_BY} must be storage or impl: {value}")
    return value.lower()
