"""Manifests that a writer staged inside a table, to be made versions of it."""

from dataclasses import dataclass

from irc_bridge.catalog.models import TABLE_UUID
from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.manifests import Head, head_of, table_metadata_of
from irc_bridge.storage.base import FileAttributes, FileEntry, Storage
from irc_bridge.storage.layout import VERSIONS, staged_version, version_of
from irc_bridge.storage.locations import encoded

MADE = "_irc_bridge"
"""The folder of a table in which a file for each of the last versions has the name of what became it."""
_NOT_FOR_STAGED = {MADE, "_iceberg", "_transactions", "_deletions", "_indices", "_refs", "data", "tree"}
_DAY_MS = 24 * 60 * 60 * 1000
_LARGEST = 512 * 1024 * 1024
"""The bytes of a manifest. One of a million fragments has a quarter of them."""
_LOOKED_AT = 8
_NOTES_SWEPT = 64
_SWEEPS = 16
"""So often the folder is listed while the versions double: what that costs per version stays the same."""


@dataclass(frozen=True, slots=True)
class Staged:
    path: str
    content: bytes
    head: Head


def staged_path(storage: Storage, table: str, asked: str) -> str:
    """The path of a staged manifest, whichever way the writer names it."""
    if asked.startswith(f"{VERSIONS}/"):
        path: str | None = f"{table}/{asked}"
    elif "://" in asked:
        path = storage.path_of(asked)
    else:
        # Lance names it from the root of the storage system, without a slash
        scheme, _, rest = storage.location().partition("://")
        path = storage.path_of(f"{scheme}://{rest.partition('/')[0]}/{encoded(asked.lstrip('/'))}")
    if path is None or not path.startswith(f"{table}/") or {"", ".", ".."} & set(path.split("/")):
        raise InvalidInput(f"The staged manifest {asked} does not lie inside the table {storage.location(table)}")
    if _NOT_FOR_STAGED & set(path.removeprefix(f"{table}/").split("/")[:-1]):
        raise InvalidInput(
            f"The staged manifest {asked} lies among other files of the table: stage it in {VERSIONS}"
        )
    if version_of(path.rpartition("/")[2]) is not None:
        raise InvalidInput(f"The staged manifest {asked} has the name of a version, not of a staged manifest")
    return path


def read_staged(storage: Storage, path: str, version: int) -> Staged | None:
    """The staged manifest of that version, None when there is no file."""
    content = storage.read(path, largest=_LARGEST)
    if content is None:
        return None
    try:
        head = head_of(content)
    except ValueError as error:
        raise _cannot_be(storage, path, f"is not a Lance manifest: {error}") from error
    if head.version != version:
        raise _cannot_be(storage, path, f"is one of version {head.version}, not of {version}")
    if head.branch is not None:
        raise _cannot_be(storage, path, f"belongs to the branch {head.branch}")
    return Staged(path, content, head)


def require_of_table(storage: Storage, table: str, staged: Staged, newest: FileEntry | None) -> None:
    """A manifest says nothing about the table that it belongs to, but its rows lie there. Where it has none, the
    uuid that the bridge gave the table is left."""
    if staged.head.data_file is not None:
        is_own = storage.identity(f"{table}/{staged.head.data_file}") is not None
    else:
        manifest = storage.read(f"{table}/{VERSIONS}/{newest.name}") if newest else None
        uuids = [table_metadata_of(each).get(TABLE_UUID) for each in (manifest, staged.content) if each]
        is_own = len(set(uuids)) < 2 or uuids[0] is None
    if not is_own:
        raise _cannot_be(storage, staged.path, "belongs to another table")


def retire(storage: Storage, table: str, version: int, staged: str) -> None:
    """A staged manifest that became a version goes where a commit sent again is known by its name."""
    storage.retire(staged, _note(table, version, staged))
    if version % _NOTES_SWEPT == 0:
        _remove_old_notes(storage, f"{table}/{MADE}")


def was_retired(storage: Storage, table: str, version: int, staged: str) -> bool:
    return storage.identity(_note(table, version, staged)) is not None


def _cannot_be(storage: Storage, path: str, why: str) -> InvalidInput:
    return InvalidInput(f"The staged manifest {storage.location(path)} {why}")


def _note(table: str, version: int, staged: str) -> str:
    return f"{table}/{MADE}/{version}.{staged.rpartition('/')[2]}"


def _remove_old_notes(storage: Storage, folder: str) -> None:
    """Removes notes that are a day older than the latest, few enough at once that a writer does not notice."""
    names = sorted(storage.names(folder), key=lambda name: int(name.partition(".")[0]))
    found = storage.attributes(folder, [*names[: 2 * _NOTES_SWEPT], names[-1]]) if names else []
    for each in found[:-1]:
        if each.modified_ms < found[-1].modified_ms - _DAY_MS:
            storage.delete(f"{folder}/{each.name}")


def remove_abandoned(storage: Storage, folder: str, latest: int, made: FileAttributes) -> None:
    """Staged manifests of versions that others won go when they are a day older than the file just made. One of a
    later version may still win."""
    doubled_from = 1 << (latest.bit_length() - 1)
    if latest % max(1, doubled_from // _SWEEPS):
        return
    lost = [
        (version, name)
        for name in storage.names(folder)
        if (version := staged_version(name)) is not None and version <= latest
    ]
    for each in storage.attributes(folder, [name for _, name in sorted(lost)[:_LOOKED_AT]]):
        if each.modified_ms < made.modified_ms - _DAY_MS:
            storage.delete(f"{folder}/{each.name}")
