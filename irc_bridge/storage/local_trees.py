"""Whole folders of a local disk."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

from irc_bridge.errors import InvalidInput
from irc_bridge.storage.layout import MIRROR

STAGED = ".irc-bridge-staged-"
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP}


def make_folder_of(file: str) -> None:
    """Another process may remove the folder at once, as empty: then what is made in it is not found."""
    with suppress(FileExistsError):  # it was there, and gone before Python looked whether it is a folder
        os.makedirs(os.path.dirname(file), exist_ok=True)


def files_below(folder: str) -> Iterator[str]:
    """The names of all files, relative to the folder; without those that are being written. Of links to folders
    nothing is looked at."""
    for parent, _, names in os.walk(folder, onerror=_unless_gone):
        for name in names:
            if not name.startswith(STAGED):
                yield os.path.relpath(f"{parent}/{name}", folder)


def copy_files(source: str, target: str) -> None:
    """As links where the file system has them: Lance never changes a file that it has written."""
    _require_no_links(source)
    for name in files_below(source):
        if not name.startswith(f"{MIRROR}/"):
            _copy(f"{source}/{name}", f"{target}/{name}")


def _require_no_links(folder: str) -> None:
    """Symbolic ones may lead anywhere, and what lies there is not the table's."""
    for parent, folders, names in os.walk(folder, onerror=_unless_gone):
        for path in (folder, *(f"{parent}/{name}" for name in (*folders, *names))):
            if os.path.islink(path):
                raise InvalidInput(f"{path} is a symbolic link: a table with links in its folder is not copied")


def _copy(source: str, target: str) -> None:
    # a cleanup may remove the file meanwhile, and another process the folder, as empty
    while os.path.isfile(source) and not os.path.exists(target):
        with suppress(FileNotFoundError, FileExistsError):
            make_folder_of(target)
            staged = f"{os.path.dirname(target)}/{STAGED}{uuid4().hex}"
            try:
                _link(source, staged)
                _give_name(staged, target)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(staged)


def _give_name(staged: str, target: str) -> None:
    try:
        os.link(staged, target)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        os.replace(staged, target)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        with open(source, "rb") as old, open(target, "xb") as new:
            shutil.copyfileobj(old, new)
            new.flush()
            os.fsync(new.fileno())


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
