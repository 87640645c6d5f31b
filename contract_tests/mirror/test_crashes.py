"""kill -9 at every step in storage of a mirror run: what engines see is whole, and the next run completes it."""

import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contract_tests.directory.crashing import PROCESSES, Steps
from contract_tests.mirror.mirroring import Lake, same_rows
from contract_tests.mirror.test_expiry import DAY, expired, now_of


def _run(root: str, what: str, allowed: int) -> None:
    lake = Lake(root)
    steps = Steps(Path(root), allowed)
    for name in ("link", "replace", "unlink"):
        steps.watch(os, name)
    steps.watch(pq, "ParquetWriter")
    if what == "mirror":
        lake.bring()
    else:
        expired(lake, 0, now_of(lake))


def finishes(root: Path, what: str, allowed: int) -> bool:
    process = PROCESSES.Process(target=_run, args=(str(root), what, allowed))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0


def in_each_state(root: Path, what: str, prepare: Callable[[Lake], object]) -> Iterator[Lake]:
    """What a run leaves that dies before its first step, its second and so on, and of one that ends."""
    before = root / "before"
    lake = Lake(str(root / "lake"))
    Path(lake.root).mkdir()
    prepare(lake)
    shutil.copytree(lake.root, before)
    for allowed in itertools.count():
        shutil.rmtree(lake.root)
        shutil.copytree(before, lake.root)
        finished = finishes(Path(lake.root), what, allowed)
        yield lake
        if finished:
            assert allowed > 8
            return


def three_to_go(lake: Lake) -> None:
    """One version is mirrored; then come an append, a deletion, an overwritten table."""
    lake.write(pa.table({"id": [1, 2, 3]}))
    lake.bring()
    lake.write(pa.table({"id": [4]}), mode="append")
    lake.open().delete("id = 2")
    lake.write(pa.table({"id": [9]}), mode="overwrite")


def overwritten(lake: Lake) -> None:
    three_to_go(lake)
    lake.bring()
    lake.open().cleanup_old_versions(timedelta(0))


def emptied(lake: Lake) -> None:
    three_to_go(lake)
    lake.open().delete("true")
    lake.bring()
    lake.open().cleanup_old_versions(timedelta(0))


def require_whole(lake: Lake) -> set[int]:
    present = lake.mirror().present()
    for version in present:
        assert same_rows(lake.seen(version), lake.open(version).to_table())
    return present


def test_killed_while_mirroring(tmp_path: Path) -> None:
    reached = set()
    for lake in in_each_state(tmp_path, "mirror", three_to_go):
        reached.add(len(require_whole(lake)))
        lake.bring()
        assert require_whole(lake) == {1, 2, 3, 4}
        expired(lake, 0, now_of(lake) + 2 * DAY)
        assert require_whole(lake) == {1, 2, 3, 4}
        assert len(lake.files("data")) == 4
    assert reached == {1, 2, 3, 4}


@pytest.mark.parametrize(("prepare", "versions", "files"), [(overwritten, 4, 1), (emptied, 5, 0)])
def test_killed_while_expiring(
    tmp_path: Path, prepare: Callable[[Lake], object], versions: int, files: int
) -> None:
    reached = set()
    for lake in in_each_state(tmp_path, "expire", prepare):
        left = {lake.open().version}
        assert require_whole(lake) == left
        reached.add(len(lake.files("versions")))
        expired(lake, 0, now_of(lake) + 2 * DAY)
        assert require_whole(lake) == left
        assert (len(lake.files("versions")), len(lake.files("data"))) == (1, files)
    assert {1, versions} <= reached
