"""`irc-bridge import` as people start it: in a process with a Spark of its own, by spark-submit, on a cluster."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import irc_bridge
from contract_tests.pipeline.cluster import BOTH, SPARK, Cluster, Environment, without_other_packages
from contract_tests.pipeline.tables import T, at, contents, parquet, rows
from contract_tests.worlds.process import LAST

PROJECT = Path(irc_bridge.__file__).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "irc-bridge.toml").write_text('warehouses.main.root = "tables"\n')
    (tmp_path / "tables").mkdir()
    parquet(tmp_path / "source.parquet", rows(range(100)))
    return tmp_path


def started(command: list[str], folder: Path, environment: Environment) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LAST, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def command(*more: str, module: str = "irc_bridge") -> list[str]:
    return [sys.executable, "-m", module, "import", "source.parquet", T, *more]


DYING = """
import os, signal
from irc_bridge.pipeline import importing
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
importing._Committing.commit = die
from irc_bridge.cli.main import main
main()
"""


def test_killed_before_the_commit_it_leaves_nothing_to_see(folder: Path, environment: Environment) -> None:
    """What it leaves, Lance's own cleanup removes. It says nothing besides its report."""
    (folder / "dying.py").write_text(DYING)
    died = [sys.executable, "dying.py", *command("--master", "local[1]")[3:]]
    assert started(died, folder, environment).returncode == -9
    left = list((folder / "tables/t.lance").rglob("*.lance"))
    assert len(left) == 1
    assert not list((folder / "tables/t.lance").glob("_versions/*"))
    done = started(command("--master", "local[1]", "--output", "json"), folder, environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)[0]["version"] == 1
    made = at(folder / "tables")
    assert contents(made) == rows(range(100)).to_pylist()
    old = time.time() - 30 * 86400
    os.utime(left[0], (old, old))
    made.delete("id = 1")
    made.cleanup_old_versions(delete_unverified=True)
    assert not left[0].exists()
    assert made.count_rows() == 99


def test_by_spark_submit(folder: Path, environment: Environment) -> None:
    submit = [str(SPARK / "bin/spark-submit"), "--master", "local[1]", str(PROJECT / "__main__.py")]
    python = {**environment, "PYSPARK_PYTHON": sys.executable}
    done = started([*submit, *command("--output", "json")[3:]], folder, python)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["rows"] == 100
    assert contents(at(folder / "tables")) == rows(range(100)).to_pylist()


JOB = """
import os, sys, time
from irc_bridge.cli.main import cli
from irc_bridge.pipeline.session import spark_session
from irc_bridge.pipeline.work import run

def where(number):
    import irc_bridge
    time.sleep(0.2)
    return os.getcwd(), irc_bridge.__file__

with spark_session("job", sys.argv[1], {conf}) as spark:
    for each in sorted(set(run(spark, where, range(8), lambda _: 1, "Looking"))):
        print(*each)
    rows = "SELECT id, concat('n', id) AS name FROM range(0, 100, 1, 4)"
    for source, *mode in [[rows], ["SELECT 5L AS id, 'new' AS name", "--mode", "upsert", "--key", "id"]]:
        cli(["import", source, "main.default.t", "--format", "sql", *mode], standalone_mode=False)
"""


def test_on_a_cluster_of_two_workers(cluster: Cluster, folder: Path, environment: Environment) -> None:
    (folder / "job.py").write_text(JOB.format(conf=BOTH | without_other_packages(folder / "bare")))
    python = {**environment, "PYSPARK_PYTHON": sys.executable}
    done = started([sys.executable, "job.py", cluster.master], folder, python)
    assert (done.returncode, done.stderr) == (0, "")
    found = [line.split() for line in done.stdout.splitlines() if line.startswith("/")]
    assert len({worker for worker, _ in found}) == 2
    assert all("/irc_bridge-" in package and ".zip/" in package for _, package in found), found
    made = at(folder / "tables")
    assert (made.version, made.count_rows()) == (2, 100)
    assert made.to_table(filter="id = 5").to_pylist() == [{"id": 5, "name": "new"}]
    assert len(at(folder / "tables", 1).get_fragments()) == 4
