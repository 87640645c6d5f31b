"""Seeds 000-002 in memory: what a directory namespace must answer, written without a look at how it is built.

The seeds do not say which of several errors goes first: a refusal carries all that apply. What a catalog chooses
by itself (the random letters of a folder, a uuid) is learned from its answer.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from irc_bridge.catalog.models import TABLE_UUID, Levels, PropertyChanges, TableInfo
from irc_bridge.errors import (
    BridgeError,
    BrokenTable,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
)

Errors = list[type[BridgeError]]
Properties = Mapping[str, str]

RENAME_LEAVES_V1_FOLDERS = True
"""Whether a table that is renamed moves out of a V1 folder into a V2 folder. One in a V2 folder keeps it."""
_LONGEST_TABLE_ID = 255 - len("01234567_")


class Refused(Exception):
    def __init__(self, errors: Errors) -> None:
        super().__init__(f"any of {sorted(error.__name__ for error in errors)}")
        self.errors = tuple(errors)


def _refuse(errors: Errors) -> None:
    if errors:
        raise Refused(errors)


@dataclass
class Files:
    """A folder that holds a Lance table, or the reservation of one."""

    versions: int = 0
    metadata: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    """V1: the properties of a declared table."""
    deregistered: bool = False


@dataclass
class Row:
    folder: str
    waiting: dict[str, str] = field(default_factory=dict)
    """V2: the properties of a declared table."""


@dataclass
class Loaded:
    folder: str
    properties: dict[str, str]
    versions: list[int]


class Model:
    def __init__(self, *, manifest: bool, listing: bool) -> None:
        self.manifest = manifest
        self.listing = listing
        self.namespaces: dict[Levels, dict[str, str]] = {}
        self.rows: dict[Levels, Row] = {}
        self.folders: dict[str, Files] = {}

    # what is there

    def has_namespace(self, namespace: Levels) -> bool:
        return not namespace or namespace in self.namespaces

    def child_namespaces(self, parent: Levels) -> list[str]:
        _refuse(self._not_there(parent))
        return sorted(each[-1] for each in self.namespaces if each[:-1] == parent)

    def properties(self, namespace: Levels) -> Properties:
        _refuse(self._not_there(namespace))
        return self.namespaces[namespace] if namespace else {}

    def tables(self, namespace: Levels) -> list[str]:
        _refuse(self._not_there(namespace))
        names = {each[-1] for each in self.rows if each[:-1] == namespace}
        if not namespace:
            names |= {name for name in map(_listed_name, self.folders) if name and self.folder_of((name,))}
        return sorted(names)

    def all_tables(self) -> list[Levels]:
        return [(*each, name) for each in ((), *self.namespaces) for name in self.tables(each)]

    def hidden_folders(self) -> list[str]:
        return [folder for folder, files in self.folders.items() if files.deregistered]

    def loose_folders(self) -> list[str]:
        """Those that are no table at present."""
        return [each for each in self.folders if not self._holder(each) and not self._is_listed(each)]

    def is_broken(self, table: Levels) -> bool:
        """Its row is there and its files are not."""
        folder = self.folder_of(table)
        return folder is not None and folder not in self.folders

    def folder_of(self, table: Levels) -> str | None:
        """The manifest goes first, then the folder of the name, unless the manifest says whose it is."""
        if table in self.rows:
            return self.rows[table].folder
        if not self.listing or len(table) != 1 or table in self.namespaces:
            return None
        files = self.folders.get(folder := _listed_folder(table))
        return folder if files and not files.deregistered and not self._holder(folder) else None

    def load(self, table: Levels) -> Loaded:
        folder = self._find(table)
        if self.is_broken(table):
            raise Refused([BrokenTable])
        files = self.folders[folder]
        properties = {**self._waiting(table, files), **files.metadata}
        return Loaded(folder, properties, list(range(1, files.versions + 1)))

    # namespaces

    def create_namespace(self, namespace: Levels, properties: Properties) -> None:
        _refuse(self._not_free(namespace) + self._not_there(namespace[:-1]) + _not_names(namespace))
        self.namespaces[namespace] = dict(properties)

    def drop_namespace(self, namespace: Levels) -> None:
        held = [each for each in (*self.namespaces, *self.rows) if _is_below(each, namespace)]
        root: Errors = [] if namespace else [InvalidInput]
        _refuse(self._not_there(namespace) + root + ([NamespaceNotEmpty] if held else []))
        del self.namespaces[namespace]

    def update_properties(
        self, namespace: Levels, removals: frozenset[str], updates: Properties
    ) -> PropertyChanges:
        _refuse(self._not_there(namespace) + ([] if namespace else [InvalidInput]))
        old = self.namespaces[namespace]
        self.namespaces[namespace] = _changed(old, removals, updates)
        return PropertyChanges(
            tuple(updates), tuple(sorted(removals & old.keys())), tuple(sorted(removals - old.keys()))
        )

    # tables

    def create(
        self,
        table: Levels,
        properties: Properties,
        asked: str | None,
        declared: bool,
        answer: Callable[[], TableInfo],
        folder_in: Callable[[TableInfo], str],
    ) -> Loaded:
        _refuse(self._not_creatable(table) + (self._not_placeable(table, asked) if asked else []))
        info = answer()
        folder = folder_in(info)
        assert folder not in self.folders
        if asked is None:
            self._assert_own_folder(table, folder)
        else:
            assert folder == asked
        kept = {TABLE_UUID: info.properties[TABLE_UUID], **properties}
        self.folders[folder] = Files() if declared else Files(1, metadata=kept)
        if self.manifest:
            self.rows[table] = Row(folder, kept if declared else {})
        elif declared:
            self.folders[folder].waiting = kept
        return self.load(table)

    def register(self, table: Levels, folder: str) -> Loaded:
        files = self.folders.get(folder)
        errors = _not_names(table) + self._not_there(table[:-1]) + self._not_free(table) + _too_long(table)
        is_table = files is not None and (files.versions > 0 or files.deregistered)
        if not is_table or self._overlaps_a_row(folder) or self._is_listed(folder):
            errors.append(InvalidInput)
        if not self.manifest and folder != _listed_folder(table):
            errors.append(InvalidInput)
        _refuse(errors)
        assert files is not None
        files.deregistered = False
        if self.manifest:
            self.rows[table] = Row(folder)
        return self.load(table)

    def deregister(self, table: Levels) -> None:
        folder = self._find(table)
        self.rows.pop(table, None)
        if self.listing and _listed_name(folder) and folder in self.folders:
            self.folders[folder].deregistered = True

    def drop(self, table: Levels) -> None:
        """A deregistered table of the V1 kind can be dropped too."""
        hidden = _listed_folder(table) if len(table) == 1 and self.listing else ""
        is_free = self.folder_of(table) is None and table not in self.namespaces
        if is_free and hidden in self.folders and not self._holder(hidden):
            del self.folders[hidden]
            return
        self.folders.pop(self._find(table), None)
        self.rows.pop(table, None)

    def rename(self, source: Levels, destination: Levels, new_folder: Callable[[], str]) -> None:
        errors = self._not_found(source) + _not_names(destination) + _too_long(destination)
        _refuse(errors + self._not_there(destination[:-1]) + self._not_free(destination))
        folder = self._find(source)
        row = self.rows.pop(source, None) or Row(folder, self.folders[folder].waiting)
        if RENAME_LEAVES_V1_FOLDERS and _listed_name(folder) is not None:
            row.folder = new_folder()
            assert _is_hashed(destination, row.folder)
            self.folders[row.folder] = self.folders.pop(folder)
        self.rows[destination] = row

    def commit(self, table: Levels, removals: frozenset[str], updates: Properties) -> Loaded:
        self.load(table)
        files = self.folders[self._find(table)]
        waiting = self._waiting(table, files)
        if files.versions == 0:
            kept = _changed(waiting, removals, updates)
        else:
            kept = {}
            metadata = _changed({**waiting, **files.metadata}, removals, updates)
            files.versions += metadata != files.metadata
            files.metadata = metadata
        if table in self.rows:
            self.rows[table].waiting = kept
        else:
            files.waiting = kept
        return self.load(table)

    # what Lance writers do to a folder without asking anybody

    def write(self, folder: str) -> None:
        self.folders.setdefault(folder, Files()).versions += 1

    def remove_folder(self, folder: str) -> None:
        self.folders.pop(folder, None)

    # rules

    def _waiting(self, table: Levels, files: Files) -> dict[str, str]:
        return self.rows[table].waiting if table in self.rows else files.waiting

    def _find(self, table: Levels) -> str:
        _refuse(self._not_found(table))
        folder = self.folder_of(table)
        assert folder is not None
        return folder

    def _holder(self, folder: str) -> bool:
        return any(row.folder == folder for row in self.rows.values())

    def _is_listed(self, folder: str) -> bool:
        name = _listed_name(folder)
        return name is not None and self.folder_of((name,)) == folder

    def _not_there(self, namespace: Levels) -> Errors:
        return [] if self.has_namespace(namespace) else [NamespaceNotFound, *_not_names(namespace)]

    def _not_found(self, table: Levels) -> Errors:
        return [] if self.folder_of(table) else self._not_there(table[:-1]) or [TableNotFound, *_not_names(table)]

    def _not_free(self, levels: Levels) -> Errors:
        """A name is unique among all objects of its namespace."""
        if self.folder_of(levels) is not None:
            return [TableAlreadyExists]
        return [NamespaceAlreadyExists] if self.has_namespace(levels) else []

    def _not_creatable(self, table: Levels) -> Errors:
        errors = _not_names(table) + _too_long(table) + self._not_there(table[:-1]) + self._not_free(table)
        hidden = self.folders.get(_listed_folder(table)) if len(table) == 1 else None
        if not self.manifest and hidden and hidden.deregistered:
            errors.append(TableAlreadyExists)
        return errors

    def _not_placeable(self, table: Levels, folder: str) -> Errors:
        if not self.manifest:
            return [] if folder == _listed_folder(table) else [InvalidInput]
        taken = self._overlaps_a_row(folder) or any(_overlap(folder, each) for each in self.folders)
        return [InvalidInput] if taken else []

    def _overlaps_a_row(self, folder: str) -> bool:
        return any(_overlap(folder, row.folder) for row in self.rows.values())

    def _assert_own_folder(self, table: Levels, folder: str) -> None:
        """In compatibility mode the V1 name, unless another table has the folder or was deregistered in it."""
        listed = _listed_folder(table)
        if len(table) == 1 and self.listing and listed not in self.folders and not self._holder(listed):
            assert folder == listed
        else:
            assert self.manifest
            assert _is_hashed(table, folder)


def _listed_folder(table: Levels) -> str:
    return f"{table[0]}.lance"


def _listed_name(folder: str) -> str | None:
    return folder.removesuffix(".lance") if folder.endswith(".lance") and "/" not in folder else None


def _is_hashed(table: Levels, folder: str) -> bool:
    return re.fullmatch("[0-9a-f]{8}_" + re.escape("$".join(table)), folder) is not None


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _is_below(levels: Levels, namespace: Levels) -> bool:
    return len(levels) > len(namespace) and levels[: len(namespace)] == namespace


def _not_names(levels: Levels) -> Errors:
    return [InvalidInput] if any(not name or "$" in name for name in levels) else []


def _too_long(table: Levels) -> Errors:
    """The id of a table becomes the name of a folder, with letters of chance before it."""
    return [InvalidInput] if len("$".join(table).encode()) > _LONGEST_TABLE_ID else []


def _changed(old: Properties, removals: frozenset[str], updates: Properties) -> dict[str, str]:
    return {key: value for key, value in {**old, **updates}.items() if key not in removals}
