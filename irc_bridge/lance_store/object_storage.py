from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
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
from irc_bridge.lance_store.failures import first_line, is_panic
from irc_bridge.lance_store.locations import encoded
from irc_bridge.lance_store.storage import FileEntry

_OF_THE_CLIENT = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "proxy_url",
    "timeout",
    "user_agent",
}
_OF_LANCE_ALONE = {"client_max_retries", "client_retry_timeout", "download_retry_count"}


class ObjectStorage:
    local = False

    def __init__(self, root: str, options: Mapping[str, str]) -> None:
        self._root = root.rstrip("/")
        self.options: Mapping[str, str] = dict(options)
        self._store = _open(self._root, self.options)

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

    def read(self, path: str) -> bytes | None:
        with self._errors("read", path):
            try:
                return bytes(self._store.get(path).bytes())
            except FileNotFoundError:
                return None

    def put_if_absent(self, path: str, data: bytes) -> bool:
        with self._errors("write", path):
            try:
                self._store.put(path, data, mode="create")
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

    def write(self, path: str, data: bytes) -> None:
        with self._errors("write", path):
            self._store.put(path, data)

    def delete(self, path: str) -> None:
        with self._errors("delete", path):
            self._delete([path])

    def delete_tree(self, path: str, marker: str | None) -> None:
        with self._errors("delete", path):
            paths = [each["path"] for chunk in self._store.list(path + "/") for each in chunk]
            marked = f"{path}/{marker}"
            if marker is None or marked in paths:
                self._delete([each for each in paths if each != marked])
                self._delete([marked] if marked in paths else [])

    def folder_stamp(self, path: str) -> Hashable | None:
        listed = self._listed(path)
        files = frozenset((each["path"], _identity(each)) for each in listed["objects"])
        return files, frozenset(listed["common_prefixes"])

    def table_stamp(self, path: str) -> Hashable | None:
        return tuple(self.folder_stamp(each) for each in (path, f"{path}/_versions", f"{path}/_refs/tags"))

    def same_folder_stamp(self, path: str, stamp: Hashable) -> bool:
        return stamp is not None and stamp == self.folder_stamp(path)

    def same_table_stamp(self, path: str, stamp: Hashable) -> bool:
        return stamp is not None and stamp == self.table_stamp(path)

    def check(self) -> None:
        self._listed("")

    def _listed(self, path: str) -> Any:
        with self._errors("list", path):
            return self._store.list_with_delimiter(path + "/" if path else None)

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
        except FileNotFoundError:
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
            if "403 Forbidden" in str(error):
                # a refused listing comes as an error of no class of its own
                raise PermissionDenied(f"Not allowed to {verb} {self.location(path)}") from error
            raise ServiceUnavailable(f"Could not {verb} {self.location(path)}: {first_line(error)}") from error
        except OSError as error:
            raise Internal(f"Could not {verb} {self.location(path)}: {first_line(error)}") from error


def _open(root: str, options: Mapping[str, str]) -> Any:
    config = {key: value for key, value in options.items() if key not in _OF_THE_CLIENT | _OF_LANCE_ALONE}
    client: dict[str, Any] = {key: options[key] for key in options if key in _OF_THE_CLIENT}
    try:
        return from_url(root, config=config, client_options=client or None)  # type: ignore[call-overload]
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise InvalidInput(f"The storage options do not fit {root}: {first_line(error)}") from error


def _one_scheme(location: str) -> str:
    return "s3://" + location.removeprefix("s3a://") if location.startswith("s3a://") else location


def _identity(meta: Any) -> Hashable:
    return meta["e_tag"], meta["size"], meta["last_modified"]


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
