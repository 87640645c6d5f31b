"""Table properties as clients send them: checked, and without what is not theirs to keep."""

from collections.abc import Iterable, Mapping

from irc_bridge.catalog.models import MANAGED_BY, TABLE_TYPE
from irc_bridge.errors import InvalidInput

RESERVED_PREFIX = "irc-bridge."
LATEST_VERSION = f"{RESERVED_PREFIX}latest-version"
MIRRORED_VERSION = f"{RESERVED_PREFIX}mirrored-version"
"""Shown of a table with a Parquet copy: its latest version, and the latest that has one."""


def kept(properties: Mapping[str, str]) -> dict[str, str]:
    check_keys(properties)
    result = dict(properties)
    table_type = result.pop(TABLE_TYPE, "lance")
    if table_type.lower() != "lance":
        raise InvalidInput(f"This warehouse keeps Lance tables: {TABLE_TYPE} cannot be {table_type}")
    if MANAGED_BY in result:
        result[MANAGED_BY] = _managed_by(result[MANAGED_BY])
    return result


def check_keys(keys: Iterable[str]) -> None:
    for key in keys:
        if key.startswith(RESERVED_PREFIX):
            raise InvalidInput(f"Properties that start with {RESERVED_PREFIX} are the server's own: {key}")


def _managed_by(value: str) -> str:
    if value.lower() not in ("storage", "impl"):
        raise InvalidInput(f"{MANAGED_BY} must be storage or impl: {value}")
    return value.lower()
