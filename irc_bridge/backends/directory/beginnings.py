"""The properties that a table begins with."""

from collections.abc import Mapping
from uuid import uuid4

from irc_bridge.catalog.models import TABLE_UUID, NewTable


def first_properties(new: NewTable) -> dict[str, str]:
    return {TABLE_UUID: str(uuid4()), **new.properties}


def its_uuid(properties: Mapping[str, str]) -> dict[str, str]:
    return {TABLE_UUID: properties[TABLE_UUID]}
