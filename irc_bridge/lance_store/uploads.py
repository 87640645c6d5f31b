"""Large new files below a table. Needs no more than pylance, so that executors can do it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any

from irc_bridge.errors import Internal
from irc_bridge.lance_store.failures import lance_errors
from irc_bridge.storage.local_trees import make_folder_of
from irc_bridge.storage.locations import LOCAL, local_path, scheme_of


@dataclass(slots=True)
class NewFile:
    path: str
    """Where to write it, on this machine."""
    size: int = 0


class NewFiles:
    """New files below one location, written one after the other."""

    def __init__(self, location: str, options: Mapping[str, str]) -> None:
        self._location = location
        self._options = options

    @contextmanager
    def make(self, path: str) -> Iterator[NewFile]:
        """It is there when the block ends, and not when the block raises."""
        if scheme_of(self._location) == LOCAL:
            file = NewFile(f"{local_path(self._location)}/{path}")
            with _written(file, self._location):
                yield file
            return
        with TemporaryDirectory(prefix="irc-bridge-") as folder:
            file = NewFile(f"{folder}/file")
            with _written(file, self._location):
                yield file
            with lance_errors(self._location):
                self._session.upload_file(file.path, path)

    @cached_property
    def _session(self) -> Any:
        from lance.file import LanceFileSession

        return LanceFileSession(self._location, storage_options=dict(self._options) or None)


def _make(path: str) -> None:
    """An empty file keeps others from removing its folder as empty."""
    while True:
        make_folder_of(path)
        with suppress(FileNotFoundError):
            open(path, "xb").close()
            return


@contextmanager
def _written(file: NewFile, location: str) -> Iterator[None]:
    try:
        _make(file.path)
        yield
        with open(file.path, "rb") as written:
            os.fsync(written.fileno())
        file.size = os.stat(file.path).st_size
    except BaseException as error:
        with suppress(OSError):
            os.unlink(file.path)
        if isinstance(error, OSError):
            raise Internal(f"Could not write below {location}: {error.strerror or error}") from error
        raise
