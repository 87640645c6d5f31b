"""`irc-bridge migrate` and `irc-bridge deregistered`, as people and programs run them."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pytest

from contract_tests.cli.conftest import Run
from contract_tests.cli.test_commands import refused
from contract_tests.directory.opened import (
    append,
    declared,
    load,
    names,
    new_table,
    open_in,
    path_of,
    rows,
    versions,
)
from irc_bridge.catalog.models import Levels

NS: Levels = ("ns",)
SKIPPED = {
    "already": "is in the manifest already",
    "empty": "holds no Lance table",
    "hidden": "is deregistered",
    "ns": "the manifest has a namespace of that name",
    "a$b": "Not a name for a table: 'a$b' contains $",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A V1 root with three tables to register, beside one of each kind that is none."""
    root = tmp_path / "tables"
    root.mkdir()
    catalog = open_in("compat", root)
    catalog.create_namespace(NS, {})
    catalog.create_table(("already",), new_table())
    before = open_in("v1", root)
    for name in ("t1", "t2", "hidden"):
        lance.write_dataset(rows(1), root / f"{name}.lance")
    before.create_table(("said",), declared(owner="ann"))
    before.deregister_table(("hidden",))
    (root / "empty.lance").mkdir()
    for name in ("ns", "a$b"):
        lance.write_dataset(rows(1), root / f"{name}.lance")
    return root


def contents(root: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))}


def found(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    answer: list[dict[str, Any]] = json.loads(done.stdout)
    return answer


class TestMigrate:
    def test_it_registers_and_says_why_not(self, run: Run, root: Path) -> None:
        done = run("migrate", root, "--output", "json")
        answer = {row["table"]: row for row in found(done)}
        assert {name for name, row in answer.items() if row["outcome"] == "registered"} == {"t1", "t2", "said"}
        assert {name: row["why"] for name, row in answer.items() if row["why"]} == SKIPPED
        assert answer["t1"]["location"] == (root / "t1.lance").as_uri()
        assert done.stderr.splitlines() == ["3 registered, 5 skipped"]
        catalog = open_in("v2", root)
        assert names(catalog) == ["already", "said", "t1", "t2"]
        assert versions(load(catalog, ("t1",))) == [1]
        assert load(catalog, ("said",)).properties["owner"] == "ann"
        append(load(catalog, ("said",)), 1)
        assert versions(load(catalog, ("said",))) == [1]

    def test_text_is_for_people(self, run: Run, root: Path) -> None:
        done = run("migrate", root)
        lines = [line.split() for line in done.stdout.splitlines()]
        assert lines[0] == ["TABLE", "OUTCOME", "WHY", "LOCATION"]
        assert ["t1", "registered", (root / "t1.lance").as_uri()] in lines
        assert ["hidden", "skipped", "is", "deregistered", (root / "hidden.lance").as_uri()] in lines

    def test_a_dry_run_changes_nothing(self, run: Run, root: Path) -> None:
        before = contents(root)
        answer = found(run("migrate", "--dry-run", root, "--output", "json"))
        outcomes = {row["table"] for row in answer if row["outcome"] == "would be registered"}
        assert outcomes == {"t1", "t2", "said"}
        assert contents(root) == before

    def test_a_dry_run_makes_no_manifest(self, run: Run, tmp_path: Path) -> None:
        lance.write_dataset(rows(1), tmp_path / "fresh" / "t.lance")
        before = contents(tmp_path)
        run("migrate", "--dry-run", "fresh")
        assert contents(tmp_path) == before

    def test_again_it_has_nothing_to_do(self, run: Run, root: Path) -> None:
        run("migrate", root)
        before = contents(root)
        done = run("migrate", root, "--output", "json")
        assert {row["outcome"] for row in found(done)} == {"skipped"}
        assert done.stderr.splitlines() == ["0 registered, 8 skipped"]
        assert contents(root) == before

    def test_a_warehouse_of_the_settings(self, run: Run, root: Path, tmp_path: Path) -> None:
        (tmp_path / "irc-bridge.toml").write_text(f'warehouses.lake.root = "{root}"\n')
        assert run("migrate", "lake").stderr.splitlines() == ["3 registered, 5 skipped"]
        assert "t1" in names(open_in("v2", root))

    def test_a_folder_that_is_not_there(self, run: Run, tmp_path: Path) -> None:
        assert str(tmp_path / "nowhere") in refused(run("migrate", "nowhere"))
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "file").write_text("x")
        assert str(tmp_path / "file") in refused(run("migrate", "file"))

    def test_a_folder_without_tables(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "bare").mkdir()
        done = run("migrate", "bare")
        assert (done.returncode, done.stdout) == (0, "")
        assert "no table in bare" in done.stderr
        assert found(run("migrate", "bare", "--output", "json")) == []
        assert list((tmp_path / "bare").iterdir()) == []

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
    def test_stopped_on_the_way_it_goes_on(self, run: Run, tmp_path: Path, number: signal.Signals) -> None:
        count = 2600
        many = [f"t{each:04}" for each in range(count)]
        for name in many:
            (tmp_path / "many" / f"{name}.lance").mkdir(parents=True)
            (tmp_path / "many" / f"{name}.lance" / ".lance-reserved").touch()
        command = [sys.executable, "-m", "irc_bridge", "migrate", "many"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            # one makes the manifest, three its indexes, the next the first tables
            while len(list(tmp_path.glob("many/__manifest/_versions/*.manifest"))) < 6:
                assert process.poll() is None
            process.send_signal(number)
            said = process.stderr.read() if process.stderr else ""
        assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 1)
        assert "Traceback" not in said
        registered = names(open_in("v2", tmp_path / "many"))
        assert 0 < len(registered) < count
        assert run("migrate", "many").stderr.splitlines() == [
            f"{count - len(registered)} registered, {len(registered)} skipped"
        ]
        assert names(open_in("v2", tmp_path / "many")) == many


