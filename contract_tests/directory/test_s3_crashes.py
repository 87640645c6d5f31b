"""A process may die at any request: kill -9 before every change that it sends to the S3 server."""

import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping

import pytest

from contract_tests.directory.opened import Directory, load, names, new_table, open_in, rows, versions
from contract_tests.worlds.roots import S3Root
from contract_tests.worlds.s3 import S3
from contract_tests.worlds.s3_watch import CHANGES, watched
from irc_bridge.errors import TableNotFound

T = ("t",)
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["contract_tests.directory.opened"])

Change = Callable[[Directory], object]


def _run(change: Change, mode: str, root: str, options: Mapping[str, str]) -> None:
    change(open_in(mode, root, **options))


def finishes(change: Change, mode: str, root: S3Root, allowed: int) -> bool:
    """False when the process was killed at a request that came after so many."""
    left = itertools.count(allowed, -1)

    def watch(method: str, _: str) -> int | None:
        if method in CHANGES and next(left) <= 0:
            os.kill(process.pid or 0, signal.SIGKILL)
            return 500
        return None

    with watched(root.options["aws_endpoint"], watch) as endpoint:
        options = {**root.options, "aws_endpoint": endpoint}
        process = _PROCESSES.Process(target=_run, args=(change, mode, root.uri, options))
        process.start()
        process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0


def drop(catalog: Directory) -> None:
    catalog.drop_table(T)


def create(catalog: Directory) -> None:
    catalog.create_table(T, new_table(owner="ann"))


def roots_after_crashes(change: Change, mode: str, s3: S3, prepare: Callable[[S3Root], None]) -> list[S3Root]:
    left: list[S3Root] = []
    for allowed in range(100):
        root = S3Root(s3.bucket("crash"), s3.options)
        prepare(root)
        if finishes(change, mode, root, allowed):
            return left
        left.append(root)
    raise AssertionError("it never finished")


def assert_whole_or_nothing(root: S3Root, location: str) -> None:
    """As somebody sees it who asks no catalog."""
    try:
        table = root.open(location)
    except ValueError as error:
        assert "not found" in str(error)
    else:
        assert (table.version, table.to_table().num_rows) == (4, 3)


def test_killed_while_dropping(s3: S3, mode: str) -> None:
    locations = {}

    def prepare(root: S3Root) -> None:
        info = open_in(mode, root.uri, **root.options).create_table(T, new_table(owner="ann"))
        for number in range(3):
            root.write(info.location, rows(number), mode="append")
        locations[root.uri] = info.location

    killed = roots_after_crashes(drop, mode, s3, prepare)
    assert len(killed) >= 4
    for root in killed:
        catalog = open_in(mode, root.uri, **root.options)
        assert_whole_or_nothing(root, locations[root.uri])
        if names(catalog) == ["t"]:
            assert versions(load(catalog, T)) == [1, 2, 3, 4]
            catalog.drop_table(T)
        else:
            with pytest.raises(TableNotFound):
                load(catalog, T)
            if mode != "v2" and root.exists(f"{locations[root.uri]}/.lance-deregistered"):
                catalog.drop_table(T)
        assert names(catalog) == []
        if mode != "v2":
            # killed right before its last step it leaves its lock, which the next one to use the folder takes over
            assert set(root.files(locations[root.uri])) <= {".irc-bridge-lock"}
        assert versions(catalog.create_table(T, new_table())) == [1]


def test_killed_while_creating(s3: S3, mode: str) -> None:
    killed = roots_after_crashes(create, mode, s3, lambda root: None)
    assert len(killed) >= 2
    for root in killed:
        catalog = open_in(mode, root.uri, **root.options)
        if names(catalog) == ["t"]:
            assert load(catalog, T).properties["owner"] == "ann"
            catalog.drop_table(T)
        assert names(catalog) == []
        info = catalog.create_table(T, new_table(owner="bob"))
        root.write(info.location, rows(1), mode="append")
        assert versions(load(catalog, T)) == [1, 2]
