"""iceberg-go's commands on Lance tables."""

import subprocess
from collections.abc import Callable

import pytest

from contract_tests.strangers.housekeeping import (
    ALONE,
    READ_ONLY,
    STRAIGHT,
    TABLES,
    Estate,
    Way,
    require_dropped,
    unharmed,
    ways,
)
from contract_tests.worlds.bridge import GUARD
from contract_tests.worlds.go import go_program
from contract_tests.worlds.java import CannotRun

PACKAGE, VERSION = "github.com/apache/iceberg-go/cmd/iceberg", "v0.7.0"
SECONDS = 60
Outcome = tuple[bool, str]
"""Whether the command did what it should, and what it said."""
Run = Callable[..., Outcome]

EXPIRE = ["expire-snapshots", "--older-than", "1ms", "--retain-last", "1", "--yes"]
ORPHANS = ["clean-orphan-files", "--yes"]


@pytest.fixture(scope="module")
def go(estate: Estate) -> Run:
    """Runs a command on the table that a way leads to."""
    try:
        program = go_program(PACKAGE, VERSION)
    except CannotRun as reason:
        pytest.skip(f"iceberg-go: {reason}")

    def run(way: Way, *arguments: str) -> Outcome:
        where = ["--uri", estate.uri(way.catalog)]
        where += [] if way.catalog == "straight" else ["--warehouse", way.catalog]
        command = [program, *where, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        return done.returncode == 0, done.stdout + done.stderr

    return run


def require_readable(go: Run, way: Way) -> None:
    done, said = go(way, "files", way.identifier)
    assert done, said


@ways(*TABLES, *READ_ONLY)
def test_orphan_files(go: Run, way: Way) -> None:
    with unharmed(way.table):
        done, said = go(way, *ORPHANS, way.identifier)
    assert not done and GUARD in said
    require_readable(go, way)


@ways(*TABLES)
def test_orphan_files_of_the_whole_root(go: Run, way: Way, estate: Estate) -> None:
    """The table's location and those of all the others."""
    with unharmed(way.table), unharmed(estate.tables["dir-storage"]), unharmed(estate.tables["irc-storage"]):
        done, said = go(way, *ORPHANS, "--location", str(estate.folder), way.identifier)
    assert not done and GUARD in said
    require_readable(go, way)


@ways(*STRAIGHT)
def test_orphan_files_of_the_server_behind(go: Run, way: Way, estate: Estate) -> None:
    with unharmed(way.table):
        done, said = go(way, *ORPHANS, way.identifier)
    assert not done and (GUARD in said or "no such file" in said)
    require_readable(go, Way("irc", way.table))


@ways(*TABLES, *READ_ONLY, *STRAIGHT)
def test_expire(go: Run, way: Way) -> None:
    with unharmed(way.table):
        done, said = go(way, *EXPIRE, way.identifier)
    assert not done and "GC is disabled" in said
    if way.catalog != "straight":
        require_readable(go, way)


@ways("dir-storage", "irc-impl")
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["rewrite-manifests", "{table}"], "Iceberg engines cannot write rows to a Lance table"),
        (["rollback", "--snapshot-id", "2", "--yes", "{table}"], "main follows the versions of a Lance table"),
        (["upgrade", "--yes", "{table}", "3"], "format-version cannot be 3"),
        (["properties", "set", "table", "{table}", "gc.enabled", "true"], "gc.enabled stays false"),
        (["properties", "remove", "table", "{table}", "gc.enabled"], "gc.enabled stays false"),
        (
            ["properties", "set", "table", "{table}", "write.data.path", "/tmp"],
            "write.data.path is set by the server",
        ),
        (["drop", "namespace", "{namespace}"], "not empty|cannot be dropped"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_changes_that_are_refused(go: Run, way: Way, command: list[str], sentence: str) -> None:
    names = {"table": way.identifier, "namespace": way.table.namespace}
    with unharmed(way.table):
        done, said = go(way, *(part.format(**names) for part in command))
    assert not done
    assert any(part in said for part in sentence.split("|")), said
    require_readable(go, way)


@ways("dir_unguarded-storage", "irc_unguarded-storage")
def test_without_the_guard_nothing_stops_it(go: Run, way: Way) -> None:
    """Only asked what it would remove."""
    with unharmed(way.table):
        done, said = go(way, "clean-orphan-files", "--dry-run", way.identifier)
    assert done and "_versions/" in said


@ways("dir_expiring-storage", "irc_expiring-storage")
def test_where_versions_may_expire_the_rest_stands(go: Run, way: Way) -> None:
    with unharmed(way.table):
        done, said = go(way, *ORPHANS, way.identifier)
        assert not done and GUARD in said
        done, said = go(way, *EXPIRE, way.identifier)
        assert not done and "GC is disabled" in said


@ways(*TABLES)
def test_after_a_commit(go: Run, way: Way) -> None:
    with unharmed(way.table):
        done, said = go(way, "tag", "create", "--yes", "--snapshot-id", "2", way.identifier, "go-tag")
        assert done, said
        done, said = go(way, *ORPHANS, way.identifier)
    assert not done and GUARD in said


@ways(*TABLES)
def test_compaction_finds_nothing_to_do(go: Run, way: Way) -> None:
    with unharmed(way.table):
        done, said = go(way, "compact", "run", way.identifier)
    assert done and "No files need compaction" in said


@ways(*TABLES, *ALONE)
def test_drop(go: Run, way: Way, estate: Estate) -> None:
    with unharmed(way.table):
        done, said = go(way, "drop", "table", way.identifier)
        assert done, said
        require_dropped(estate, way.table)
    require_readable(go, way)
