import asyncio
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import islice
from typing import Any
from urllib.parse import unquote

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import from_url

from irc_bridge.errors import Internal, InvalidInput, PermissionDenied, ServiceUnavailable
from irc_bridge.storage.base import FileAttributes, FileEntry, T, first_line, is_panic
from irc_bridge.storage.layout import LISTS, MIRROR, VERSIONS, newest_of
from irc_bridge.storage.local_trees import STAGED
from irc_bridge.storage.locations import encoded

_OF_THE_CLIENT = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "proxy_url",
    "timeout",
    "user_agent",
}
_STATUS = re.compile(r"status code: (\d{3})")
_FOR_GOOD = ("400", "404", "405", "411", "412")
_FEW = 4
"""So many files are looked at one by one rather than in a list of the folder."""
_AT_ONCE = 16
_WRITES = 3
_ONE_COPY = 5 * 1024**3
"""What S3 copies in one request, in bytes."""
_LONGEST_KEY = 1023
_PART = 16 * 1024**2
"""S3 takes 10,000 parts for a file."""
_OF_RETRIES = {"client_max_retries", "client_retry_timeout", "download_retry_count"}


class ObjectStorage:
    local = False

    def __init__(self, root: str, options: Mapping[str, str]) -> None:
        self._root = root.rstrip("/")
        self.options: Mapping[str, str] = dict(options)
        self.longest_path = _LONGEST_KEY - len(self._root.partition("://")[2].partition("/")[2].encode())
        self._store = _open(self._root, self.options)
        self._waiting = ThreadPoolExecutor(_AT_ONCE)

    def location(self, path: str = "") -> str:
        return f"{self._root}/{encoded(path)}" if path else self._root

    def lance_uri(self, path: str) -> str:
        return self.location(path)

    def path_of(self, location: str) -> str | None:
        prefix = _one_scheme(self._root) + "/"
        asked = _one_scheme(location)
        return unquote(asked.removeprefix(prefix)) if asked.startswith(prefix) else None

    def folders(self) -> list[str]:
        return [_name(path) for path in self._listed("")["common_prefixes"]]

    def names(self, path: str) -> list[str]:
        listed = self._listed(path)
        return [_name(each["path"]) for each in listed["objects"]] + [
            _name(each) for each in listed["common_prefixes"]
        ]

    def holds(self, path: str, wanted: Callable[[str], object]) -> bool:
        return any(wanted(name) for name in self.names(path))

    def files(self, path: str) -> list[FileEntry]:
        return [FileEntry(_name(each["path"]), _identity(each)) for each in self._listed(path)["objects"]]

    def identity(self, path: str) -> Hashable | None:
        meta = self._head(path)
        return None if meta is None else _identity(meta)

    def modified_ms(self, path: str) -> int | None:
        meta = self._head(path)
        return None if meta is None else int(meta["last_modified"].timestamp() * 1000)

    def attributes(self, path: str, names: Sequence[str]) -> list[FileAttributes]:
        if len(names) <= _FEW:
            found = [self._head(f"{path}/{name}") for name in names]
            return [_attributes(meta) for meta in found if meta is not None]
        listed = {_name(each["path"]): each for each in self._listed(path)["objects"]}
        return [_attributes(listed[name]) for name in names if name in listed]

    def read(self, path: str, largest: int | None = None) -> bytes | None:
        with self._errors("read", path):
            try:
                found = self._store.get(path)
            except FileNotFoundError:
                return None
            if largest is not None and found.meta["size"] > largest:
                size = found.meta["size"]
                raise InvalidInput(f"{self.location(path)} is too large: {size} bytes, not {largest}")
            return bytes(found.bytes())

    def require_writable(self, path: str) -> None:
        pass

    def is_link(self, path: str) -> bool:
        return False

    def put_if_absent(self, path: str, data: bytes) -> bool:
        with self._errors("write", path):
            try:
                self._store.put(path, data, mode="create")
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

    def promote(self, staged: str, final: str) -> bool:
        data = self.read(staged)
        if data is None:
            raise Internal(f"{self.location(staged)} is gone")
        # when a first answer was lost, what is there already is our own
        return self.put_if_absent(final, data) or self.read(final) == data

    def retire(self, staged: str, note: str) -> None:
        self.write(note, b"")
        self.delete(staged)

    def write(self, path: str, data: bytes) -> None:
        with self._errors("write", path):
            for _ in range(_WRITES - 1):
                # some stores say so of a write that is not conditional, while another request removes the folder
                with suppress(AlreadyExistsError):
                    self._store.put(path, data)
                    return
            self._store.put(path, data)

    def make_folder(self, path: str) -> None:
        """An object store has no folders."""

    def delete(self, path: str) -> None:
        with self._errors("delete", path):
            self._delete([path])

    def delete_tree(self, path: str, marker: str | None, before_marker: str | None = None) -> None:
        marked = f"{path}/{marker}" if marker is not None else None
        last = [f"{path}/{each}" for each in (before_marker, marker) if each is not None]
        mark = self.identity(marked) if marked is not None else None
        if marked is not None and mark is None:
            return
        with self._errors("delete", path):
            for paths in self._in_order_of_removal(path):
                paths = [each for each in paths if each not in last]
                if paths and marked is not None and self.identity(marked) != mark:
                    # another process that drops it was faster, and what is there now may be a new table
                    return
                self._delete(paths)
            for each in last:
                self._delete([each])

    def tree(self, path: str) -> list[FileEntry]:
        with self._errors("list", path):
            return [FileEntry(each["path"][len(path) + 1 :], _identity(each)) for each in self._below(path)]

    def copy_tree(self, source: str, target: str) -> None:
        with self._errors("copy", source), ThreadPoolExecutor(_AT_ONCE) as pool:
            there = {each["path"] for each in self._below(target)}

            def copy(each: Any) -> None:
                name = each["path"].removeprefix(f"{source}/")
                new = f"{target}/{name}"
                if new not in there and not name.startswith(f"{MIRROR}/"):
                    self._copy(each, new)

            list(pool.map(copy, self._below(source)))

    def folder_stamp(self, path: str) -> Hashable | None:
        listed = self._listed(path)
        files = frozenset((each["path"], _identity(each)) for each in listed["objects"])
        return files, frozenset(listed["common_prefixes"])

    def table_stamp(self, path: str) -> Hashable | None:
        folders = (path, f"{path}/{VERSIONS}", f"{path}/_refs/tags", f"{path}/{LISTS}")
        return tuple(self.at_once(self.folder_stamp, folders))

    def same_folder_stamp(self, path: str, stamp: Hashable) -> bool:
        return stamp is not None and stamp == self.folder_stamp(path)

    def same_table_stamp(self, path: str, stamp: Hashable) -> bool:
        return stamp is not None and stamp == self.table_stamp(path)

    def at_once(self, ask: Callable[[str], T], paths: Iterable[str]) -> Iterator[T]:
        left = iter(paths)
        while some := list(islice(left, _AT_ONCE)):
            yield from self._waiting.map(ask, some)

    def check(self) -> None:
        self._listed("")

    def _listed(self, path: str) -> Any:
        with self._errors("list", path):
            listed = self._store.list_with_delimiter(path + "/" if path else None)
        # a file that has the name of the folder itself stands for an empty folder
        return {**listed, "objects": [each for each in listed["objects"] if each["path"] != path]}

    def _below(self, path: str) -> Iterator[Any]:
        for chunk in self._store.list(path + "/"):
            for each in chunk:
                if not _name(each["path"]).startswith(STAGED) and not self._is_folder(each):
                    yield each

    def _is_folder(self, meta: Any) -> bool:
        """Whether what a list shows is a mark for a folder: its name ended with a slash, which is lost here."""
        return meta["size"] == 0 and self._head(meta["path"]) is None

    def _in_order_of_removal(self, path: str) -> Iterator[list[str]]:
        """First what goes without harm while the latest version is there, then that, then what it needed: whoever
        is stopped leaves a table whose latest version is whole, or none."""
        names = self.names(f"{path}/{VERSIONS}")
        newest = newest_of(names)
        older = [f"{path}/{VERSIONS}/{name}" for name in names if name != newest]
        yield [each["path"] for each in self._listed(path)["objects"]] + older
        if newest is not None:
            yield [f"{path}/{VERSIONS}/{newest}"]
        for chunk in self._store.list(path + "/"):
            yield [each["path"] for each in chunk]

    def _copy(self, meta: Any, target: str) -> None:
        # a cleanup may remove the file meanwhile
        with suppress(FileNotFoundError):
            if meta["size"] <= _ONE_COPY:
                self._store.copy(meta["path"], target)
            else:
                asyncio.run(self._copy_through(meta["path"], target))

    async def _copy_through(self, source: str, target: str) -> None:
        found = await self._store.get_async(source)
        await self._store.put_async(target, found.stream(), chunk_size=_PART, max_concurrency=2)

    def _head(self, path: str) -> Any:
        with self._errors("look at", path):
            try:
                return self._store.head(path)
            except FileNotFoundError:
                return None

    def _delete(self, paths: list[str]) -> None:
        try:
            if paths:
                self._store.delete(paths)
        except (FileNotFoundError, BaseError) as error:
            # some stores name a missing file only in the text
            if isinstance(error, BaseError) and "NoSuchKey" not in str(error):
                raise
            # of several, those after the missing one may be left
            for each in paths if len(paths) > 1 else []:
                self._delete([each])

    @contextmanager
    def _errors(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise PermissionDenied(f"Not allowed to {verb} {self.location(path)}") from error
        except BaseError as error:
            # what goes wrong in a list comes as an error of no class of its own
            status = _STATUS.search(str(error))
            if status and status[1] == "403":
                raise PermissionDenied(f"Not allowed to {verb} {self.location(path)}") from error
            kind = Internal if status and status[1] in _FOR_GOOD else ServiceUnavailable
            raise kind(f"Could not {verb} {self.location(path)}: {first_line(error)}") from error
        except OSError as error:
            raise Internal(f"Could not {verb} {self.location(path)}: {first_line(error)}") from error


def _open(root: str, options: Mapping[str, str]) -> Any:
    config: Any = {key: value for key, value in options.items() if key not in _OF_THE_CLIENT | _OF_RETRIES}
    client: Any = {key: options[key] for key in options if key in _OF_THE_CLIENT}
    try:
        return from_url(root, config=config, client_options=client or None, retry_config=_retries(options))
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise InvalidInput(f"The storage options do not fit {root}: {first_line(error)}") from error


def _retries(options: Mapping[str, str]) -> Any:
    """A client waits for the answer, so a storage that cannot be reached is given up after seconds."""
    return {
        "max_retries": int(options.get("client_max_retries", 5)),
        "retry_timeout": timedelta(seconds=float(options.get("client_retry_timeout", 15))),
    }


def _one_scheme(location: str) -> str:
    return "s3://" + location.removeprefix("s3a://") if location.startswith("s3a://") else location


def _identity(meta: Any) -> Hashable:
    return meta["e_tag"], meta["size"], meta["last_modified"]


def _attributes(meta: Any) -> FileAttributes:
    modified_ms = int(meta["last_modified"].timestamp() * 1000)
    return FileAttributes(_name(meta["path"]), meta["size"], meta["e_tag"], modified_ms)


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
