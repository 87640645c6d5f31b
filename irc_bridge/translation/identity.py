from uuid import NAMESPACE_URL, UUID, uuid5

from irc_bridge.catalog.models import TABLE_UUID, TableInfo


def table_uuid(info: TableInfo) -> UUID:
    """The uuid that the bridge gave the table when it made it; a foreign table's follows from its location."""
    try:
        return UUID(info.properties[TABLE_UUID])
    except (KeyError, ValueError):
        return uuid5(NAMESPACE_URL, info.location)
