"""`irc-bridge mirror` as people start it: killed in the middle, on a full disk, without end, on a cluster."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

import irc_bridge
from contract_tests.mirror.mirroring import Lake, same_rows
from contract_tests.pipeline.cluster import BOTH, SPARK, Cluster, Environment, without_other_packages
from contract_tests.pipeline.commands import BRIDGE, SECONDS, ended, running, until
from contract_tests.pipeline.tables import T, rows
from contract_tests.worlds.disks import small_disk

VERSIONS = 60
EVERYTHING = [T, "--versions", "all", "--output", "json"]
MIRROR = [*BRIDGE, "mirror", *EVERYTHING, "--master", "local[2]"]


def lake_in(folder: Path) -> Lake:
    (folder / "irc-bridge.toml").write_text('warehouses.main.root = "tables"\n')
    return Lake(str(folder / "tables"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table of many versions, with a fragment and a file of deletions each."""
    lake = lake_in(tmp_path)
    for number in range(VERSIONS // 2):
        lake.write(rows(range(10 * number, 10 * number + 10)), mode="append").delete(f"id = {10 * number + 3}")
    return lake


def folder_of(lake: Lake) -> Path:
    return Path(lake.root).parent


def report_of(outcome: tuple[int, str, str]) -> Any:
    """Of a run that has nothing else to say."""
    code, out, err = outcome
    assert (code, err) == (0, "")
    (report,) = json.loads(out)
    return report


def require_whole(lake: Lake, versions: int = VERSIONS) -> None:
    """Every version can be read, and no file is there that none of them needs."""
    numbers = range(1, versions + 1)
    assert lake.mirror().present() == {*numbers}
    require_readable(lake, numbers)
    used = {path for version in numbers for path in lake.parquet(version)}
    assert {f"data/{name}" for name in lake.files("data")} == used


def require_whole_at_last(lake: Lake, environment: Environment) -> None:
    """When what was left behind is old enough to be removed."""
    old = time.time() - 2 * 24 * 3600
    for name in lake.files():
        os.utime(Path(lake.uri, "_iceberg", name), (old, old))
    assert ended(folder_of(lake), [*BRIDGE, "expire", T], environment)[0] == 0
    require_whole(lake)


def require_readable(lake: Lake, versions: Iterable[int]) -> None:
    for version in versions:
        assert same_rows(lake.seen(version), lake.open(version).to_table()), version


@pytest.mark.parametrize("folder", ["data", "versions"])
def test_the_driver_is_killed(lake: Lake, environment: Environment, folder: str) -> None:
    """After the first data file, and after the first version that counts."""
    with running(folder_of(lake), MIRROR, environment) as process:
        until(lambda: lake.files(folder), process)
        others = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        psutil.wait_procs(others, SECONDS)
    begun = lake.mirror().present()
    assert len(begun) < VERSIONS
    require_readable(lake, begun)
    assert report_of(ended(folder_of(lake), MIRROR, environment))["versions"] == VERSIONS - len(begun)
    require_whole_at_last(lake, environment)


def test_two_runs_at_once(lake: Lake, environment: Environment) -> None:
    with (
        running(folder_of(lake), MIRROR, environment) as one,
        running(folder_of(lake), MIRROR, environment) as other,
    ):
        said = [each.communicate(timeout=SECONDS) for each in (one, other)]
    reports = [report_of((each.returncode, *out)) for each, out in zip((one, other), said, strict=True)]
    assert sum(report["versions"] for report in reports) == VERSIONS
    require_whole(lake)


def test_executors_are_killed(lake: Lake, environment: Environment) -> None:
    """Their work is done again."""
    with running(folder_of(lake), MIRROR, environment) as process:
        until(lambda: lake.files("data"), process)
        workers = [each for each in psutil.Process(process.pid).children(recursive=True) if is_worker(each)]
        assert workers
        for each in workers:
            each.kill()
        out, err = process.communicate(timeout=SECONDS)
    assert report_of((process.returncode, out, err))["versions"] == VERSIONS
    require_readable(lake, range(1, VERSIONS + 1))


def is_worker(process: psutil.Process) -> bool:
    """A Python that does an executor's work: the children of the one that Spark starts."""
    try:
        parent = process.parent()
        return parent is not None and all("pyspark.daemon" in each.cmdline() for each in (process, parent))
    except psutil.NoSuchProcess:
        return False


def test_stopped_with_ctrl_c(lake: Lake, environment: Environment) -> None:
    with running(folder_of(lake), MIRROR, environment) as process:
        until(lambda: lake.files("data"), process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err.strip()) == (1, "Aborted!")
    require_readable(lake, lake.mirror().present())
    ended(folder_of(lake), MIRROR, environment)
    require_whole_at_last(lake, environment)


def test_a_full_disk(environment: Environment) -> None:
    with small_disk(megabytes=4) as disk:
        lake = lake_in(disk)
        for number in range(8):
            lake.write(rows(range(10 * number, 10 * number + 10)), mode="append")
        lake.bring([1])
        filler = disk / "filler"
        with pytest.raises(OSError, match="No space left"):
            filler.write_bytes(b"x" * 8_000_000)
        code, out, err = ended(folder_of(lake), MIRROR, environment)
        assert (code, json.loads(out), err.count("\n")) == (1, [], 1)
        assert err.startswith(f"irc-bridge: {T}: Could not write below file://{lake.uri}: ")
        assert "No space left on device" in err
        assert (lake.mirror().present(), len(lake.files("data"))) == ({1}, 1)
        require_readable(lake, [1])
        filler.unlink()
        assert report_of(ended(folder_of(lake), MIRROR, environment))["versions"] == 7
        require_whole(lake, 8)


def test_without_end(lake: Lake, environment: Environment) -> None:
    """New versions are seen, also after the storage was away for a while."""
    with running(folder_of(lake), [*MIRROR, "--follow", "--every", "0.1"], environment) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert next(lines) == "Looking for new versions every 0.1 seconds. Stop with Ctrl-C.\n"
        assert next_report(process)["versions"] == VERSIONS
        lake.write(rows([1000]), mode="append")
        assert next_report(process)["mirrored"] == VERSIONS + 1
        away = Path(lake.root).with_name("away")
        Path(lake.root).rename(away)
        assert next(lines) == f"irc-bridge: {T}: Table does not exist: t. Trying again.\n"
        away.rename(lake.root)
        lake.open().delete("id = 1000")
        assert next_report(process)["mirrored"] == VERSIONS + 2
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err.strip()) == (1, "", "Aborted!")
    require_whole(lake, VERSIONS + 2)


