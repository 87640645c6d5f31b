import json
import subprocess
from pathlib import Path

import pytest

from contract_tests.cli.conftest import Run
from irc_bridge import __version__

TWO = '[warehouses.one]\nroot = "a"\n[warehouses.two]\nroot = "b"\n'


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """One line on stderr, exit code 1."""
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("irc-bridge: ")
    return done.stderr


def test_version_and_help(run: Run) -> None:
    assert run("--version").stdout.split()[-1] == __version__
    assert {"serve", "demo", "connect", "config"} <= set(run("--help").stdout.split())
    assert "--insecure" in run("serve", "--help").stdout


def test_config_shows_values_and_sources(run: Run, tmp_path: Path) -> None:
    (tmp_path / "irc-bridge.toml").write_text(
        'server.token = "0123456789"\nwarehouses.main.root = "[red]tables"\n'
    )
    lines = run("config", IRC_BRIDGE__SERVER__PORT="8282").stdout.splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["KEY", "VALUE", "SOURCE"],
        ["server.host", "127.0.0.1", "default"],
        ["server.port", "8282", "environment", "IRC_BRIDGE__SERVER__PORT"],
        ["server.token", "********", "irc-bridge.toml"],
    ]
    assert ["warehouses.main.root", "[red]tables", "irc-bridge.toml"] in [line.split() for line in lines]


def test_config_as_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('warehouses.main.root = "tables"\n')
    rows = json.loads(run("config", "--config", "other.toml", "--output", "json").stdout)
    assert {"key": "warehouses.main.root", "value": "tables", "source": "other.toml"} in rows
    assert {"key": "server.port", "value": 8181, "source": "default"} in rows
    assert {"key": "server.token", "value": None, "source": "default"} in rows


@pytest.mark.parametrize("command", [["config"], ["connect", "spark"], ["serve"]])
def test_an_unknown_setting_is_one_line_and_exit_code_1(run: Run, command: list[str]) -> None:
    assert "did you mean server.port?" in refused(run(*command, IRC_BRIDGE__SERVER__PROT="1"))


@pytest.mark.parametrize("command", [["config"], ["connect", "spark"], ["serve"]])
def test_a_named_file_that_is_missing_is_refused(run: Run, command: list[str]) -> None:
    assert "gone.toml does not exist" in refused(run(*command, "--config", "gone.toml"))


@pytest.mark.parametrize(
    "arguments", [["connect", "excel"], ["serve", "--port", "x"], ["serve", "a", "b"], ["sing"]]
)
def test_wrong_usage_is_exit_code_2(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Usage:" in done.stderr


def test_connect_takes_the_running_settings(run: Run) -> None:
    environment = {"IRC_BRIDGE__SERVER__HOST": "0.0.0.0", "IRC_BRIDGE__SERVER__PORT": "8282"}
    values = json.loads(run("connect", "pyiceberg", "--output", "json", **environment).stdout)
    assert values == {"type": "rest", "uri": "http://127.0.0.1:8282", "warehouse": "main"}
    flags = ("--host", "::1", "--port", "99")
    values = json.loads(run("connect", "duckdb", *flags, "--output", "json", **environment).stdout)
    assert values["endpoint"] == "http://[::1]:99"


def test_connect_asks_which_of_several_warehouses(run: Run, tmp_path: Path) -> None:
    (tmp_path / "irc-bridge.toml").write_text(TWO)
    assert "one, two" in refused(run("connect", "trino"))
    assert "no warehouse three" in refused(run("connect", "trino", "--warehouse", "three"))
    assert "iceberg.rest-catalog.warehouse=two" in run("connect", "trino", "--warehouse", "two").stdout


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("engine", ["pyiceberg", "spark", "trino", "duckdb", "pylance", "lancedb"])
def test_connect_names_a_token_and_never_prints_it(run: Run, engine: str, output: str) -> None:
    printed = run("connect", engine, "--output", output, IRC_BRIDGE__SERVER__TOKEN="0123456789").stdout
    assert "0123456789" not in printed
    assert "IRC_BRIDGE_TOKEN" in printed or "<token>" in printed
    assert "oken" not in run("connect", engine, "--output", output).stdout


def test_connect_knows_that_another_server_is_behind(run: Run, tmp_path: Path) -> None:
    """There Iceberg tables are listed too, none lies at the root, and the token may be that server's."""
    irc = '[warehouses.lake]\nbackend = "irc"\nuri = "http://127.0.0.1:1"\n'
    (tmp_path / "irc-bridge.toml").write_text(irc)
    assert "IRC_BRIDGE_TOKEN" not in run("connect", "pyiceberg").stdout
    (tmp_path / "irc-bridge.toml").write_text(f'{irc}auth = "passthrough"\n')
    assert "IRC_BRIDGE_TOKEN" in run("connect", "pyiceberg").stdout
    pylance = run("connect", "pylance").stdout
    assert "include_declared=False" in pylance and 'table_id=["namespace", "name"]' in pylance
    assert "open_table(name, namespace_path=" in run("connect", "lancedb").stdout


def test_connect_spark_is_a_command_for_the_same_values(run: Run) -> None:
    command = run("connect", "spark").stdout
    values = json.loads(run("connect", "spark", "--output", "json").stdout)
    shown = subprocess.run(
        ["bash", "-c", f'spark-sql() {{ printf "%s\\n" "$@"; }}\n{command}'],
        capture_output=True,
        text=True,
        check=True,
    )
    settings = shown.stdout.splitlines()
    assert set(settings[::2]) == {"--conf"}
    assert dict(line.split("=", 1) for line in settings[1::2]) == values
    assert values["spark.sql.catalog.irc.cache-enabled"] == "false"


@pytest.mark.parametrize(
    ("root", "jars", "files"),
    [
        ("./tables", "iceberg-spark-runtime", "fs.hadoop.enabled=true"),
        ("s3://bucket/tables", "iceberg-aws-bundle", "fs.native-s3.enabled=true"),
        ("gs://bucket/tables", "iceberg-spark-runtime", "fs.native-gcs.enabled=true"),
    ],
)
def test_connect_knows_the_storage(run: Run, root: str, jars: str, files: str) -> None:
    """From which engines read rows."""
    here = {"IRC_BRIDGE__WAREHOUSES__MAIN__ROOT": root}
    packages = json.loads(run("connect", "spark", "--output", "json", **here).stdout)["spark.jars.packages"]
    assert jars in packages.split(",")[-1]
    assert files in run("connect", "trino", **here).stdout.splitlines()
