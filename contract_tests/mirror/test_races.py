"""Several mirror runs at once, and one beside writers."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from contract_tests.mirror.mirroring import ALL, Lake, in_turn, same_rows
from contract_tests.worlds.s3 import S3
from irc_bridge.errors import BrokenTable
from irc_bridge.mirror import mirrors
from irc_bridge.mirror.pieces import Piece, Source, Writer, Written
from irc_bridge.storage.base import open_storage

RUNS = 4


def one(number: int) -> pa.Table:
    return pa.table({"id": [number]})


@pytest.fixture(params=["local", "s3"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    if request.param == "local":
        return Lake(str(tmp_path))
    server: S3 = request.getfixturevalue("s3")
    return Lake(server.bucket("races"), server.options)


def test_several_runs_at_once(lake: Lake) -> None:
    """All write files for each version, one run's count, and those of the others are gone in the end."""
    for number in range(3):
        lake.write(one(number), mode="append")
    together = threading.Barrier(RUNS)

    def written_together(source: Source, pieces: Sequence[Piece]) -> Iterator[list[Written]]:
        done = [*in_turn(source, pieces)]
        together.wait(60)
        return iter(done)

    with ThreadPoolExecutor(RUNS) as pool:
        runs = [
            *pool.map(lambda mirror: [*mirror.bring(ALL, written_together)], [lake.mirror() for _ in range(RUNS)])
        ]
    for version in (1, 2, 3):
        outcomes = sorted(each.outcome for run in runs for each in run if each.version == version)
        assert outcomes == ["another run was first"] * (RUNS - 1) + ["mirrored"]
        assert same_rows(lake.seen(version), lake.open(version).to_table())
    if not lake.options:
        used = {path for version in (1, 2, 3) for path in lake.parquet(version)}
        assert {f"data/{name}" for name in lake.files("data")} == used


def test_a_run_that_is_stopped(lake: Lake) -> None:
    """It takes along what it wrote and had not heard of yet."""
    for number in range(3):
        lake.write(one(number), mode="append")

    def stopped(source: Source, pieces: Sequence[Piece]) -> Iterator[list[Written]]:
        if lake.mirror().present():
            for piece in pieces:
                Writer(source)(piece)
            raise KeyboardInterrupt
        return in_turn(source, pieces)

    (first,) = lake.mirror().bring([1], stopped)
    kept = open_storage(lake.uri, lake.options).names("_iceberg/data")
    assert (first.files_written, len(kept)) == (1, 1)
    with pytest.raises(KeyboardInterrupt):
        list(lake.mirror().bring(ALL, stopped))
    assert open_storage(lake.uri, lake.options).names("_iceberg/data") == kept


@pytest.mark.parametrize("moment", ["before", "in between", "after"])
def test_beside_a_cleanup(lake: Lake, moment: str) -> None:
    """The versions that it removes while their files are made do not count, and their files are not left."""
    for number in range(4):
        lake.write(one(number), mode="overwrite")

    def clean_up() -> None:
        lake.open().cleanup_old_versions(timedelta(0))

    def work(source: Source, pieces: Sequence[Piece]) -> Iterator[list[Written]]:
        if moment == "before":
            clean_up()
        for number, piece in enumerate(pieces):
            if moment == "in between" and number == 2:
                clean_up()
            yield Writer(source)(piece)
        if moment == "after":
            clean_up()

    brought = {each.version: each.outcome for each in lake.mirror().bring(ALL, work)}
    assert brought == {**dict.fromkeys((1, 2, 3), "cleaned up meanwhile"), 4: "mirrored"}
    assert same_rows(lake.seen(4), lake.open().to_table())
    if not lake.options:
        assert len(lake.files("data")) == 1


def test_a_file_that_is_missing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cleanup took it: its version is still there."""
    monkeypatch.setattr(mirrors, "_CLEANUP_S", 0)
    lake.write(one(1))
    lake.write(one(2), mode="append")
    (first,) = (each.path for each in lake.open(1).get_fragments()[0].metadata.files)
    storage = open_storage(lake.mirror()._source.location, lake.options)
    storage.delete(f"data/{first}")
    with pytest.raises(BrokenTable, match="files of its version 1 are missing"):
        lake.bring()
    assert lake.mirror().present() == set()


def test_beside_a_writer(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.write(one(0))
    stop = threading.Event()

    def write() -> int:
        number = 0
        while not stop.is_set():
            number += 1
            lake.write(one(number), mode="append")
            lake.open().delete(f"id = {number - 3}")
        return number

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for _ in range(5):
                assert all(each.outcome == "mirrored" for each in lake.bring())
        finally:
            stop.set()
        assert writing.result() > 0
    lake.bring()
    last = lake.open().version
    assert lake.mirror().present() == set(range(1, last + 1))
    for version in range(1, last + 1):
        assert same_rows(lake.seen(version), lake.open(version).to_table())
