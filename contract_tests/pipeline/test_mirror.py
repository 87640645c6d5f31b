"""`irc-bridge mirror`: what engines can read after it, what it reports, what it does when something is wrong."""

import json
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from contract_tests.mirror.mirroring import Lake, same_rows
from contract_tests.pipeline.conftest import Commands, Row
from contract_tests.pipeline.tables import T, at, rows
from contract_tests.worlds.s3 import S3
from contract_tests.worlds.spark import LEAVES_SOCKETS
from irc_bridge.catalog.ports import CanChangeNamespaces
from irc_bridge.cli.backends import open_warehouses
from irc_bridge.cli.options import settings_of
from irc_bridge.errors import InvalidInput

pytestmark = LEAVES_SOCKETS


@pytest.fixture
def lake(root: Path) -> Lake:
    """A table of three versions, the second with a fragment more, the third with a row less."""
    lake = Lake(str(root))
    lake.write(rows(range(10)))
    lake.write(rows(range(10, 30)), mode="append")
    lake.open().delete("id = 4")
    return lake


def require_readable(lake: Lake, *versions: int) -> None:
    assert lake.mirror().present() == set(versions)
    for version in versions:
        assert same_rows(lake.seen(version), lake.open(version).to_table()), version


def test_the_latest_version(run: Commands, lake: Lake) -> None:
    (report,) = run("mirror", T)
    sizes = [Path(lake.uri, "_iceberg", name).stat().st_size for name in lake.files() if name.startswith("data/")]
    seconds = report.pop("seconds")
    assert 0 < seconds < 100
    assert report == {
        "table": T,
        "versions": 1,
        "mirrored": 3,
        "latest": 3,
        "lag_seconds": 0.0,
        "fragments_written": 3,  # two of rows, one of deletions
        "fragments_reused": 0,
        "bytes": sum(sizes),
    }
    require_readable(lake, 3)


def test_what_is_there_is_reused(run: Commands, lake: Lake) -> None:
    run("mirror", T)
    lake.write(rows([77]), mode="append")
    (report,) = run("mirror", T)
    assert (report["versions"], report["fragments_written"], report["fragments_reused"]) == (1, 1, 3)
    (report,) = run("mirror", T, "--versions", "all")
    assert (report["versions"], report["fragments_written"], report["fragments_reused"]) == (2, 0, 3)
    require_readable(lake, 1, 2, 3, 4)
    (report,) = run("mirror", T, "--versions", "all")
    assert (report["versions"], report["mirrored"], report["bytes"]) == (0, 4, 0)


def test_a_range_of_versions(run: Commands, lake: Lake) -> None:
    (report,) = run("mirror", T, "--versions", "1..2")
    assert (report["versions"], report["mirrored"], report["latest"]) == (2, 2, 3)
    assert report["lag_seconds"] > 0
    require_readable(lake, 1, 2)
    for wrong in ("2..1", "0..1", "1-2", "new", ""):
        with pytest.raises(InvalidInput, match=r"latest, all, A\.\.B"):
            run("mirror", T, "--versions", wrong)


def test_a_log_for_people_lies_beside_it(run: Commands, lake: Lake) -> None:
    run("mirror", T, "--versions", "2..3")
    (name,) = lake.files("log")
    log = json.loads(Path(lake.uri, "_iceberg/log", name).read_text())
    assert (log["table"], log["mirrored"], log["bytes"] > 0, log["seconds"] > 0) == (T, 3, True, True)
    assert [(each["version"], each["outcome"], each["rows"]) for each in log["versions"]] == [
        (2, "mirrored", 30),
        (3, "mirrored", 29),
    ]
    run("mirror", T)
    assert lake.files("log") == {name}


def test_all_tables_of_all_warehouses(run: Commands, lake: Lake, tmp_path: Path) -> None:
    """An error is that of its table."""
    with Path("irc-bridge.toml").open("a") as settings:
        settings.write('warehouses.other.root = "elsewhere"\n')
    Lake("elsewhere", name="u").write(rows([1]))
    catalog = open_warehouses(settings_of(None))["main"].catalog
    assert isinstance(catalog, CanChangeNamespaces)
    for namespace in (("ns",), ("ns", "deep")):
        catalog.create_namespace(namespace, {})
    run("import", "SELECT 1L AS id", "main.ns.deep.t", "--format", "sql")
    Lake(str(lake.root), name="empty").write(rows([]))
    broken = Lake(str(lake.root), name="broken")
    broken.write(rows([1, 2]))
    for file in Path(broken.uri, "data").iterdir():
        file.write_bytes(b"nonsense")
    code, reports, said = run.outcome("mirror", "--all")
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith("irc-bridge: main.default.broken: The Lance table at ")
    assert {report["table"]: report["mirrored"] for report in reports} == {
        "main.default.empty": 1,
        T: 3,
        "main.ns.deep.t": 1,
        "other.default.u": 1,
    }


