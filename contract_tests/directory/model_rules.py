"""What the model of the seeds is made of: its state, its refusals and the rules of names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from irc_bridge.catalog.models import MANAGED_BY, Levels
from irc_bridge.errors import BridgeError, InvalidInput

Errors = list[type[BridgeError]]
Properties = Mapping[str, str]

_LONGEST_TABLE_ID = 255 - len("01234567_")


class Refused(Exception):
    def __init__(self, errors: Errors) -> None:
        super().__init__(f"any of {sorted(error.__name__ for error in errors)}")
        self.errors = tuple(errors)


def refuse(errors: Errors) -> None:
    if errors:
        raise Refused(errors)


@dataclass(eq=False)
class Manifest:
    """One file of its own: two with the same properties are not the same."""

    metadata: dict[str, str]
    e_tag: str | None = None
    """None where nobody can know it."""


@dataclass(eq=False)
class Staged:
    """What a writer left for the catalog to make a version of."""

    version: int
    manifest: Manifest
    there: bool = True


@dataclass
class Files:
    """A folder that holds a Lance table, or the reservation of one."""

    versions: dict[int, Manifest] = field(default_factory=dict)
    staged: dict[str, Staged] = field(default_factory=dict)
    """By file name, those too that have become versions."""
    retired: set[tuple[int, str]] = field(default_factory=set)
    """Which staged file became which version, as far as the folder remembers."""
    waiting: dict[str, str] = field(default_factory=dict)
    """V1: the properties of a declared table."""
    deregistered: bool = False

    @property
    def latest(self) -> int:
        return max(self.versions, default=0)

    @property
    def metadata(self) -> dict[str, str]:
        return self.versions[self.latest].metadata if self.versions else {}

    def add(self, metadata: Properties) -> None:
        self.versions[self.latest + 1] = Manifest(dict(metadata))

    def moved(self) -> None:
        """Copies have e_tags of their own."""
        for manifest in (*self.versions.values(), *(each.manifest for each in self.staged.values())):
            manifest.e_tag = None


@dataclass
class Row:
    folder: str
    waiting: dict[str, str] = field(default_factory=dict)
    """V2: the properties of a declared table."""
    made_by: dict[int, str] | None = None
    """The staged file that each version was made of, empty where none is known. None for a table whose files are
    its versions."""


@dataclass
class Loaded:
    folder: str
    properties: dict[str, str]
    versions: list[int]


def listed_folder(table: Levels) -> str:
    return f"{table[0]}.lance"


def listed_name(folder: str) -> str | None:
    return folder.removesuffix(".lance") if folder.endswith(".lance") and "/" not in folder else None


def is_hashed(table: Levels, folder: str) -> bool:
    return re.fullmatch("[0-9a-f]{8}_" + re.escape("$".join(table)), folder) is not None


def overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def is_below(levels: Levels, namespace: Levels) -> bool:
    return len(levels) > len(namespace) and levels[: len(namespace)] == namespace


def not_names(levels: Levels) -> Errors:
    return [InvalidInput] if any(not name or "$" in name for name in levels) else []


def too_long(table: Levels) -> Errors:
    """The id of a table becomes the name of a folder, with letters of chance before it."""
    return [InvalidInput] if len("$".join(table).encode()) > _LONGEST_TABLE_ID else []


def too_long_for_tables(namespace: Levels) -> Errors:
    """The id of a table in it has two letters more at least."""
    return [InvalidInput] if len("$".join(namespace).encode()) > _LONGEST_TABLE_ID - 2 else []


def changed(old: Properties, removals: frozenset[str], updates: Properties) -> dict[str, str]:
    return {key: value for key, value in {**old, **updates}.items() if key not in removals}


def is_impl(properties: Properties) -> bool:
    return properties.get(MANAGED_BY) == "impl"
