"""A Spark cluster on this machine: a master and two workers, whose Python finds this package nowhere but in what
the driver sends."""

import json
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyspark

from contract_tests.worlds.process import LAST, free_port, serving

Environment = Mapping[str, str]
SPARK = Path(pyspark.__file__).parent
BOTH: dict[str, str] = {
    "spark.cores.max": "2",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
}
"""Settings with which a job begins when it has both workers."""
_OTHERS = """
import sys
from importlib.abc import MetaPathFinder


class Missing(MetaPathFinder):
    names = {"click", "httptools", "obstore", "pandas", "pydantic", "pyiceberg", "requests", "rich", "starlette"}

    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"an executor need not have {name}")


sys.meta_path.insert(0, Missing())
"""
_DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True)
class Cluster:
    master: str
    workers: tuple[psutil.Process, ...]

    def executors(self) -> list[psutil.Process]:
        """A worker starts other programs too."""
        return [each for worker in self.workers for each in worker.children() if _is_executor(each)]


def without_other_packages(folder: Path) -> dict[str, str]:
    """Settings with which executors have pylance and pyarrow and nothing else of what this package needs."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_OTHERS)
    return {"spark.executorEnv.PYTHONPATH": str(folder)}


@contextmanager
def spark_cluster(environment: Environment, folder: Path) -> Iterator[Cluster]:
    bare = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    bare |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    port, page, *pages = (free_port() for _ in range(4))
    spark, master = str(SPARK / "bin/spark-class"), f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        begun = [*LAST, spark, f"{_DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", str(port)]
        stack.enter_context(serving([*begun, "--webui-port", str(page)], f"http://127.0.0.1:{page}/json/", bare))
        workers = []
        for number, each in enumerate(pages):
            room = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / str(number))]
            begun = [*LAST, spark, f"{_DEPLOY}.worker.Worker", master, "--host", "127.0.0.1", *room]
            ready = f"http://127.0.0.1:{each}/json/"
            process = stack.enter_context(serving([*begun, "--webui-port", str(each)], ready, bare))
            workers.append(psutil.Process(process.pid))
        _wait(lambda: _state(page)["aliveworkers"] == 2)
        yield Cluster(master, tuple(workers))


def _is_executor(process: psutil.Process) -> bool:
    try:
        return "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def _state(page: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=10) as answer:
        state: dict[str, Any] = json.load(answer)
    return state


def _wait(true: Any) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "the workers did not find their master"
        time.sleep(0.1)
