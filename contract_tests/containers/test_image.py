"""The images: what is in them, who they run as, how they end, and what they do not show."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from contract_tests.worlds.bridge import Client
from contract_tests.worlds.containers import ContainerServer, bridge_image
from contract_tests.worlds.engine import PROJECT, VERSIONS, note, run_docker
from contract_tests.worlds.stand_ins import PYTHON

MB = 1_000_000
ENVIRONMENT_MB = 460
"""What the packages of the server may take. Most of it are native libraries: lance 225 in one file, pyarrow 95,
numpy with its BLAS 45, which both need, obstore 13. Compiled Python is 27, for a start in half the time."""
SECRET = "s3cr3t-of-the-container"
SECONDS = 60
END_S = 10
PARTS = """
import os, pathlib
top = pathlib.Path("/opt/irc-bridge/lib")
site = next(top.glob("python3*/site-packages"))
def size(path):
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.lstat().st_size for file in files if file.is_file() and not file.is_symlink())
sizes = {part.name: size(part) for part in site.iterdir()}
sizes["java"] = size(pathlib.Path("/usr/lib/jvm"))
import json
print(json.dumps(sizes))
"""


def inspected(image: str) -> dict[str, Any]:
    described: dict[str, Any] = json.loads(run_docker("image", "inspect", image).stdout)[0]
    return described


def parts(image: str) -> dict[str, int]:
    """The sizes of the packages in the image, and of its Java."""
    done = run_docker("run", "--rm", "--network=none", "--entrypoint=python", image, "-c", PARTS)
    sizes: dict[str, int] = json.loads(done.stdout)
    return sizes


def note_sizes(image: str, sizes: dict[str, int]) -> None:
    largest = sorted(sizes.items(), key=lambda each: -each[1])[:8]
    shown = ", ".join(f"{name} {size / MB:.0f}" for name, size in largest)
    base = inspected(PYTHON)["Size"] / MB
    size = inspected(image)["Size"] / MB
    note(f"{image}: {size:.0f} MB, of these {base:.0f} the base; in MB {shown}")


@pytest.fixture(scope="module")
def served(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A bridge with its secrets in files."""
    folder = tmp_path_factory.mktemp("served")
    with serving(folder) as server:
        yield server


def serving(folder: Path) -> ContainerServer:
    tables, secrets = folder / "tables", folder / "secrets"
    for each in (tables, secrets):
        each.mkdir(exist_ok=True)
        each.chmod(0o777)
    (secrets / "token").write_text(f"{SECRET}\n")
    file = folder / "irc-bridge.toml"
    file.write_text(f'[server]\ntoken_file = "{secrets}/token"\n[warehouses.main]\nroot = "{tables}"\n')
    return ContainerServer(file, folders=(tables, secrets))


def test_the_server_is_small(engine: str) -> None:
    image = bridge_image("server")
    sizes = parts(image)
    note_sizes(image, sizes)
    assert sum(sizes.values()) < ENVIRONMENT_MB * MB
    assert "pyspark" not in sizes and sizes["java"] == 0
    assert not {"pip", "setuptools", "pytest"} & sizes.keys()


def test_the_jobs_have_spark_and_java(engine: str) -> None:
    image = bridge_image("jobs")
    sizes = parts(image)
    note_sizes(image, sizes)
    assert sizes["pyspark"] > 100 * MB and sizes["java"] > 50 * MB
    done = run_docker("run", "--rm", "--network=none", "--entrypoint=java", image, "-version")
    assert re.search(r'version "(17|21)', done.stderr)


@pytest.mark.parametrize("target", ["server", "jobs"])
def test_it_says_what_it_is_and_runs_as_nobody_special(engine: str, target: str) -> None:
    configuration = inspected(bridge_image(target))["Config"]
    assert configuration["User"] == "10001:10001"
    assert configuration["Entrypoint"] == ["irc-bridge"]
    labels = configuration["Labels"]
    assert {"title", "description", "licenses", "version", "revision"} <= {
        name.removeprefix("org.opencontainers.image.") for name in labels
    }
    assert labels["org.opencontainers.image.version"] == VERSIONS["IRC_BRIDGE_VERSION"]


def test_it_tells_by_itself_that_it_is_well(served: ContainerServer) -> None:
    deadline = time.monotonic() + SECONDS
    while (state := health_of(served)) == "starting":
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert state == "healthy"
    code, said = served.docker.exec_run(["irc-bridge", "health", "http://127.0.0.1:8181", "--output", "json"])
    assert (code, json.loads(said)["status"]) == (0, "up")
    code, _ = served.docker.exec_run(["irc-bridge", "health", "http://127.0.0.1:1"])
    assert code == 1


def health_of(server: ContainerServer) -> str:
    server.docker.reload()
    status: str = server.docker.attrs["State"]["Health"]["Status"]
    return status


def test_no_secret_can_be_seen_from_outside(served: ContainerServer) -> None:
    with served.client("main", SECRET) as client:
        assert client.get("namespaces").status_code == 200
    assert Client(served.url).get("namespaces").status_code == 401
    container = served.docker.id
    shown = {
        "inspect": run_docker("inspect", container).stdout,
        "processes": str(served.docker.top(ps_args="-eo pid,args")),
        "environment": served.docker.exec_run(["env"])[1].decode(),
        "log": served.text(),
        "settings": served.docker.exec_run(["irc-bridge", "config"])[1].decode(),
    }
    for where, text in shown.items():
        assert text and SECRET not in text, where
    assert "serve" in shown["processes"]
    assert "server.token" in shown["settings"] and "********" in shown["settings"]


def test_history_and_layers_hold_no_secret_and_nothing_of_this_machine(engine: str) -> None:
    history = run_docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", bridge_image("server")).stdout
    assert "pip" in history
    for word in ("token=", "password", "secret", str(Path.home()), str(PROJECT)):
        assert word not in history.lower(), word


def test_it_writes_nowhere_but_below_its_roots_and_in_tmp(served: ContainerServer) -> None:
    with served.client("main", SECRET) as client:
        client.create_table(("default",), "written")
    (changes,) = (served.docker.diff() or [],)
    changed = {each["Path"] for each in changes}
    assert not [path for path in changed if not path.startswith(("/tmp", "/etc", "/run"))], changed
    code, _ = served.docker.exec_run(["python", "-c", "open('/opt/x', 'w')"])
    assert code != 0, "the root file system is read-only"


def test_its_log_is_on_stdout(served: ContainerServer) -> None:
    with served.client("main", SECRET) as client:
        client.get("namespaces")
    served.wait_for(lambda line: "GET /v1/main/namespaces" in line)
    assert b"GET /v1/main/namespaces" in served.docker.logs(stdout=True, stderr=False)


def test_sigterm_ends_it_in_time(engine: str, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        started = time.monotonic()
        server.docker.kill(signal="SIGTERM")
        code = server.docker.wait(timeout=SECONDS)["StatusCode"]
        assert time.monotonic() - started < END_S
        assert code == 0
        assert "Traceback" not in server.text()


def test_without_a_token_it_does_not_start(engine: str) -> None:
    done = run_docker("run", "--rm", "--network=none", bridge_image("server"), "serve", "/data", check=False)
    assert done.returncode == 1
    assert "no token is set" in done.stderr
    assert "IRC_BRIDGE__SERVER__TOKEN_FILE" in done.stderr
