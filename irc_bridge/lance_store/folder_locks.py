"""At most one process removes, registers or makes a table in a folder at a time.

The lock is a file in the folder, made by put-if-absent, that names its owner. A lock whose owner died is taken
over: at once where the owner was a process of this machine, after ten minutes where nobody can look. The removal
of a folder deletes the lock last, and asks before each request whether the lock is still its own. A lock tells
readers nothing: whether a folder is a table, the other files in it say.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from uuid import getnode, uuid4

from irc_bridge.errors import ConcurrentModification
from irc_bridge.lance_store.table_folders import LOCK
from irc_bridge.storage.base import Storage

Purpose = Literal["remove", "register", "create"]
Owner = dict[str, object]
_ABANDONED_MS = 10 * 60 * 1000
_SETTLE_LOCAL_S, _SETTLE_REMOTE_S = 0.02, 1.0
"""Several processes may find the same dead owner: the last of them to write its name into the lock has it."""


class FolderLocked(ConcurrentModification):
    """Another process has the lock."""


class FolderLock:
    def __init__(self, storage: Storage, folder: str, purpose: Purpose) -> None:
        self._storage = storage
        self._folder = folder
        self._file = f"{folder}/{LOCK}"
        self._owner: Owner = {"id": uuid4().hex, "for": purpose, "machine": _machine(), "process": os.getpid()}
        self.left_by_dead = ""
        """What a process that died had begun to remove when it had the lock."""

    def acquire(self) -> None:
        if not (self._storage.put_if_absent(self._file, self._content) or self.is_held()):
            self._take_over()

    def begin(self, what: str) -> None:
        """Says in the lock that the removal begins. From then on nobody but a removal takes the lock over."""
        self._owner["removes"] = what
        self._storage.write(self._file, self._content)

    def is_held(self) -> bool:
        return self._storage.read(self._file) == self._content

    def release(self) -> None:
        if self.is_held():
            self._storage.delete(self._file)

    @property
    def _content(self) -> bytes:
        return json.dumps(self._owner).encode()

    def _take_over(self) -> None:
        content, modified_ms = self._storage.read(self._file), self._storage.modified_ms(self._file)
        if content is None or modified_ms is None:
            self._storage.put_if_absent(self._file, self._content)
        else:
            owner = _owner(content)
            # what a dead process began to remove is not whole any more
            if not _is_dead(owner, modified_ms) or (self._owner["for"] != "remove" and "removes" in owner):
                raise _locked(self._storage, self._folder, owner)
            self.left_by_dead = str(owner.get("removes", ""))
            self._storage.write(self._file, self._content)
        time.sleep(_SETTLE_LOCAL_S if self._storage.local else _SETTLE_REMOTE_S)
        if not self.is_held():
            raise _locked(self._storage, self._folder, _owner(self._storage.read(self._file)))


@contextmanager
def locked(storage: Storage, folder: str, purpose: Purpose) -> Iterator[FolderLock]:
    """FolderLocked while another process that may be alive has the lock."""
    lock = FolderLock(storage, folder, purpose)
    lock.acquire()
    try:
        yield lock
    finally:
        lock.release()


def is_locked(storage: Storage, folder: str) -> bool:
    """Whether a process that may be alive has the lock."""
    return _live_owner(storage, folder) is not None


def require_unlocked(storage: Storage, folder: str) -> None:
    """FolderLocked while a process that may be alive has the lock."""
    if (owner := _live_owner(storage, folder)) is not None:
        raise _locked(storage, folder, owner)


def _live_owner(storage: Storage, folder: str) -> Owner | None:
    file = f"{folder}/{LOCK}"
    content = storage.read(file)
    modified_ms = None if content is None else storage.modified_ms(file)
    owner = _owner(content)
    return None if modified_ms is None or _is_dead(owner, modified_ms) else owner


def _locked(storage: Storage, folder: str, owner: Owner) -> FolderLocked:
    done = {"register": "registered", "create": "made"}.get(str(owner.get("for")), "removed")
    location = storage.location(folder)
    return FolderLocked(f"The table at {location} is being {done} by another process: try again later")


def _owner(content: bytes | None) -> Owner:
    try:
        owner = json.loads(content or b"{}")
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def _is_dead(owner: Owner, modified_ms: int) -> bool:
    if time.time_ns() // 1_000_000 - modified_ms > _ABANDONED_MS:
        return True
    process = owner.get("process")
    return owner.get("machine") == _machine() and isinstance(process, int) and not _is_alive(process)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _machine() -> str:
    """A text that is the same for all processes whose ids this process can look up, until the machine restarts."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{started} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{getnode():x}"
