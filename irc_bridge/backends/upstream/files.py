"""The files of tables, for what the namespace itself does with them."""

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence, Set
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from irc_bridge.answers import Unreadable, inflated, parsed
from irc_bridge.catalog.models import Levels
from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.table_files import TableFiles
from irc_bridge.lance_store.table_folders import RESERVED
from irc_bridge.storage.base import FileEntry

_KEPT = 32
_LONGEST_NAME = 60
_METADATA = re.compile(r"metadata/[^/]*\.metadata\.json")
_MOST_READ = 100
_LARGEST_METADATA = 64 * 1024 * 1024
_GZIP = b"\x1f\x8b"
_MANIFEST = re.compile(r"_versions/[^/]+\.manifest")
_NESTED_TABLE = re.compile(r"((?!tree/|_iceberg/).+?/)(_versions/[^/]+\.manifest|metadata/[^/]+\.metadata\.json)")
_OF_ICEBERG = (".parquet", ".avro", ".orc", ".puffin", ".stats")
_LEFT_EMPTY = ("metadata", "data")
"""Folders that Iceberg servers make, and leave when they remove the files in them."""


class Files:
    """Storages stay open while tables below the same root are used with the same options."""

    def __init__(self, allowed_locations: Sequence[str] | None = ()) -> None:
        """Versions of tables may name files in the allowed locations, beside those in the table's own folder:
        anywhere with None."""
        self.allowed_locations = allowed_locations
        self._lock = threading.Lock()
        self._open: OrderedDict[Any, TableFiles] = OrderedDict()

    def of(self, location: str, options: Mapping[str, str]) -> TableFiles:
        place = one_form(location)
        root, _, name = place.rpartition("/")
        if not root or root.endswith("/") or not name:
            raise InvalidInput(f"The location {location} cannot be that of a table: it needs a folder above it")
        key = (root, frozenset(options.items()))
        with self._lock:
            opened = self._open.pop(key, None) or _open(root, options, self.allowed_locations)
            self._open[key] = opened
            while len(self._open) > _KEPT:
                self._open.popitem(last=False)
        path = opened.storage.path_of(place)
        assert path is not None, location
        return TableFiles(opened.storage, opened.tables, opened.versions, path)


def is_used(files: TableFiles, metadata_file: str | None = None) -> bool:
    """Whether files lie there, other than that one metadata file of the server behind, or the marker of
    another bridge behind, which reserves the folder of a table that it declares."""
    name = (metadata_file or "").rpartition("/")[2]
    own = {name, f".{name}.crc", RESERVED}  # Hadoop's local file system adds the second
    for folder in files.storage.names(files.path):
        inside = set(files.storage.names(f"{files.path}/{folder}")) if folder in _LEFT_EMPTY else {folder}
        if inside - own:
            return True
    return False


def files_of_table(files: TableFiles, uuid: str, metadata: Set[str | None]) -> list[FileEntry]:
    """The files that go with the table: those of a Lance table, and the server's own files about it.
    `metadata` are those that the server names; others belong to the table if they have its uuid."""
    entries = files.storage.tree(files.path)
    own = {(each or "").rpartition("/")[2] for each in metadata}
    others = [each.name for each in entries if _METADATA.match(each.name) and _file_name(each.name) not in own]
    if len(others) <= _MOST_READ:
        is_own = files.storage.at_once(lambda path: _has_uuid(files, path, uuid), others)
        own |= {_file_name(name) for name, its in zip(others, is_own, strict=True) if its}
    return _of_table(entries, own)


def _has_uuid(files: TableFiles, name: str, uuid: str) -> bool:
    content = files.storage.read(f"{files.path}/{name}") or b""
    try:
        metadata = parsed(inflated(content, "gzip" if content[:2] == _GZIP else "", _LARGEST_METADATA))
    except Unreadable:
        return False
    return isinstance(metadata, dict) and metadata.get("table-uuid") == uuid


def _of_table(entries: Sequence[FileEntry], own_metadata: Set[str]) -> list[FileEntry]:
    """Another table may lie in the same folder, because it got the name that this one had before, or below it,
    because it is in a namespace of this name."""
    names = [each.name for each in entries]
    nested = {match[1] for name in names if (match := _NESTED_TABLE.match(name))}
    is_lance = any(_MANIFEST.match(name) for name in names)
    is_shared = any(_METADATA.match(name) and _file_name(name) not in own_metadata for name in names)

    def is_own(name: str) -> bool:
        is_metadata = name.startswith("metadata/")
        if is_metadata and _file_name(name) in own_metadata:
            return True
        if not is_lance or any(name.startswith(folder) for folder in nested):
            return False
        if not is_shared or name.startswith("_iceberg/"):
            return True
        return not is_metadata and not name.endswith(_OF_ICEBERG)

    return [each for each in entries if is_own(each.name)]


def _file_name(path: str) -> str:
    """The last part of a path, without the form that Hadoop's local file system gives to the name of a
    checksum."""
    name = path.rpartition("/")[2]
    return name[1:].removesuffix(".crc") if name.startswith(".") and name.endswith(".crc") else name


def _open(root: str, options: Mapping[str, str], allowed_locations: Sequence[str] | None) -> TableFiles:
    from irc_bridge.lance_store.tables import LanceTables
    from irc_bridge.lance_store.version_files import VersionFiles
    from irc_bridge.storage.base import open_storage

    storage = open_storage(root, options, allowed_locations)
    tables = LanceTables(storage, allowed_locations)
    return TableFiles(storage, tables, VersionFiles(storage, tables), "")


def place_below(root: str, table: Levels) -> str:
    """A new location below the root, whatever characters the table's names have."""
    return below(root, "/".join(map(_folder_name, table)) + f"-{uuid4().hex[:8]}")


def _folder_name(level: str) -> str:
    return re.sub(r"[^\w .-]", "_", level).lstrip(".")[:_LONGEST_NAME].strip() or "_"


def below(root: str, path: str) -> str:
    """The location of a path below a root that a person wrote."""
    from irc_bridge.storage.locations import LOCAL, encoded, file_uri, local_path, scheme_of

    above = local_path(root) if scheme_of(root) == LOCAL else root
    inside = f"{above.rstrip('/')}/"
    return file_uri(inside + path) if scheme_of(root) == LOCAL else inside + encoded(path)


def is_local(location: str) -> bool:
    from irc_bridge.storage.locations import LOCAL, scheme_of

    return scheme_of(location) == LOCAL


def same_place(one: str, other: str) -> bool:
    """Whichever way they are written."""
    return one_form(one) == one_form(other)


def one_form(location: str) -> str:
    """The location as this project writes it. InvalidInput for a file URI with a host."""
    from irc_bridge.storage.locations import file_uri, local_path

    return file_uri(local_path(location)) if is_local(location) else location.rstrip("/")


def from_store_root(location: str) -> str:
    """As Lance names files: from the root of the storage system, without a slash, nothing encoded."""
    _, _, rest = location.partition("://")
    return unquote(rest.partition("/")[2])