def test_names_and_all_exclude_each_other(run: Commands, lake: Lake) -> None:
    for arguments in (["mirror"], ["mirror", T, "--all"], ["verify"], ["expire", T, "--all"]):
        code, _, said = run.outcome(*arguments)
        assert (code, "Name tables, or give --all." in said) == (2, True)
    with pytest.raises(InvalidInput, match=r"WAREHOUSE\.NAMESPACE\.TABLE"):
        run("mirror", "default.t")


@pytest.mark.parametrize("command", ["mirror", "verify", "expire"])
def test_a_table_that_is_not_there(run: Commands, lake: Lake, command: str) -> None:
    run("mirror", T)
    code, reports, said = run.outcome(command, "main.default.nowhere", T)
    assert (code, {each["table"] for each in reports}) == (1, {T})
    assert said == "irc-bridge: main.default.nowhere: Table does not exist: nowhere\n"


def test_on_s3(run: Commands, root: Path, s3: S3) -> None:
    lake = Lake(s3.bucket("pipeline"), s3.options)
    options = "".join(f'storage.{key} = "{value}"\n' for key, value in lake.options.items())
    Path("irc-bridge.toml").write_text(f'[warehouses.main]\nroot = "{lake.root}"\n{options}')
    for number in range(3):
        lake.write(rows([number]), mode="append")
    lake.open().delete("id = 1")
    (report,) = run("mirror", T, "--versions", "all")
    assert (report["versions"], report["fragments_written"]) == (4, 3)
    require_readable(lake, 1, 2, 3, 4)
    assert all(each["equal"] for each in run("verify", T))


def test_beside_a_writer_and_a_cleanup(run: Commands, lake: Lake) -> None:
    """Versions go while they are copied. What is there in the end can be read, and nothing is left over."""
    stop = threading.Event()

    def write() -> int:
        number = 100
        while not stop.is_set():
            number += 1
            dataset = lake.write(rows([number]), mode="append")
            if number % 5 == 0:
                dataset.optimize.compact_files()
            if number % 3 == 0:
                dataset.cleanup_old_versions(timedelta(seconds=0.7))
        return number

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for _ in range(4):
                run("mirror", T, "--versions", "all")
        finally:
            stop.set()
        assert writing.result() > 110
    run("mirror", T, "--versions", "all")
    versions = [each["version"] for each in lake.open().versions()]
    require_readable(lake, *versions)
    logs = [json.loads(Path(lake.uri, "_iceberg/log", name).read_text()) for name in lake.files("log")]
    outcomes = {each["version"]: each["outcome"] for log in logs for each in log["versions"]}
    assert set(outcomes.values()) <= {"mirrored", "cleaned up meanwhile"}
    assert all(outcomes[version] == "mirrored" for version in versions)


def different(run: Commands) -> list[Row]:
    code, found, said = run.outcome("verify", T)
    assert code == 1
    assert [line.split(": ")[2] for line in said.splitlines()] == [
        each["compared"] for each in found if not each["equal"]
    ]
    return found


class TestVerify:
    def test_alike(self, run: Commands, lake: Lake) -> None:
        run("mirror", T, "--versions", "2..3")
        found = run("verify", T)
        assert [(each["version"], each["compared"], each["equal"]) for each in found] == [
            (3, "number of rows", True),
            (3, "id", True),
            (3, "name", True),
            (3, "whole rows", True),
        ]
        assert found[0]["lance"] == found[0]["iceberg"] == "29"
        assert {each["version"] for each in run("verify", T, "--version", "2")} == {2}

    def test_a_value_that_differs_is_named(self, run: Commands, lake: Lake) -> None:
        run("mirror", T)
        other = Lake(f"{lake.root}/../other")
        other.write(rows(range(10)))
        other.write(rows(range(10, 30), "other"), mode="append")
        other.bring([2])
        replace_file(lake, other, "id", 10)
        found = {each["compared"]: each["equal"] for each in different(run)}
        assert found == {"number of rows": True, "id": True, "name": False, "whole rows": False}

    def test_values_that_are_in_other_rows(self, run: Commands, lake: Lake) -> None:
        """Each column has the same values, but they do not belong together."""
        run("mirror", T)
        other = Lake(f"{lake.root}/../other")
        swapped = rows(range(10, 30)).set_column(1, "name", rows(range(29, 9, -1))["name"])
        other.write(rows(range(10)))
        other.write(swapped, mode="append")
        other.bring([2])
        replace_file(lake, other, "id", 10)
        found = {each["compared"]: each["equal"] for each in different(run)}
        assert found == {"number of rows": True, "id": True, "name": True, "whole rows": False}

    def test_deletions_that_are_lost(self, run: Commands, lake: Lake) -> None:
        run("mirror", T)
        (deletes,) = [each for each in Path(lake.uri, "_iceberg/data").iterdir() if "deletes" in each.name]
        lake.open(2).restore()
        lake.open().delete("id = 5")
        run("mirror", T)
        others = [each for each in Path(lake.uri, "_iceberg/data").iterdir() if "deletes" in each.name]
        (new,) = [each for each in others if each != deletes]
        shutil.copy(deletes, new)
        found = {each["compared"]: each["equal"] for each in different(run)}
        assert found == {"number of rows": True, "id": False, "name": False, "whole rows": False}

    def test_what_has_no_copy(self, run: Commands, lake: Lake) -> None:
        assert f"no Parquet copy yet: make one with irc-bridge mirror {T}" in refused(run)
        run("mirror", T)
        assert f"irc-bridge mirror {T} --versions 1..1" in refused(run, "--version", "1")
        assert "has no version 9" in refused(run, "--version", "9")


