"""Where the files of a directory lie. Paths are relative to its root, with `/` between the parts."""

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple, Protocol

from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.locations import LOCAL, REMOTE, local_path, scheme_of


class FileEntry(NamedTuple):
    name: str
    identity: Hashable
    """Differs between any two files that ever had the name."""


class Storage(Protocol):
    local: bool
    """True when a probe never waits for a network."""
    options: Mapping[str, str]
    """Lance's storage options."""

    def location(self, path: str = "") -> str:
        """The URI that clients are given."""

    def lance_uri(self, path: str) -> str:
        """What Lance opens."""

    def path_of(self, location: str) -> str | None:
        """The path of a location, None when it is not below the root."""

    def folders(self) -> list[str]:
        """The folders in the root, in no order. Nothing when there is no root."""

    def names(self, path: str) -> list[str]:
        """What lies in a folder, in no order. Nothing when there is no such folder."""

    def holds(self, path: str, wanted: Callable[[str], object]) -> bool:
        """Whether there is a wanted name in a folder. Looks no further than the first."""

    def files(self, path: str) -> list[FileEntry]: ...

    def identity(self, path: str) -> Hashable | None:
        """That of one file, None when it does not exist."""

    def modified_ms(self, path: str) -> int | None: ...

    def read(self, path: str) -> bytes | None: ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """False when there is one already. Readers see all of the file or none."""

    def write(self, path: str, data: bytes) -> None:
        """Replaces the file at once: readers see the old or the new."""

    def delete(self, path: str) -> None: ...

    def delete_tree(self, path: str, marker: str | None) -> None:
        """The folder with everything in it, provided that it holds the file `marker`, which goes last."""

    def folder_stamp(self, path: str) -> Hashable | None:
        """Changes when something in the folder is added, removed or replaced; None while a change that happens
        now could go unnoticed."""

    def table_stamp(self, path: str) -> Hashable | None:
        """The same for a table's versions, tags and markers."""

    def same_folder_stamp(self, path: str, stamp: Hashable) -> bool: ...

    def same_table_stamp(self, path: str, stamp: Hashable) -> bool: ...

    def check(self) -> None:
        """Raises when the root cannot be listed."""


def open_storage(root: str, options: Mapping[str, str]) -> Storage:
    from irc_bridge.lance_store.local_storage import LocalStorage

    scheme = scheme_of(root)
    if scheme == LOCAL:
        return LocalStorage(local_path(root), options)
    if scheme not in REMOTE:
        raise InvalidInput(f"Unknown kind of root: {root}. Use a path, file://..., s3://..., gs://... or az://...")
    from irc_bridge.lance_store.object_storage import ObjectStorage

    return ObjectStorage(root, options)
