"""Runs one change in a process of its own and kills it (kill -9) at its nth step in storage."""

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract_tests.directory.opened import Directory, open_in

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "pytest",
        "contract_tests.directory.staging",
        "irc_bridge.backends.directory.manifest_names",
        "irc_bridge.storage.local",
        "contract_tests.mirror.mirroring",
    ]
)

Change = Callable[[Directory], object]


class Steps:
    """Counts the calls that change something in the root, and dies before the one that is not allowed."""

    def __init__(self, root: Path, allowed: int) -> None:
        self._root = str(root)
        self._left = allowed

    def watch(self, owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            path = os.fspath(args[0]) if isinstance(args[0], str | os.PathLike) else None
            if path is None or path.startswith(self._root):
                self._step()
            return original(*args, **kwargs)

        setattr(owner, name, watched)

    def _step(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


def _run(change: Change, mode: str, root: Path, allowed: int) -> None:
    from irc_bridge.lance_store.rows import RowTable

    catalog = open_in(mode, root)
    steps = Steps(root, allowed)
    for name in ("makedirs", "link", "replace", "rename", "unlink", "rmdir"):
        steps.watch(os, name)
    steps.watch(shutil, "rmtree")
    for name in ("create", "commit", "update_metadata"):
        steps.watch(RowTable, name)
    change(catalog)


def finishes(change: Change, mode: str, root: Path, allowed: int) -> bool:
    """False when the process was killed on the way."""
    process = PROCESSES.Process(target=_run, args=(change, mode, root, allowed))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0