def next_report(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    text = ""
    while not text.endswith("]\n"):
        text += (line := process.stdout.readline())
        assert line, text
    (report,) = json.loads(text)
    return report


def is_removed(folder: str) -> bool:
    """Removes the folder. The run may write its log into it at the same moment."""
    shutil.rmtree(folder, ignore_errors=True)
    return not Path(folder).exists()


def test_all_tables_without_end(lake: Lake, environment: Environment) -> None:
    """One is new, and dropped and made again."""
    everything = [*BRIDGE, "mirror", "--all", "--follow", "--every", "0.1", "--master", "local[1]"]
    with running(folder_of(lake), everything, environment) as process:
        until(lambda: VERSIONS in lake.mirror().present(), process)
        new = Lake(lake.root, name="new")
        new.write(rows([1]))
        until(lambda: new.mirror().present() == {1}, process)
        until(lambda: is_removed(new.uri), process)
        lake.write(rows([1000]), mode="append")
        until(lambda: VERSIONS + 1 in lake.mirror().present(), process)
        new.write(rows([2]))
        until(lambda: new.mirror().present() == {1}, process)
        assert new.seen(1)["id"].to_pylist() == [2]
        process.terminate()
        process.communicate(timeout=SECONDS)
    assert process.returncode == 1


def test_by_spark_submit(lake: Lake, environment: Environment) -> None:
    script = str(Path(irc_bridge.__file__).parent / "__main__.py")
    submit = [str(SPARK / "bin/spark-submit"), "--master", "local[2]", script, "mirror", *EVERYTHING]
    code, out, err = ended(folder_of(lake), submit, {**environment, "PYSPARK_PYTHON": sys.executable})
    assert code == 0, err
    assert json.loads(out)[0]["versions"] == VERSIONS
    require_whole(lake)


def with_settings(settings: Mapping[str, str]) -> list[str]:
    return [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]


def test_on_a_cluster_of_two_workers(cluster: Cluster, lake: Lake, environment: Environment) -> None:
    """One of its executors is killed on the way."""
    there = ["--master", cluster.master, *with_settings(BOTH)]
    python = {**environment, "PYSPARK_PYTHON": sys.executable}
    bare = with_settings(without_other_packages(folder_of(lake) / "bare"))
    with running(folder_of(lake), [*BRIDGE, "mirror", *EVERYTHING, *there, *bare], python) as process:
        until(lambda: lake.files("data"), process)
        executors = cluster.executors()
        assert len(executors) == 2, [each.cmdline() for each in executors]
        executors[0].kill()
        out, err = process.communicate(timeout=SECONDS)
    assert report_of((process.returncode, out, err))["versions"] == VERSIONS
    require_readable(lake, range(1, VERSIONS + 1))
    code, _, err = ended(folder_of(lake), [*BRIDGE, "verify", T, *there], python)
    assert (code, err) == (0, "1 table compared: no difference.\n")
