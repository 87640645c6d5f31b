"""Large new files below a table. Needs no more than pylance, so that executors can do it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from irc_bridge.errors import Internal
from irc_bridge.lance_store.failures import lance_errors
from irc_bridge.lance_store.local_trees import make_folder_of
from irc_bridge.lance_store.locations import LOCAL, local_path, scheme_of


@dataclass(slots=True)
class NewFile:
    path: str
    """Where to write it, on this machine."""
    size: int = 0


@contextmanager
def new_file(location: str, options: Mapping[str, str], path: str) -> Iterator[NewFile]:
    """It is there when the block ends, and not when the block raises."""
    if scheme_of(location) == LOCAL:
        file = NewFile(f"{local_path(location)}/{path}")
        with _written(file, location):
            yield file
        return
    with TemporaryDirectory(prefix="irc-bridge-") as folder:
        file = NewFile(f"{folder}/file")
        with _written(file, location):
            yield file
        with lance_errors(location):
            from lance.file import LanceFileSession

            LanceFileSession(location, storage_options=dict(options) or None).upload_file(file.path, path)


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
