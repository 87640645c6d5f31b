"""The errors of names, in the words that clients look for."""

from irc_bridge.catalog.models import Levels
from irc_bridge.errors import (
    ConcurrentModification,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
)
from irc_bridge.names import dotted


class LocationOverlaps(InvalidInput):
    """The location of a table is that of another table, or lies above or below it."""


def no_namespace(namespace: Levels) -> NamespaceNotFound:
    return NamespaceNotFound(f"Namespace does not exist: {dotted(namespace)}")


def no_table(table: Levels) -> TableNotFound:
    return TableNotFound(f"Table does not exist: {dotted(table)}")


def table_exists(table: Levels, why: str = "") -> TableAlreadyExists:
    return TableAlreadyExists(f"Table already exists: {dotted(table)}{why}")


def namespace_exists(namespace: Levels) -> NamespaceAlreadyExists:
    return NamespaceAlreadyExists(f"Namespace already exists: {dotted(namespace)}")


def dropped_meanwhile(table: Levels) -> ConcurrentModification:
    return ConcurrentModification(f"{dotted(table)} was made, and dropped by somebody else right after that")


def committed_meanwhile(location: str) -> ConcurrentModification:
    return ConcurrentModification(f"A version was committed to {location} while it was renamed: try again")
