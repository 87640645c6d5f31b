"""A Spark session, as a command needs one: one that is there, or one of its own."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from irc_bridge.errors import BridgeError, InvalidInput, ServiceUnavailable
from irc_bridge.pipeline.failures import why
from irc_bridge.pipeline.shipping import ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = re.compile(r"local(?:\[(\*|\d+)\])?")
_REASON = re.compile(r'(?:Exception in thread "\w+" )?(?:[\w.]+(?:Exception|Error): )?((?<=: ).+|/.+: .+)')
_ATTEMPTS = 4
_OWN = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""spark-submit sets it for the program that it runs."""


@contextmanager
def spark_session(app_name: str, master: str | None, conf: Mapping[str, str]) -> "Iterator[SparkSession]":
    """An active session is used, with its own master, and left as it is; one that is made here ends here. Without
    a master spark-submit says it, or else it is this machine."""
    SparkSession = _spark()
    active = SparkSession.getActiveSession()
    with ExitStack() as stack:
        if active is None:
            session = stack.enter_context(_own_session(app_name, master, conf))
        else:
            session = _configured(active, conf)
        ship(session)
        yield session


@contextmanager
def session_when_needed(
    app_name: str, master: str | None, conf: Mapping[str, str]
) -> "Iterator[Callable[[], SparkSession]]":
    """Spark starts with the first call of what this gives."""
    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(spark_session(app_name, master, conf)))


def _spark() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InvalidInput("Spark is not installed: pip install 'irc-bridge[spark]'") from None
    return SparkSession


def _configured(active: Any, conf: Mapping[str, str]) -> Any:
    if not conf:
        return active
    session = active.newSession()
    for key, value in conf.items():
        try:
            session.conf.set(key, value)
        except Exception as error:
            raise InvalidInput(f"Spark is running already and does not take {key}: {why(error)}") from error
    return session


@contextmanager
def _own_session(app_name: str, master: str | None, conf: Mapping[str, str]) -> "Iterator[SparkSession]":
    submitted = _SUBMITTED in os.environ
    if not submitted:
        _require_java()
    wanted = conf.get("spark.master") if master is None else master
    if wanted is None and not submitted:
        wanted = "local[*]"
    settings = {**({} if submitted else _OWN), **conf, "spark.app.name": app_name}
    if wanted is not None:
        settings["spark.master"] = _with_retries(wanted)
        if wanted.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryFile("a+b") as log:
        quiet = not submitted and "spark.log.level" not in conf
        session = _started(settings, log if quiet else None)
        try:
            yield session
        finally:
            session.stop()


def _with_retries(master: str) -> str:
    """A Python worker that dies does not end a local run either."""
    match = _LOCAL.fullmatch(master)
    return f"local[{match[1] or 1}, {_ATTEMPTS}]" if match else master


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and not Path(home, "bin", "java").exists():
        raise InvalidInput(f"Spark needs Java 17 or 21, and JAVA_HOME={home} holds none: let it name one")
    if not home and shutil.which("java") is None:
        raise InvalidInput(
            "Spark needs Java 17 or 21: install it (on Debian and Ubuntu: apt install openjdk-17-jre-headless), "
            "or set JAVA_HOME"
        )


def _started(settings: Mapping[str, str], log: IO[bytes] | None) -> Any:
    builder = _spark().builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with _said_to(log):
            return builder.getOrCreate()
    except BridgeError:
        raise
    except Exception as error:
        raise ServiceUnavailable(f"Spark does not start: {_last_words(log) or why(error)}") from error


@contextmanager
def _said_to(log: IO[bytes] | None) -> Iterator[None]:
    """Java and what it starts inherit it: nothing of theirs mixes with what a command says."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def _last_words(log: IO[bytes] | None) -> str | None:
    if log is None:
        return None
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    told = (match[1] for line in lines if (match := _REASON.match(line)))
    return next(told, None)
