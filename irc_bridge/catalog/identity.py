from collections.abc import Mapping
from uuid import NAMESPACE_URL, UUID, uuid5

from irc_bridge.catalog.models import TABLE_UUID, TableInfo


def table_uuid(info: TableInfo) -> UUID:
    """The uuid that the bridge gave the table when it made it; a foreign table's follows from its location."""
    return kept_uuid(info.properties) or uuid5(NAMESPACE_URL, info.location)


def kept_uuid(properties: Mapping[str, str]) -> UUID | None:
    try:
        return UUID(properties[TABLE_UUID])
    except (KeyError, ValueError):
        return None
