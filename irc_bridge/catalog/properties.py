"""Table properties as clients send them: checked, and without what is not theirs to keep."""

from collections.abc import Iterable, Mapping

from irc_bridge.catalog.models import MANAGED_BY, TABLE_TYPE
from irc_bridge.errors import InvalidInput

GC_ENABLED = "gc.enabled"
"""Iceberg's word for whether clients may delete files of a table. Files of a Lance table are Lance's to delete."""
WRITE_DATA, WRITE_METADATA = "write.data.path", "write.metadata.path"
"""Where Iceberg clients put files that they write."""
RESERVED_PREFIX = "irc-bridge."
LATEST_VERSION = f"{RESERVED_PREFIX}latest-version"
MIRRORED_VERSION = f"{RESERVED_PREFIX}mirrored-version"
"""Shown of a table with a Parquet copy: its latest version, and the latest that has one."""


ENGINE_DATA, ENGINE_METADATA = "_iceberg/engines/data", "_iceberg/engines/metadata"
"""The folders of a table in which Iceberg clients may leave files."""
_OWNED = {GC_ENABLED: "false", WRITE_DATA: f"/{ENGINE_DATA}", WRITE_METADATA: f"/{ENGINE_METADATA}"}
"""The properties that the server sets on every table, and how their values end. Clients send them back when they
create a table in two steps."""


def safe_properties(location: str) -> dict[str, str]:
    """The properties that keep Iceberg clients away from the files of a Lance table: clients delete nothing, and
    what they write lies beside the Parquet copy."""
    return {key: location + end if end.startswith("/") else end for key, end in _OWNED.items()}


def is_safe(properties: Mapping[str, str]) -> bool:
    """Whether a table has the properties that `safe_properties` gives."""
    return all(properties.get(key, "").endswith(end) for key, end in _OWNED.items())


def kept(properties: Mapping[str, str]) -> dict[str, str]:
    check_keys(properties)
    result = dict(properties)
    for key, end in _OWNED.items():
        value = result.pop(key, end)
        if value.lower() != end and not (end.startswith("/") and value.endswith(end)):
            raise InvalidInput(_owned(key))
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


def check_removals(keys: Iterable[str]) -> None:
    keys = list(keys)
    check_keys(keys)
    for key in keys:
        if key in _OWNED:
            raise InvalidInput(_owned(key))


def _owned(key: str) -> str:
    if key == GC_ENABLED:
        return f"{key} stays false: Iceberg clients must not delete files of a Lance table. Clean it up with Lance"
    return f"{key} is set by the server, below the folder _iceberg of the table, and cannot be changed"


def _managed_by(value: str) -> str:
    if value.lower() not in ("storage", "impl"):
        raise InvalidInput(f"{MANAGED_BY} must be storage or impl: {value}")
    return value.lower()