class TestDeregistered:
    def settings(self, tmp_path: Path, **more: bool) -> None:
        lines = [f"warehouses.main.{key} = {str(value).lower()}" for key, value in more.items()]
        (tmp_path / "irc-bridge.toml").write_text("\n".join(['warehouses.main.root = "tables"', *lines]))

    @pytest.mark.parametrize("mode", ["compat", "v2", "v1"])
    def test_it_lists_what_register_brings_back(self, run: Run, tmp_path: Path, mode: str) -> None:
        self.settings(tmp_path, manifest_enabled=mode != "v1", dir_listing_enabled=mode != "v2")
        catalog = open_in(mode, tmp_path / "tables")
        tables: list[Levels] = [("r",)]
        if mode != "v1":
            catalog.create_namespace(NS, {})
            tables.append(("ns", "t"))
        locations = {}
        for table in [*tables, ("kept",)]:
            info = catalog.create_table(table, new_table())
            append(info, 1)
            locations[".".join(table)] = info.location
        for table in tables:
            catalog.deregister_table(table)
        del locations["kept"]
        answer = found(run("deregistered", "--output", "json"))
        assert {row["table"]: row["location"] for row in answer} == locations
        assert {row["warehouse"] for row in answer} == {"main"}
        lines = [line.split() for line in run("deregistered", "main").stdout.splitlines()]
        assert lines[0] == ["WAREHOUSE", "TABLE", "LOCATION", "REMOVED_AFTER"]
        assert sorted(line[1:] for line in lines[1:]) == sorted(map(list, locations.items()))
        for row in answer:
            table = tuple(row["table"].split("."))
            assert versions(catalog.register_table(table, row["location"])) == [1, 2]
            assert catalog.table_exists(table)
        assert found(run("deregistered", "--output", "json")) == []

    def test_what_a_rename_left_half_made_is_none(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.settings(tmp_path)
        catalog = open_in("compat", tmp_path / "tables")
        info = catalog.create_table(("t",), new_table())

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr("irc_bridge.backends.directory.table_rows.TableRows.move", die)
            catalog.rename_table(("t",), ("u",))
        copies = [path.name for path in (tmp_path / "tables").iterdir() if path.name.endswith("_u")]
        assert len(copies) == 1
        assert found(run("deregistered", "--output", "json")) == []
        catalog.rename_table(("t",), ("u",))
        assert found(run("deregistered", "--output", "json")) == []
        assert Path(path_of(load(catalog, ("u",)))).name != copies[0]
        assert not Path(path_of(info)).exists()

    def test_there_is_none(self, run: Run, tmp_path: Path) -> None:
        self.settings(tmp_path)
        done = run("deregistered")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.splitlines() == ["No table is deregistered"]
        assert not (tmp_path / "tables").exists()

    def test_a_warehouse_that_is_not_there(self, run: Run, tmp_path: Path) -> None:
        self.settings(tmp_path)
        assert "the settings have main" in refused(run("deregistered", "other"))


def test_the_help_says_what_they_do(run: Run) -> None:
    listed = run("--help").stdout
    assert "Register the tables of a folder in its manifest" in listed
    assert "List tables whose files are there and whose names are gone" in listed
    assert "--dry-run" in run("migrate", "--help").stdout
    assert "[WAREHOUSE]" in run("deregistered", "--help").stdout
    assert run("migrate").returncode == 2
