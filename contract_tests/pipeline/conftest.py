import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from contract_tests.pipeline.cluster import Cluster, Environment, spark_cluster
from contract_tests.worlds.java import CannotRun, jar, java_home
from contract_tests.worlds.spark import ending_java, let_others_first
from irc_bridge.cli.engines import SPARK_PACKAGE
from irc_bridge.cli.main import cli
from irc_bridge.errors import BridgeError
from irc_bridge.pipeline.session import spark_session

Row = dict[str, Any]
Import = Callable[..., Row]


@pytest.fixture(scope="session")
def java() -> Path:
    try:
        return java_home()
    except CannotRun as reason:
        pytest.skip(f"Spark: {reason}")


@pytest.fixture(scope="session")
def environment(java: Path) -> Environment:
    """Of a process that has a Spark of its own."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("IRC_BRIDGE__", "PYSPARK_"))}
    return {**own, "JAVA_HOME": str(java)}


@pytest.fixture(scope="module")
def cluster(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(environment, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def spark(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Commands use it because it is active."""
    os.environ["JAVA_HOME"] = str(java)
    settings = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "Europe/Paris"}
    try:
        settings["spark.jars"] = str(jar(SPARK_PACKAGE))
        settings["spark.sql.catalog.lake"] = "org.apache.iceberg.spark.SparkCatalog"
        settings["spark.sql.catalog.lake.type"] = "hadoop"
        settings["spark.sql.catalog.lake.warehouse"] = str(tmp_path_factory.mktemp("lake"))
    except CannotRun:
        pass
    with ending_java(), spark_session("irc-bridge tests", "local[2]", settings) as session:
        let_others_first()
        yield session


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of the warehouse `main`, in whose parent commands run."""
    monkeypatch.chdir(tmp_path)
    for name in [each for each in os.environ if each.startswith("IRC_BRIDGE__")]:
        monkeypatch.delenv(name)
    (tmp_path / "irc-bridge.toml").write_text('warehouses.main.root = "tables"\n')
    (tmp_path / "tables").mkdir()
    return tmp_path / "tables"


class Commands:
    """`irc-bridge ARGUMENTS` in this process."""

    def __call__(self, *arguments: str | Path) -> list[Row]:
        """The rows of its report, or its error."""
        code, rows, said = self.outcome(*arguments)
        assert code == 0, said
        return rows

    def outcome(self, *arguments: str | Path) -> tuple[int, list[Row], str]:
        """Its exit code, its report and what it said besides."""
        done = CliRunner().invoke(cli, [*map(str, arguments), "--output", "json"])
        if isinstance(done.exception, BridgeError):
            raise done.exception
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, json.loads(done.stdout or "[]"), done.stderr


@pytest.fixture
def run(root: Path, spark: SparkSession) -> Commands:
    return Commands()


@pytest.fixture
def run_import(run: Commands) -> Import:
    """`irc-bridge import ARGUMENTS`, its report."""

    def run_import(*arguments: str | Path) -> Row:
        (report,) = run("import", *arguments)
        return report

    return run_import
