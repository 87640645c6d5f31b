"""Pieces of work on executors: their results, their errors, and executors that die."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract_tests.worlds.spark import LEAVES_SOCKETS
from irc_bridge.errors import Internal, InvalidInput, ServiceUnavailable, TableNotFound
from irc_bridge.pipeline.session import spark_session
from irc_bridge.pipeline.work import grouped, run, watched

pytestmark = LEAVES_SOCKETS


def doubled(number: int) -> int:
    return 2 * number


def refused(number: int) -> int:
    if number == 3:
        raise TableNotFound("Table does not exist: 'x'\n{y}")
    return number


def broken(number: int) -> int:
    raise ValueError("no such luck")


def dies(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


class DiesOnce:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __call__(self, number: int) -> int:
        if number == 5 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number


def test_results_come_in_the_order_of_their_tasks(spark: SparkSession) -> None:
    numbers = [(each * 7919) % 100 for each in range(100)]
    assert run(spark, doubled, numbers, lambda each: each, "Doubling") == [2 * each for each in numbers]
    assert run(spark, doubled, [], lambda each: each, "Doubling") == []


def test_heavy_pieces_are_alone_and_first() -> None:
    groups = grouped([1, 50, 2, 3, 100, 4], share=6)
    assert groups[:2] == [[4], [1]]
    assert sorted(each for group in groups for each in group) == [0, 1, 2, 3, 4, 5]
    assert len(groups) == 4
    assert len(grouped([1] * 10_000, share=100)) == 100


def test_errors_are_those_of_the_executor(spark: SparkSession) -> None:
    with pytest.raises(TableNotFound) as found:
        run(spark, refused, range(10), lambda _: 1, "Trying")
    assert found.value.message == "Table does not exist: 'x'\n{y}"
    with pytest.raises(Internal, match=r"^ValueError: no such luck$"):
        run(spark, broken, [1], lambda _: 1, "Trying")
    with pytest.raises(Internal, match="finish trying: a Python worker died"):
        run(spark, dies, [1], lambda _: 1, "Trying")


def test_an_executor_that_dies_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    assert run(spark, DiesOnce(tmp_path / "died"), range(10), lambda _: 1, "Trying") == list(range(10))
    assert (tmp_path / "died").exists()


def test_other_actions(spark: SparkSession) -> None:
    assert watched(spark, spark.range(10).count, "Counting") == 10
    with pytest.raises(InvalidInput, match="nowhere"):
        watched(spark, lambda: spark.sql("SELECT * FROM nowhere"), "Counting")


def test_a_session_that_is_there_is_left_as_it_is(spark: SparkSession) -> None:
    with spark_session("other", None, {}) as same:
        assert same.sparkContext is spark.sparkContext
    with spark_session("other", None, {"spark.sql.shuffle.partitions": "7"}) as configured:
        assert configured.conf.get("spark.sql.shuffle.partitions") == "7"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.range(3).count() == 3
    with (
        pytest.raises(InvalidInput, match=r"spark\.driver\.memory"),
        spark_session("x", None, {"spark.driver.memory": "1g"}),
    ):
        pass


OPENED = "from irc_bridge.pipeline.session import spark_session\nwith spark_session('x', {master!r}, {{}}): pass"


@pytest.mark.parametrize(
    ("environment", "master", "kind", "said"),
    [
        ({"JAVA_HOME": "", "PATH": "/nowhere"}, None, InvalidInput, "apt install openjdk-17-jre-headless"),
        ({"JAVA_HOME": "/nowhere"}, None, InvalidInput, "JAVA_HOME=/nowhere holds none"),
        ({}, "spork://x", ServiceUnavailable, "Spark does not start: Master must"),
    ],
)
def test_a_session_that_cannot_be(
    java: Path, environment: dict[str, str], master: str | None, kind: type[Exception], said: str
) -> None:
    env = {**os.environ, "JAVA_HOME": str(java), **environment}
    done = subprocess.run(
        [sys.executable, "-c", OPENED.format(master=master)], env=env, capture_output=True, text=True, timeout=60
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"irc_bridge.errors.{kind.__name__}: "), done.stderr
    assert said in last


def test_without_spark_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark/__init__.py").write_text("raise ImportError('none')")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "irc_bridge", "import", "a.parquet", "main.default.t"],
        env={**os.environ, "PYTHONPATH": path, "IRC_BRIDGE__WAREHOUSES__MAIN__ROOT": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == "irc-bridge: Spark is not installed: pip install 'irc-bridge[spark]'\n"