def refused(run: Commands, *more: str) -> str:
    code, found, said = run.outcome("verify", T, *more)
    assert (code, found) == (1, [])
    return said


def replace_file(lake: Lake, other: Lake, column: str, first: int) -> None:
    """The Parquet file whose smallest value of a column this is, by the one of the other lake."""
    (ours,), (theirs,) = (
        [each for each in files_of(one) if smallest(each, column) == first] for one in (lake, other)
    )
    shutil.copy(theirs, ours)


def files_of(lake: Lake) -> Iterator[Path]:
    return (each for each in Path(lake.uri, "_iceberg/data").iterdir() if "deletes" not in each.name)


def smallest(file: Path, column: str) -> int:
    import pyarrow.parquet as pq

    least: int = min(pq.read_table(file)[column].to_pylist())
    return least


class TestExpire:
    def test_versions_that_lance_has_cleaned_up(self, run: Commands, lake: Lake) -> None:
        lake.write(rows([99]), mode="overwrite")
        run("mirror", T, "--versions", "all")
        (report,) = run("expire", T, "--grace", "0s")
        assert report == {"table": T, "versions": 0, "waiting": 0, "files": 0}
        lake.open().cleanup_old_versions(timedelta(0))
        (report,) = run("expire", T)
        assert report == {"table": T, "versions": 0, "waiting": 3, "files": 0}
        before = of_lance(lake)
        (report,) = run("expire", "--all", "--grace", "0s")
        assert (report["versions"], report["waiting"], report["files"] > 3) == (3, 0, True)
        require_readable(lake, 4)
        assert of_lance(lake) == before

    @pytest.mark.parametrize("content", [b"", b"no list", b"Obj\x01\xff\xff"], ids=["empty", "text", "cut off"])
    def test_a_damaged_manifest_list_is_an_error_of_its_table(
        self, run: Commands, lake: Lake, content: bytes
    ) -> None:
        run("mirror", T)
        Lake(str(lake.root), name="whole").write(rows([1]))
        broken = Path(lake.uri, "_iceberg/versions/2-0123456789abcdef.avro")
        broken.write_bytes(content)
        before = {each for each in Path(lake.uri).rglob("*") if each.is_file()}
        code, reports, stderr = run.outcome("expire", "--all", "--grace", "0s")
        assert code == 1
        assert stderr.startswith(f"irc-bridge: {T}: ") and broken.name in stderr and "manifest list" in stderr
        assert [report["table"] for report in reports] == ["main.default.whole"]
        after = {each for each in Path(lake.uri).rglob("*") if each.is_file()}
        assert before <= after

    def test_a_time_that_is_none(self, run: Commands, lake: Lake) -> None:
        code, _, said = run.outcome("expire", T, "--grace", "soon")
        assert (code, "such as 90m or 2d" in said) == (2, True)


def of_lance(lake: Lake) -> set[Path]:
    return {each for each in Path(lake.uri).rglob("*") if each.is_file() and "_iceberg" not in each.parts}


def test_the_reports_name_the_table_as_it_was_named(run: Commands, root: Path) -> None:
    lance.write_dataset(rows([1]), str(root / "a.b.lance"))
    name = "main.default.`a.b`"
    (report,) = run("mirror", name)
    assert report["table"] == name
    assert at(root, name="a.b").version == 1
    assert {each["table"] for each in run("verify", "--all")} == {name}
