"""The mirror and the import on `local[2]`, Spark's start left out, beside the published connector and two plain
processes. Peers have their turn in the same rounds where they run in processes that stay."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from typing import IO, Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contract_tests.load.report import Line, at_least, left_out, rate_beside
from contract_tests.worlds.java import CACHE, CannotRun, jar, java_home
from irc_bridge.backends.directory import open_directory
from irc_bridge.catalog.ports import Catalog
from irc_bridge.pipeline.importing import Target, import_rows
from irc_bridge.pipeline.mirroring import Mirroring, Report, Versions, on_spark
from irc_bridge.pipeline.session import spark_session
from irc_bridge.pipeline.sources import read

ROWS, WIDTH, FRAGMENTS, ROUNDS = 500_000, 128, 8, 5
BUNDLE = "com.lancedb:lance-spark-bundle-3.5_2.12:0.0.14"
PYSPARK = "3.5.9"
STARTS, TOO_LONG_S = 5, 60
TABLE, WRITTEN = ("vectors",), "written.lance"


def mirrors(root: Path) -> Iterator[Line]:
    folder = root / "mirrors"
    folder.mkdir()
    table = folder / "vectors.lance"
    for number in range(FRAGMENTS):
        rows = vectors(number, ROWS // FRAGMENTS)
        # newer ones cannot be read by the Lance in the published connector
        lance.write_dataset(rows, table, mode="append", data_storage_version="2.0")
    with ExitStack() as stack:
        try:
            java_home()
        except CannotRun as reason:
            yield left_out("the mirror and the import on Spark", str(reason))
            return
        plain = [stack.enter_context(plain_copy(table, number)) for number in range(2)]
        spark = stack.enter_context(spark_session("irc-bridge bench", "local[2]", {}))
        catalog = open_directory(str(folder), manifest_enabled=False, dir_listing_enabled=True, storage_options={})
        mirroring = Mirroring(Versions(), on_spark(lambda: spark))
        reports, theirs = [], []
        for number in range(ROUNDS + 1):
            shutil.rmtree(table / "_iceberg", ignore_errors=True)
            report = mirroring.bring("vectors", catalog, TABLE)
            assert report is not None
            reports.append(report)
            theirs.append(together(plain, folder / f"plain{number}"))
        mirrored = median(report.seconds for report in reports[1:])  # the first one warms up
        yield faster("mirror / two plain processes, rows per s", mirrored, median(theirs[1:]), 0.9)
        yield from appended(table, mirroring, catalog, mirrored, reports[-1])
        try:
            found = published(table, folder)
        except CannotRun as reason:
            yield left_out("beside lance-spark 0.0.14", str(reason))
            return
        copied, written = (median(each) for each in zip(*found, strict=True))
        yield faster("mirror / lance-spark to Parquet, rows per s", mirrored, copied, 3)
        version = lance.dataset(folder / WRITTEN).data_storage_version
        for each, wanted in ((version, 2), ("stable", None)):
            rounds = [imports(spark, catalog, folder, number, each) for number in range(ROUNDS + 1)]
            what = f"import / lance-spark from Parquet, Lance files {each}, rows per s"
            yield faster(what, median(rounds[1:]), written, wanted)


def imports(spark: Any, catalog: Catalog, folder: Path, number: int, version: Any) -> float:
    """Seconds for the same rows from Parquet files, into a table of one version of Lance's files."""
    source = folder / "source"
    if not source.exists():
        source.mkdir()
        for each in range(FRAGMENTS):
            pq.write_table(vectors(each, ROWS // FRAGMENTS), source / f"{each}.parquet", compression="zstd")
    columns = [("id", pa.int64()), ("text", pa.string()), ("vector", pa.list_(pa.float32()))]
    empty = pa.schema(columns).empty_table()
    lance.write_dataset(empty, folder / f"imported{number}.lance", data_storage_version=version)
    begun = time.perf_counter()
    target = Target(catalog, (f"imported{number}",), {}, {})
    done = import_rows(read(spark, str(source), "parquet", {}), target, "append", ())
    seconds = time.perf_counter() - begun
    assert done.rows == ROWS
    shutil.rmtree(folder / f"imported{number}.lance")
    return seconds


def vectors(number: int, count: int) -> pa.Table:
    random = np.random.default_rng(number)
    values = pa.array(random.random(count * WIDTH, "f4"))
    ids = np.arange(number * count, (number + 1) * count)
    columns = [pa.array(ids), pa.array([f"row {each}" for each in ids])]
    return pa.table([*columns, pa.FixedSizeListArray.from_arrays(values, WIDTH)], ["id", "text", "vector"])


@contextmanager
def plain_copy(table: Path, number: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "contract_tests.load.plain_copy", str(table), str(number), "2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


def together(processes: list[subprocess.Popen[str]], folder: Path) -> float:
    folder.mkdir()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{folder}\n")
        process.stdin.flush()
    seconds = []
    for process in processes:
        assert process.stdout is not None
        seconds.append(float(process.stdout.readline()))
    assert sum(pq.read_metadata(each).num_rows for each in folder.iterdir()) == ROWS
    shutil.rmtree(folder)
    return max(seconds)


def appended(table: Path, mirroring: Mirroring, catalog: Catalog, whole: float, report: Report) -> Iterator[Line]:
    """One percent of the rows more."""
    lance.write_dataset(vectors(FRAGMENTS, ROWS // 100), table, mode="append")
    begun = time.perf_counter()
    more = mirroring.bring("vectors", catalog, TABLE)
    seconds = time.perf_counter() - begun
    assert more is not None and [each.outcome for each in more.versions] == ["mirrored"]
    size, before = (sum(each.bytes_written for each in one.versions) for one in (more, report))
    ratio = size / before
    what = "mirror of one appended percent, MB"
    yield Line(what, f"{size / 1e6:.1f}", f"{before / 1e6:.1f}", f"{ratio:.3f}", "<= 0.05", ratio <= 0.05)
    allowed = whole * 0.05 + 2
    yield Line("the same, s", f"{seconds:.2f}", f"{whole:.2f}", "", f"<= {allowed:.2f} s", seconds <= allowed)


def faster(what: str, seconds: float, peer: float, wanted: float | None) -> Line:
    if wanted is None:
        return rate_beside(what, ROWS / seconds, ROWS / peer)
    return at_least(what, ROWS / seconds, ROWS / peer, wanted)


def published(table: Path, folder: Path) -> list[list[float]]:
    """Seconds for Parquet from Lance and for Lance from Parquet, round by round. Where it hangs it begins anew."""
    found: list[list[float]] = []
    for _ in range(STARTS):
        with _lance_spark(table, folder) as lines:
            warm = next(lines, None)
            if warm is not None:
                found += islice(lines, ROUNDS - len(found))
        if len(found) == ROUNDS:
            return found
    raise CannotRun(f"lance-spark came to an end in {len(found)} of {ROUNDS} rounds")


@contextmanager
def _lance_spark(table: Path, folder: Path) -> Iterator[Iterator[list[float]]]:
    """A round of it after the other, until one takes too long."""
    script = Path(__file__).with_name("lance_spark.py")
    environment = {**os.environ, "JAVA_HOME": str(java_home())}
    command = [str(each) for each in (spark_3(), script, jar(BUNDLE), table, folder)]
    quiet = subprocess.DEVNULL
    quiet, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, stdout=pipe, stderr=quiet, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            yield _rounds(process.stdout)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _rounds(out: IO[str]) -> Iterator[list[float]]:
    while select.select([out], [], [], TOO_LONG_S)[0] and (line := out.readline()):
        yield json.loads(line)


def spark_3() -> Path:
    """The Python of an environment with the PySpark that the connector is for."""
    folder = CACHE / f"pyspark-{PYSPARK}"
    python = folder / "bin" / "python"
    done = folder / ".installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", f"pyspark=={PYSPARK}", "setuptools"]
        run = subprocess.run(install, capture_output=True, text=True, check=False)
        if run.returncode:
            raise CannotRun(f"{' '.join(install)} failed: {run.stderr.strip()[-200:]}")
        done.touch()
    return python
