import errno
import os
import shutil
import stat as modes
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from uuid import uuid4

from irc_bridge.errors import Internal, InvalidInput, PermissionDenied
from irc_bridge.storage.base import FileAttributes, FileEntry, T
from irc_bridge.storage.layout import LISTS
from irc_bridge.storage.local_trees import STAGED, copy_files, files_below, make_folder_of
from irc_bridge.storage.locations import AllowedLocations, file_uri, local_path, scheme_of

TRASH = ".irc-bridge-dropped"
_ABANDONED_S = 60
_LONGEST_PATH = 4095
_SETTLED_NS = 50_000_000
"""A folder changed within this time may change again without a new time stamp."""

_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""What the operating system says of a file that is not there, or cannot be."""

_Identity = tuple[int, int, int] | None


class LocalStorage:
    local = True

    def __init__(
        self, root: str, options: Mapping[str, str], allowed_locations: Sequence[str] | None = ()
    ) -> None:
        self._root = root.rstrip("/") or "/"
        self._prefix = self._root.rstrip("/") + "/"
        self._allowed = AllowedLocations(None if allowed_locations is None else [self._root, *allowed_locations])
        self.options: Mapping[str, str] = dict(options)
        self.longest_path = _LONGEST_PATH - len(os.fsencode(self._prefix))

    def location(self, path: str = "") -> str:
        return file_uri(self._absolute(path))

    def lance_uri(self, path: str) -> str:
        return self._absolute(path)

    def path_of(self, location: str) -> str | None:
        if scheme_of(location) != "file":
            return None
        path = local_path(location)
        return path.removeprefix(self._prefix) if path.startswith(self._prefix) else None

    def folders(self) -> list[str]:
        with _errors("list", self._root), _nothing_if_absent(), os.scandir(self._root) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
        return []

    def names(self, path: str) -> list[str]:
        absolute = self._absolute(path)
        with _errors("list", absolute), _nothing_if_absent(), os.scandir(absolute) as entries:
            # the first question is answered without a look at the file
            found = [
                entry.name for entry in entries if entry.is_file(follow_symlinks=False) or _leads_to_any(entry)
            ]
            return [name for name in found if not name.startswith(STAGED)]
        return []

    def holds(self, path: str, wanted: Callable[[str], object]) -> bool:
        absolute = self._absolute(path)
        with _errors("list", absolute), _nothing_if_absent(), os.scandir(absolute) as entries:
            return any(wanted(entry.name) and _leads_to_any(entry) for entry in entries)
        return False

    def files(self, path: str) -> list[FileEntry]:
        return [
            FileEntry(name, identity)
            for name in self.names(path)
            if (identity := self.identity(f"{path}/{name}")) is not None
        ]

    def identity(self, path: str) -> Hashable | None:
        absolute = self._absolute(path)
        with _errors("look at", absolute):
            try:
                stat = os.stat(absolute)
            except OSError as error:
                if error.errno in _ABSENT:
                    return None
                raise
            is_content = modes.S_ISREG(stat.st_mode) or modes.S_ISDIR(stat.st_mode)
            return (stat.st_ino, stat.st_size, stat.st_mtime_ns) if is_content else None

    def modified_ms(self, path: str) -> int | None:
        absolute = self._absolute(path)
        with _errors("look at", absolute), _nothing_if_absent():
            return os.stat(absolute).st_mtime_ns // 1_000_000
        return None

    def attributes(self, path: str, names: Sequence[str]) -> list[FileAttributes]:
        found = []
        for name in names:
            absolute = self._absolute(f"{path}/{name}")
            with _errors("look at", absolute), _nothing_if_absent():
                stat = os.stat(absolute)
                # the form that Lance gives
                e_tag = f'"{stat.st_ino:x}-{stat.st_mtime_ns // 1000:x}-{stat.st_size:x}"'
                found.append(FileAttributes(name, stat.st_size, e_tag, stat.st_mtime_ns // 1_000_000))
        return found

    def read(self, path: str, largest: int | None = None) -> bytes | None:
        absolute = self._absolute(path)
        with _errors("read", absolute), _nothing_if_absent():
            return _content_of(absolute, largest)
        return None

    def require_writable(self, path: str) -> None:
        absolute, folder = self._absolute(path), self._root
        for part in absolute[len(self._prefix) :].split("/"):
            folder = f"{folder.rstrip('/')}/{part}"
            if os.path.islink(folder) and not self._allowed.covers(absolute):
                raise InvalidInput(
                    f"{file_uri(folder)} is a symbolic link that leads out of the root {self.location()}: nothing "
                    f"is changed there. Name the place that it leads to in allowed_locations"
                )

    def is_link(self, path: str) -> bool:
        return os.path.islink(self._absolute(path))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        absolute = self._writable(path)
        with _errors("write", absolute):
            try:
                _put(absolute, data, os.link)
            except FileExistsError:
                return False
            return True

    def promote(self, staged: str, final: str) -> bool:
        source, absolute = self._absolute(staged), self._writable(final)
        with _errors("write", absolute):
            if not os.path.islink(source):
                # it may be there already, perhaps our own after a lost answer; its folder may be missing; or the
                # staged file is another user's, who may let us read it but not link it
                with suppress(FileExistsError, FileNotFoundError, PermissionError):
                    os.link(source, absolute)
                    return True
            content = self.read(staged)
            if content is None:
                raise Internal(f"{self.location(staged)} is gone")
            return self.put_if_absent(final, content) or self.read(final) == content

    def retire(self, staged: str, note: str) -> None:
        source, absolute = self._writable(staged), self._writable(note)
        with _errors("write", absolute):
            while True:
                try:
                    os.replace(source, absolute)
                    return
                except FileNotFoundError:
                    if not os.path.exists(source):
                        return
                    make_folder_of(absolute)

    def write(self, path: str, data: bytes) -> None:
        absolute = self._writable(path)
        with _errors("write", absolute):
            _put(absolute, data, os.replace)

    def make_folder(self, path: str) -> None:
        absolute = self._absolute(path)
        with _errors("write", absolute):
            os.makedirs(absolute, exist_ok=True)

    def delete(self, path: str) -> None:
        absolute = self._writable(path)
        with _errors("delete", absolute), _nothing_if_absent():
            os.unlink(absolute)
        self._prune(os.path.dirname(absolute))

    def delete_tree(self, path: str, marker: str | None, before_marker: str | None = None) -> None:
        absolute = self._writable(path)
        with _errors("delete", absolute):
            if os.path.islink(absolute):
                os.unlink(absolute)
                return
            moved = self._moved_away(absolute)
            if moved is not None and marker is not None and not os.path.exists(f"{moved}/{marker}"):
                # made again by somebody else after another process dropped it; if yet another made it since,
                # the one in between counts as dropped
                with suppress(OSError):
                    os.rename(moved, absolute)
            self._empty_trash(moved)

    def tree(self, path: str) -> list[FileEntry]:
        absolute = self._absolute(path)
        with _errors("list", absolute):
            return [
                FileEntry(name, identity)
                for name in files_below(absolute)
                if (identity := self.identity(f"{path}/{name}")) is not None
            ]

    def copy_tree(self, source: str, target: str) -> None:
        absolute = self._absolute(source)
        with _errors("copy", absolute):
            copy_files(absolute, self._writable(target))

    def folder_stamp(self, path: str) -> Hashable | None:
        return _settled((_stat(self._absolute(path)),))

    def table_stamp(self, path: str) -> Hashable | None:
        return _settled(_stats(self._absolute(path)))

    def same_folder_stamp(self, path: str, stamp: Hashable) -> bool:
        return stamp is not None and stamp == (_stat(self._absolute(path)),)

    def same_table_stamp(self, path: str, stamp: Hashable) -> bool:
        return stamp is not None and stamp == _stats(self._absolute(path))

    def at_once(self, ask: Callable[[str], T], paths: Iterable[str]) -> Iterator[T]:
        return map(ask, paths)

    def check(self) -> None:
        with _errors("list", self._root), suppress(FileNotFoundError):  # the first change makes the root
            os.listdir(self._root)

    def _absolute(self, path: str) -> str:
        return self._prefix + path if path else self._root

    def _writable(self, path: str) -> str:
        """The absolute path of a file that is to be changed. Where it is a link, the link itself is changed."""
        folder = path.rpartition("/")[0]
        if folder:
            self.require_writable(folder)
        return self._absolute(path)

    def _prune(self, folder: str) -> None:
        """Empty folders are no tables; they go, up to the root."""
        with suppress(OSError):
            while folder.startswith(self._prefix):
                os.rmdir(folder)
                folder = os.path.dirname(folder)

    def _moved_away(self, absolute: str) -> str | None:
        """Where the folder is now, out of the way of who makes it again. None when there was none."""
        moved = f"{self._prefix}{TRASH}/{uuid4().hex}"
        while os.path.isdir(absolute):
            # another process may remove the trash, or move the folder first
            with suppress(FileNotFoundError):
                make_folder_of(moved)
                os.rename(absolute, moved)
                return moved
        return None

    def _empty_trash(self, moved: str | None) -> None:
        """Deletes the folder and those that processes left who died here."""
        trash = f"{self._prefix}{TRASH}"
        with _nothing_if_absent():
            for name in os.listdir(trash):
                folder = f"{trash}/{name}"
                with _nothing_if_absent():
                    if folder == moved or os.stat(folder).st_ctime < time.time() - _ABANDONED_S:
                        _remove_tree(folder)
            with suppress(OSError):
                os.rmdir(trash)


def _put(absolute: str, data: bytes, finish: Callable[[str, str], None]) -> None:
    staged = f"{os.path.dirname(absolute)}/{STAGED}{uuid4().hex}"
    while True:
        # another process may remove the folder meanwhile, as empty or as dropped
        with suppress(FileNotFoundError):
            make_folder_of(absolute)
            try:
                with open(staged, "xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                finish(staged, absolute)
                return
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(staged)


def _content_of(absolute: str, largest: int | None) -> bytes | None:
    """None for what is no file. A pipe that nobody writes to would be waited for."""
    try:
        descriptor = os.open(absolute, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):
            return None
        raise
    try:
        stat = os.fstat(descriptor)
        if not modes.S_ISREG(stat.st_mode):
            return None
        if largest is not None and stat.st_size > largest:
            raise InvalidInput(f"{file_uri(absolute)} is too large: {stat.st_size} bytes, not {largest}")
        content = os.read(descriptor, stat.st_size + 1)
        while len(content) < stat.st_size and (more := os.read(descriptor, stat.st_size)):
            content += more
        return content
    finally:
        os.close(descriptor)


def _leads_to_any(entry: "os.DirEntry[str]") -> bool:
    """Whether it is a file or a folder, or a link to one: no pipe, socket or device, and no link to nothing."""
    try:
        return entry.is_file() or entry.is_dir()
    except OSError:  # a link that leads to itself, or to where this process may not look
        return False


def _stat(absolute: str) -> _Identity:
    try:
        stat = os.stat(absolute)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns


def _stats(absolute: str) -> tuple[_Identity, ...]:
    folders = ("", "/_versions", "/_refs/tags", f"/{LISTS}")
    return tuple([_stat(absolute + folder) for folder in folders])


def _settled(stamp: tuple[_Identity, ...]) -> tuple[_Identity, ...] | None:
    newest = max((each[2] for each in stamp if each), default=0)
    return stamp if newest + _SETTLED_NS < time.time_ns() else None


def _remove_tree(folder: str) -> None:
    for last in (False, False, True):
        try:
            shutil.rmtree(folder)
            return
        except OSError as error:
            # who had just opened the folder under its old name may have added a file
            if last or error.errno != errno.ENOTEMPTY:
                raise


class _nothing_if_absent:
    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, OSError) and error.errno in _ABSENT


class _errors:
    """Turns errors of the operating system into errors of this project. It is a class, because a generator takes
    longer than a look at a file."""

    __slots__ = ("_absolute", "_verb")

    def __init__(self, verb: str, absolute: str) -> None:
        self._verb = verb
        self._absolute = absolute

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            what = f"{self._verb} {error.filename or self._absolute}: {error.strerror}"
            if isinstance(error, PermissionError):
                raise PermissionDenied(f"Not allowed to {what}") from error
            raise Internal(f"Could not {what}") from error
