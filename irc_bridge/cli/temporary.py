"""Temporary folders of a server. A server that is killed leaves its folders; the next start removes them.

A living process has a lock on its folder, which the kernel takes away when the process dies.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import rmtree

if sys.platform != "win32":
    import fcntl

FILES, DEMO = "irc-bridge-files-", "irc-bridge-demo-"
"""How the names of these folders begin."""


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """A new folder, which is removed at the end."""
    _remove_abandoned()
    folder, lock = _locked_folder(prefix)
    try:
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)
        os.close(lock)


@contextmanager
def own_temporary_files() -> Iterator[None]:
    """Temporary files of this process and of its child processes lie in a folder of their own, if any folder of
    the machine can be written to."""
    before = os.environ.get("TMPDIR")
    with ExitStack() as stack:
        with suppress(OSError):
            _set_temporary(stack.enter_context(temporary_folder(FILES)))
        try:
            yield
        finally:
            _set_temporary(before)


def keep_parents_folder() -> None:
    """Takes a lock for a worker process on the folder of its parent: the worker may outlive the parent."""
    with suppress(OSError):
        folder = tempfile.gettempdir()
        if Path(folder).name.startswith(FILES):
            _lock(folder)


def _set_temporary(folder: str | None) -> None:
    if folder is None:
        os.environ.pop("TMPDIR", None)
    else:
        os.environ["TMPDIR"] = folder
    tempfile.tempdir = None  # tempfile reads TMPDIR again


def _locked_folder(prefix: str) -> tuple[str, int]:
    """Another process may remove a folder in the moment before it is locked."""
    while True:
        folder = tempfile.mkdtemp(prefix=prefix)
        with suppress(FileNotFoundError):
            lock = _lock(folder)
            if Path(folder).exists():
                return folder, lock
            os.close(lock)


def _lock(folder: str) -> int:
    lock = _opened(folder)
    if sys.platform != "win32":
        with suppress(OSError):  # where there are no locks, no process removes the folder of another one
            fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def _opened(folder: str | Path) -> int:
    if sys.platform == "win32":
        return os.open(os.devnull, os.O_RDONLY)
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _remove_abandoned() -> None:
    """Removes this user's folders that no process has a lock on."""
    if sys.platform == "win32":
        return
    for prefix in (FILES, DEMO):
        for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            with suppress(OSError):
                lock = _opened(folder)
                try:
                    if os.fstat(lock).st_uid == os.geteuid():
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        rmtree(folder, ignore_errors=True)
                finally:
                    os.close(lock)
