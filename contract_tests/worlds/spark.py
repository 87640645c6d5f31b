"""A Spark session over a bridge, as `irc-bridge connect spark` says."""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from contract_tests.worlds.java import CannotRun, jar, java_home
from contract_tests.worlds.process import BEHIND

RUNTIME = os.environ.get("ICEBERG_SPARK_RUNTIME")
"""Another Iceberg runtime than the one that `irc-bridge connect spark` names, for older Sparks."""
ICEBERG_AWS = "org.apache.iceberg:iceberg-aws-bundle"

LEAVES_SOCKETS = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""PySpark leaves its sockets to the garbage collector."""


def settings_for(url: str, folder: Path | None = None) -> dict[str, str]:
    port = url.rsplit(":", 1)[1]
    command = [sys.executable, "-m", "irc_bridge", "connect", "spark", "--port", port, "--output", "json"]
    printed = subprocess.run(command, capture_output=True, check=True, text=True, cwd=folder).stdout
    settings: dict[str, str] = json.loads(printed)
    return settings


@contextmanager
def spark_session(settings: Mapping[str, str], on_s3: bool = False) -> Iterator[Any]:
    """CannotRun without Java or jars."""
    from pyspark.sql import SparkSession

    configuration = dict(settings)
    runtime = RUNTIME or configuration["spark.jars.packages"].split(",")[0]
    del configuration["spark.jars.packages"]
    coordinates = [runtime, f"{ICEBERG_AWS}:{runtime.rpartition(':')[2]}"][: 2 if on_s3 else 1]
    os.environ["JAVA_HOME"] = str(java_home())
    configuration["spark.jars"] = ",".join(str(jar(coordinate)) for coordinate in coordinates)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for key, value in configuration.items():
        builder = builder.config(key, value)
    with ending_java():
        session = builder.getOrCreate()
        let_others_first()
        try:
            yield session
        finally:
            session.stop()


def let_others_first() -> None:
    """By the Java of this process."""
    from pyspark import SparkContext

    context: Any = SparkContext
    for thread in psutil.Process(context._gateway.proc.pid).threads():
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread.id, BEHIND)


@contextmanager
def ending_java() -> Iterator[None]:
    """A process has one Java, whose driver has the jars of its first session: it must not outlive it."""
    from pyspark import SparkContext

    try:
        yield
    finally:
        context: Any = SparkContext
        if context._gateway is not None:
            context._gateway.shutdown()
            context._gateway.proc.stdin.close()
            context._gateway.proc.wait(60)
            context._gateway = context._jvm = None
        gc.collect()


__all__ = ["LEAVES_SOCKETS", "CannotRun", "ending_java", "let_others_first", "settings_for", "spark_session"]
