"""Seeds 000-002 in memory: what a directory namespace must answer, written without a look at how it is built.

The seeds do not say which of several errors goes first: a refusal carries all that apply. What a catalog chooses
by itself (the random letters of a folder, a uuid) is learned from its answer.
"""

from collections.abc import Callable

from contract_tests.directory.model_rules import (
    Errors,
    Files,
    Loaded,
    Properties,
    Refused,
    Row,
    changed,
    is_below,
    is_hashed,
    listed_folder,
    listed_name,
    not_names,
    overlap,
    refuse,
    too_long,
    too_long_for_tables,
)
from irc_bridge.catalog.models import TABLE_UUID, Levels, PropertyChanges, TableInfo
from irc_bridge.errors import (
    BrokenTable,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
)

RENAME_LEAVES_V1_FOLDERS = True
"""Whether a table that is renamed moves out of a V1 folder into a V2 folder. One in a V2 folder keeps it."""


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
        refuse(self._not_there(parent))
        return sorted(each[-1] for each in self.namespaces if each[:-1] == parent)

    def properties(self, namespace: Levels) -> Properties:
        refuse(self._not_there(namespace))
        return self.namespaces[namespace] if namespace else {}

    def tables(self, namespace: Levels) -> list[str]:
        refuse(self._not_there(namespace))
        names = {each[-1] for each in self.rows if each[:-1] == namespace}
        if not namespace:
            names |= {name for name in map(listed_name, self.folders) if name and self.folder_of((name,))}
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
        files = self.folders.get(folder := listed_folder(table))
        return folder if files and not files.deregistered and not self._holder(folder) else None

    def load(self, table: Levels) -> Loaded:
        folder, files = self._find(table), self.files_of(table)
        properties = {**self._waiting(table, files), **files.metadata}
        return Loaded(folder, properties, sorted(files.versions))

    def files_of(self, table: Levels) -> Files:
        folder = self._find(table)
        if self.is_broken(table):
            raise Refused([BrokenTable])
        return self.folders[folder]

    # namespaces

    def create_namespace(self, namespace: Levels, properties: Properties) -> None:
        wrong = not_names(namespace) + too_long_for_tables(namespace)
        refuse(self._not_free(namespace) + self._not_there(namespace[:-1]) + wrong)
        self.namespaces[namespace] = dict(properties)

    def drop_namespace(self, namespace: Levels) -> None:
        held = [each for each in (*self.namespaces, *self.rows) if is_below(each, namespace)]
        root: Errors = [] if namespace else [InvalidInput]
        refuse(self._not_there(namespace) + root + ([NamespaceNotEmpty] if held else []))
        del self.namespaces[namespace]

    def update_properties(
        self, namespace: Levels, removals: frozenset[str], updates: Properties
    ) -> PropertyChanges:
        refuse(self._not_there(namespace) + ([] if namespace else [InvalidInput]))
        old = self.namespaces[namespace]
        self.namespaces[namespace] = changed(old, removals, updates)
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
        refuse(self._not_creatable(table) + (self._not_placeable(table, asked) if asked else []))
        info = answer()
        folder = folder_in(info)
        assert folder not in self.folders
        if asked is None:
            self._assert_own_folder(table, folder)
        else:
            assert folder == asked
        kept = {TABLE_UUID: info.properties[TABLE_UUID], **properties}
        files = self.folders[folder] = Files()
        if not declared:
            files.add(kept)
        if self.manifest:
            self.rows[table] = Row(folder, kept if declared else {})
        else:
            # a table that loses its versions is a declared one that is known by this
            files.waiting = kept if declared else {TABLE_UUID: kept[TABLE_UUID]}
        return self.load(table)

    def register(self, table: Levels, folder: str) -> Loaded:
        files = self.folders.get(folder)
        errors = not_names(table) + self._not_there(table[:-1]) + self._not_free(table) + too_long(table)
        is_table = files is not None and (files.versions or files.deregistered)
        if not is_table or self._overlaps_a_row(folder) or self._is_listed(folder):
            errors.append(InvalidInput)
        if not self.manifest and folder != listed_folder(table):
            errors.append(InvalidInput)
        refuse(errors)
        assert files is not None
        files.deregistered = False
        if self.manifest:
            self.rows[table] = Row(folder, files.waiting)
        return self.load(table)

    def deregister(self, table: Levels) -> None:
        """The properties in the row wait in the folder for the next to register the table."""
        folder = self._find(table)
        row = self.rows.pop(table, None)
        if row is not None and folder in self.folders:
            self.folders[folder].waiting = row.waiting
        if self.listing and listed_name(folder) and folder in self.folders:
            self.folders[folder].deregistered = True

    def drop(self, table: Levels) -> None:
        """A deregistered table of the V1 kind can be dropped too."""
        hidden = listed_folder(table) if len(table) == 1 and self.listing else ""
        is_free = self.folder_of(table) is None and table not in self.namespaces
        if is_free and hidden in self.folders and not self._holder(hidden):
            del self.folders[hidden]
            return
        self.folders.pop(self._find(table), None)
        self.rows.pop(table, None)

    def rename(self, source: Levels, destination: Levels, new_folder: Callable[[], str]) -> None:
        errors = self._not_found(source) + not_names(destination) + too_long(destination)
        refuse(errors + self._not_there(destination[:-1]) + self._not_free(destination))
        folder = self._find(source)
        row = self.rows.pop(source, None) or Row(folder, self.folders[folder].waiting)
        if RENAME_LEAVES_V1_FOLDERS and listed_name(folder) is not None:
            row.folder = new_folder()
            assert is_hashed(destination, row.folder)
            self.folders[row.folder] = self.folders.pop(folder)
            self.folders[row.folder].moved()
        self.rows[destination] = row

    def commit(self, table: Levels, removals: frozenset[str], updates: Properties) -> Loaded:
        files = self.files_of(table)
        waiting = self._waiting(table, files)
        if not files.versions:
            kept = changed(waiting, removals, updates)
        else:
            shown = {**waiting, **files.metadata}
            metadata = changed(shown, removals, updates)
            # who changes nothing makes no version, and what waits for one waits on
            kept = waiting if metadata == shown else {}
            if metadata not in (shown, files.metadata):
                files.add(metadata)
                self.made_by_row(table, files.latest)
        if table in self.rows:
            self.rows[table].waiting = kept
        else:
            files.waiting = kept
        return self.load(table)

    def made_by_row(self, table: Levels, version: int, staged: str = "") -> None:
        row = self.rows.get(table)
        if row is not None and row.made_by is not None:
            row.made_by[version] = staged

    # what Lance writers do to a folder without asking anybody

    def write(self, folder: str) -> None:
        files = self.folders.setdefault(folder, Files())
        files.add(files.metadata)

    def remove_folder(self, folder: str) -> None:
        self.folders.pop(folder, None)

    # rules

    def _waiting(self, table: Levels, files: Files) -> dict[str, str]:
        return self.rows[table].waiting if table in self.rows else files.waiting

    def _find(self, table: Levels) -> str:
        refuse(self._not_found(table))
        folder = self.folder_of(table)
        assert folder is not None
        return folder

    def _holder(self, folder: str) -> bool:
        return any(row.folder == folder for row in self.rows.values())

    def _is_listed(self, folder: str) -> bool:
        name = listed_name(folder)
        return name is not None and self.folder_of((name,)) == folder

    def _not_there(self, namespace: Levels) -> Errors:
        return [] if self.has_namespace(namespace) else [NamespaceNotFound, *not_names(namespace)]

    def _not_found(self, table: Levels) -> Errors:
        return [] if self.folder_of(table) else self._not_there(table[:-1]) or [TableNotFound, *not_names(table)]

    def _not_free(self, levels: Levels) -> Errors:
        """A name is unique among all objects of its namespace."""
        if self.folder_of(levels) is not None:
            return [TableAlreadyExists]
        return [NamespaceAlreadyExists] if self.has_namespace(levels) else []

    def _not_creatable(self, table: Levels) -> Errors:
        errors = not_names(table) + too_long(table) + self._not_there(table[:-1]) + self._not_free(table)
        hidden = self.folders.get(listed_folder(table)) if len(table) == 1 else None
        if not self.manifest and hidden and hidden.deregistered:
            errors.append(TableAlreadyExists)
        return errors

    def _not_placeable(self, table: Levels, folder: str) -> Errors:
        if not self.manifest:
            return [] if folder == listed_folder(table) else [InvalidInput]
        taken = self._overlaps_a_row(folder) or any(overlap(folder, each) for each in self.folders)
        return [InvalidInput] if taken else []

    def _overlaps_a_row(self, folder: str) -> bool:
        return any(overlap(folder, row.folder) for row in self.rows.values())

    def _assert_own_folder(self, table: Levels, folder: str) -> None:
        """In compatibility mode the V1 name, unless another table has the folder or was deregistered in it."""
        listed = listed_folder(table)
        if len(table) == 1 and self.listing and listed not in self.folders and not self._holder(listed):
            assert folder == listed
        else:
            assert self.manifest
            assert is_hashed(table, folder)
