"""`irc-bridge` in a process that ends itself by kill -9 at the nth change of its storage."""

import os
import shutil
from pathlib import Path

from contract_tests.directory.crashing import Steps
from contract_tests.worlds.bridge import Server

ROOT, ALLOWED = "DYING_ROOT", "DYING_ALLOWED"


class DyingServer(Server):
    """Its root and the number of changes that it makes before it dies are said in the environment."""

    module = "contract_tests.worlds.dying"


def _watch() -> None:
    from irc_bridge.lance_store.rows import RowTable

    steps = Steps(Path(os.environ[ROOT]), int(os.environ[ALLOWED]))
    for name in ("makedirs", "link", "replace", "rename", "unlink", "rmdir"):
        steps.watch(os, name)
    steps.watch(shutil, "rmtree")
    for name in ("create", "commit", "update_metadata"):
        steps.watch(RowTable, name)


if __name__ == "__main__":
    from irc_bridge.cli.main import main

    _watch()
    main()
