"""A folder that may not be written or read. Run as another user, because root may do everything."""

import multiprocessing
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from contract_tests.directory.opened import Directory, load, names, new_table, open_in, path_of, set_properties
from irc_bridge.errors import BridgeError

NOBODY = 65534


def load_after_create(catalog: Directory) -> None:
    catalog.create_table(("t",), new_table())
    load(catalog, ("t",))
    set_properties(catalog, ("t",), {"a": "b"})
    catalog.drop_table(("t",))


def _as_nobody(call: Callable[[Directory], object], mode: str, root: Path, answers: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # what Python imports late may lie where nobody may read
        load_after_create(open_in(mode, folder))
    if os.getuid() == 0:
        os.setuid(NOBODY)
    try:
        answer: object = call(open_in(mode, root))
    except BridgeError as error:
        answer = (type(error).__name__, error.message)
    answers.put(answer)  # type: ignore[attr-defined]


def as_nobody(call: Callable[[Directory], object], mode: str, root: Path) -> object:
    processes = multiprocessing.get_context("forkserver")
    answers = processes.Queue()
    process = processes.Process(target=_as_nobody, args=(call, mode, root, answers))
    process.start()
    answer = answers.get(timeout=20)
    process.join()
    return answer


def reads(catalog: Directory) -> object:
    info = load(catalog, ("t",))
    return names(catalog), [each.version for each in info.versions], catalog.is_current(info.token)


def creates(catalog: Directory) -> object:
    return catalog.create_table(("u",), new_table())


def commits(catalog: Directory) -> object:
    return set_properties(catalog, ("t",), {"a": "b"})


def drops(catalog: Directory) -> object:
    catalog.drop_table(("t",))
    return names(catalog)


def lists(catalog: Directory) -> object:
    return names(catalog)


def loads(catalog: Directory) -> object:
    return load(catalog, ("t",))


def _forbid_writing(root: Path) -> None:
    for path in [root, *root.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def _allow(root: Path) -> None:
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_root_that_may_only_be_read(open_root: Path, mode: str) -> None:
    catalog = open_in(mode, open_root)
    info = catalog.create_table(("t",), new_table())
    for folder, _, _ in os.walk(open_root):
        os.utime(folder, (1, 1))
    _forbid_writing(open_root)
    assert as_nobody(reads, mode, open_root) == (["t"], [1], True)
    for change in (creates, commits, drops):
        answer = as_nobody(change, mode, open_root)
        assert isinstance(answer, tuple)
        assert answer[0] == "PermissionDenied"
        assert str(open_root) in answer[1]
    _allow(open_root)
    assert path_of(load(catalog, ("t",))) == path_of(info)
    assert names(catalog) == ["t"]


def test_a_table_that_may_not_be_read_breaks_nothing_else(open_root: Path, mode: str) -> None:
    catalog = open_in(mode, open_root)
    info = catalog.create_table(("t",), new_table())
    catalog.create_table(("whole",), new_table())
    Path(path_of(info)).chmod(0)
    assert as_nobody(lists, mode, open_root) == ["t", "whole"]
    answer = as_nobody(loads, mode, open_root)
    assert isinstance(answer, tuple)
    assert answer[0] == "PermissionDenied"
    assert path_of(info) in answer[1]
    _allow(open_root)
