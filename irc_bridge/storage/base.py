"""Where the files of a directory lie. Paths are relative to its root, with `/` between the parts."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from irc_bridge.errors import InvalidInput
from irc_bridge.storage.locations import LOCAL, REMOTE, local_path, scheme_of

T = TypeVar("T")


class FileEntry(NamedTuple):
    name: str
    identity: Hashable
    """Differs between any two files that ever had the name."""


class FileAttributes(NamedTuple):
    name: str
    size: int
    e_tag: str | None
    modified_ms: int


class Storage(Protocol):
    local: bool
    """True when a probe never waits for a network."""
    options: Mapping[str, str]
    """Lance's storage options."""
    longest_path: int
    """The bytes that a path in the root may have."""

    def location(self, path: str = "") -> str:
        """The URI that clients are given."""

    def lance_uri(self, path: str) -> str:
        """The URI that Lance opens."""

    def path_of(self, location: str) -> str | None:
        """The path of a location, None when it is not below the root."""

    def folders(self) -> list[str]:
        """The folders in the root, in no order. Nothing when there is no root."""

    def names(self, path: str) -> list[str]:
        """The names in a folder, in no order. Empty when there is no such folder."""

    def holds(self, path: str, wanted: Callable[[str], object]) -> bool:
        """Whether there is a wanted name in a folder. Looks no further than the first."""

    def files(self, path: str) -> list[FileEntry]: ...

    def identity(self, path: str) -> Hashable | None:
        """The identity of one file, None when it does not exist."""

    def modified_ms(self, path: str) -> int | None: ...

    def attributes(self, path: str, names: Sequence[str]) -> list[FileAttributes]:
        """The attributes of files in a folder, in the order of `names`. Files that do not exist are left out."""

    def read(self, path: str, largest: int | None = None) -> bytes | None:
        """InvalidInput for a file with more bytes than the largest may have."""

    def require_writable(self, path: str) -> None:
        """InvalidInput for a folder behind a link that leads out of the root to where no tables may lie. Whatever
        changes a file asks this first; ask it before Lance itself writes."""

    def is_link(self, path: str) -> bool:
        """Whether the folder is a link to another place."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """False when there is one already. Readers see all of the file or none."""

    def promote(self, staged: str, final: str) -> bool:
        """Puts the content of a staged file under another name, False when a file of other content has that name.
        The staged file stays."""

    def retire(self, staged: str, note: str) -> None:
        """The staged file goes, and a file `note` is there from then on, whatever is in it. Can be repeated."""

    def write(self, path: str, data: bytes) -> None:
        """Replaces the file at once: readers see the old or the new."""

    def make_folder(self, path: str) -> None:
        """Makes a folder where files need one. An object store has none to make."""

    def delete(self, path: str) -> None: ...

    def delete_tree(self, path: str, marker: str | None, before_marker: str | None = None) -> None:
        """The folder with everything in it, provided that it holds the file `marker`, which goes last, right after
        the file `before_marker`. Who dies on the way leaves a table whose latest version is whole, or none."""

    def tree(self, path: str) -> list[FileEntry]:
        """All files below a folder, in no order, with names relative to it; without what is being written."""

    def copy_tree(self, source: str, target: str) -> None:
        """Gives the folder `target` the files of `tree(source)`, without a Parquet copy, as paths in that are
        absolute. Can be repeated after a crash: files that the target has already are left, whatever they hold.
        InvalidInput for a folder with links, which may lead anywhere."""

    def folder_stamp(self, path: str) -> Hashable | None:
        """Changes when something in the folder is added, removed or replaced; None while a change that happens
        now could go unnoticed."""

    def table_stamp(self, path: str) -> Hashable | None:
        """As `folder_stamp`, for a table's versions, tags and markers, and the lists of its Parquet copy."""

    def same_folder_stamp(self, path: str, stamp: Hashable) -> bool: ...

    def same_table_stamp(self, path: str, stamp: Hashable) -> bool: ...

    def at_once(self, ask: Callable[[str], T], paths: Iterable[str]) -> Iterator[T]:
        """The answers in order; several are waited for together where that saves time."""

    def check(self) -> None:
        """Raises when the root cannot be listed."""


def open_storage(root: str, options: Mapping[str, str], allowed_locations: Sequence[str] | None = ()) -> Storage:
    """Links may lead out of the root to the allowed locations: anywhere with None."""
    from irc_bridge.storage.local import LocalStorage

    scheme = scheme_of(root)
    if scheme == LOCAL:
        return LocalStorage(local_path(root), options, allowed_locations)
    if scheme not in REMOTE:
        raise InvalidInput(f"Unknown kind of root: {root}. Use a path, file://..., s3://..., gs://... or az://...")
    from irc_bridge.storage.object_store import ObjectStorage

    return ObjectStorage(root, options)


def is_panic(error: BaseException) -> bool:
    """Whether native code of a library panicked: such an error is no Exception."""
    return type(error).__name__ == "PanicException"


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without the place in the library's own source at its end."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0].split(", /home/")[0].split(", rust/")[0]
