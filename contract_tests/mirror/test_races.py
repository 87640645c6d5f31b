"""Several mirror runs at once, and one beside writers."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from contract_tests.mirror.mirroring import ALL, Lake, in_turn, same_rows
from contract_tests.worlds.s3 import S3
from irc_bridge.mirror.pieces import Piece, Source, Written

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
        used = {path for version in (1, 2, 3) for path in parquet_of(lake, version)}
        assert {f"data/{name}" for name in lake.files("data")} == used


def parquet_of(lake: Lake, version: int) -> set[str]:
    manifests = lake.mirror()._read(version)
    paths = {entry.data_file.file_path for manifest in manifests for entry in manifest.entries}
    return {path.partition("_iceberg/")[2] for path in paths}


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
