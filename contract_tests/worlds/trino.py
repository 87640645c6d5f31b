"""Trino as a process of this machine, asked over its own protocol."""

import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import requests

from contract_tests.worlds.java import CACHE, artifact, java_home
from contract_tests.worlds.process import LAST, free_port, serving

VERSION = "476"
SERVER = f"io.trino:trino-server:{VERSION}"
PLUGINS = [
    "exchange-filesystem",
    "iceberg",
    "memory",
    "resource-group-managers",
    "session-property-managers",
    "tpch",
]
SECONDS = 120


class TrinoError(Exception):
    """What Trino says of a query that failed."""


class Trino:
    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.session.trust_env = False
        # without this capability times have three digits
        capability = {"X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME"}
        self.session.headers.update({"X-Trino-User": "tests", "X-Trino-Time-Zone": "UTC", **capability})

    def run(self, statement: str) -> tuple[list[str], list[list[Any]]]:
        """The names of the columns, and the rows as JSON has them."""
        answer = self._answer("POST", f"{self.url}/v1/statement", statement)
        columns: list[str] = []
        rows: list[list[Any]] = []
        while True:
            if "error" in answer:
                raise TrinoError(_messages(answer["error"]))
            columns = [column["name"] for column in answer.get("columns", [])] or columns
            rows += answer.get("data", [])
            if "nextUri" not in answer:
                return columns, rows
            answer = self._answer("GET", answer["nextUri"])

    def rows(self, statement: str) -> list[list[Any]]:
        return self.run(statement)[1]

    def _answer(self, method: str, url: str, statement: str = "") -> dict[str, Any]:
        response = self.session.request(method, url, data=statement.encode(), timeout=SECONDS)
        response.raise_for_status()
        answer: dict[str, Any] = response.json()
        return answer


@contextmanager
def trino_server(folder: Path, catalogs: Mapping[str, Mapping[str, str]], probe: str) -> Iterator[Trino]:
    """The server with these catalogs, its files in `folder`; `probe` is a query that reads a file. CannotRun
    without a JDK 24 or later."""
    java, home, port = java_home(24, 99) / "bin/java", _home(), free_port()
    etc = folder / "etc"
    (etc / "catalog").mkdir(parents=True)
    _write(
        etc / "config.properties",
        {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": str(port),
            "http-server.log.enabled": "false",
            "discovery.uri": f"http://127.0.0.1:{port}",
            "catalog.management": "STATIC",
            "catalog.config-dir": str(etc / "catalog"),
            "plugin.dir": str(home / "plugin"),
        },
    )
    for name, properties in catalogs.items():
        _write(etc / "catalog" / f"{name}.properties", properties)
    command = [
        *(str(java), "-Xmx2G", "--add-modules=jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED"),
        *("--sun-misc-unsafe-memory-access=allow", "-Djdk.attach.allowAttachSelf=true", "-Duser.timezone=UTC"),
        *("-XX:+UseG1GC", "-XX:ReservedCodeCacheSize=256M"),
        *(
            "-Dnode.environment=tests",
            f"-Dnode.data-dir={folder / 'data'}",
            f"-Dconfig={etc / 'config.properties'}",
        ),
        *("-cp", f"{home}/lib/*", "io.trino.server.TrinoServer"),
    ]
    url = f"http://127.0.0.1:{port}"
    with serving([*LAST, *command], f"{url}/v1/info", seconds=SECONDS):
        trino = Trino(url)
        with trino.session:
            _wait_until_ready(trino, probe)
            yield trino


def _wait_until_ready(trino: Trino, probe: str) -> None:
    """It answers before it takes queries, and takes them before it has nodes for them."""
    while True:
        try:
            trino.run(probe)
            return
        except TrinoError as error:
            if "initializing" not in str(error) and "No nodes available" not in str(error):
                raise


def _write(file: Path, properties: Mapping[str, str]) -> None:
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def _messages(error: dict[str, Any]) -> str:
    """Of the error and its causes."""
    said, cause = [error["message"]], error.get("failureInfo")
    while cause:
        said.append(cause.get("message") or "")
        cause = cause.get("cause")
    return "\n".join(said)


def _home() -> Path:
    """What tests need of the server, unpacked once."""
    home = CACHE / f"trino-{VERSION}"
    if not home.exists():
        archive = artifact(SERVER, "tar.gz")
        with tempfile.TemporaryDirectory(dir=CACHE) as work:
            _unpack(archive, Path(work))
            try:
                next(Path(work).iterdir()).rename(home)
            except OSError:
                assert home.exists()  # another process was first
        if archive.is_relative_to(CACHE):
            archive.unlink()
    return home


def _unpack(archive: Path, folder: Path) -> None:
    """Many of its files are links to files of plugins that are not needed."""
    with tarfile.open(archive) as packed:
        members = packed.getmembers()
        wanted = {member.name for member in members if _is_needed(member.name)}
        wanted |= {member.linkname for member in members if member.islnk() and member.name in wanted}
        packed.extractall(folder, [member for member in members if member.name in wanted], filter="data")
    for plugin in next(folder.iterdir()).joinpath("plugin").iterdir():
        if plugin.name not in PLUGINS:
            shutil.rmtree(plugin)


def _is_needed(name: str) -> bool:
    match PurePosixPath(name).parts:
        case (_, "lib", *_):
            return True
        case (_, "plugin", plugin, *_):
            return plugin in PLUGINS
    return False
