"""`irc-bridge migrate --spark` does what it does without."""

import json
import shutil
from pathlib import Path

import lance
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from contract_tests.directory.opened import declared, load, names, new_table, open_in, rows
from contract_tests.pipeline.conftest import Row
from contract_tests.worlds.spark import LEAVES_SOCKETS
from irc_bridge.cli.main import cli

pytestmark = LEAVES_SOCKETS


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A root with tables that only their folders tell of, beside others that get no row."""
    root = tmp_path / "mixed"
    root.mkdir()
    before = open_in("v1", root)
    for number in range(250):
        (root / f"t{number:03}.lance").mkdir()
        (root / f"t{number:03}.lance/.lance-reserved").touch()
    lance.write_dataset(rows(1), root / "rows.lance")
    before.create_table(("said",), declared(owner="ann"))
    before.create_table(("hidden",), new_table())
    before.deregister_table(("hidden",))
    (root / "empty.lance").mkdir()
    (root / "a$b.lance").mkdir()
    catalog = open_in("compat", root)
    catalog.create_table(("already",), new_table())
    return root


def migrate(root: Path, *more: str) -> list[Row]:
    done = CliRunner().invoke(cli, ["migrate", str(root), *more, "--output", "json"])
    assert done.exit_code == 0, (done.output, done.exception)
    found: list[Row] = json.loads(done.stdout)
    return [{**row, "location": Path(row["location"]).name} for row in found]


def test_the_same_with_spark_and_without(spark: SparkSession, mixed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(mixed, other)
    assert migrate(mixed, "--spark", "--dry-run") == migrate(other, "--dry-run")
    answer = migrate(mixed, "--spark")
    assert answer == migrate(other)
    assert sum(row["outcome"] == "registered" for row in answer) == 252
    assert {row["table"] for row in answer if row["why"]} == {"already", "hidden", "empty", "a$b"}
    catalog = open_in("v2", mixed)
    assert names(catalog) == names(open_in("v2", other))
    assert load(catalog, ("said",)).properties["owner"] == "ann"
    again = migrate(mixed, "--spark")
    assert {row["outcome"] for row in again} == {"skipped"}
