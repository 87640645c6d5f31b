"""Table properties in requests. Some of Iceberg's own properties mean nothing for a Lance table."""

from collections.abc import Mapping, Sequence

from irc_bridge.catalog import properties as tables
from irc_bridge.catalog.properties import check_removals as check_removals
from irc_bridge.errors import InvalidInput

FORMAT_VERSION = "format-version"


def kept(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that the table keeps. InvalidInput for properties that no client may set."""
    result = tables.kept(properties)
    check_format_version(result.pop(FORMAT_VERSION, "2"))
    return result


def check_format_version(version: str) -> None:
    if version != "2":
        raise InvalidInput(f"Lance tables appear in format version 2: {FORMAT_VERSION} cannot be {version}")


def refuse_layout(kind: str, fields: Sequence[object] | None) -> None:
    if fields:
        raise InvalidInput(f"Lance tables are neither partitioned nor sorted: the {kind} must have no fields")
