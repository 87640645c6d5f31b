"""pyiceberg's maintenance and writes on Lance tables."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from contract_tests.strangers.housekeeping import (
    ALONE,
    READ_ONLY,
    TABLES,
    Estate,
    Way,
    make_table,
    require_dropped,
    unharmed,
    ways,
)
from contract_tests.worlds.bridge import GUARD

ROWS = pa.table({"id": [100], "name": ["x"], "twice": [1]})
NO_ROWS = "Iceberg engines cannot write rows to a Lance table"
STATED = "gc.enabled stays false"
FOLLOWS = "main follows the versions of a Lance table"
Act = Callable[[Table], Any]

EXPIRE: dict[str, Act] = {
    "all": lambda table: table.maintenance.expire_snapshots().older_than(datetime.now()).commit(),
    "one": lambda table: table.maintenance.expire_snapshots().by_id(3).commit(),
}
REFUSED: dict[str, tuple[Act, str]] = {
    "append": (lambda table: table.append(ROWS), NO_ROWS),
    "overwrite": (lambda table: table.overwrite(ROWS), NO_ROWS),
    "delete": (lambda table: table.delete("id = 1"), NO_ROWS),
    "delete all": (lambda table: table.delete(), NO_ROWS),
    "upsert": (lambda table: table.upsert(ROWS, ["id"]), NO_ROWS),
    "add files": (lambda table: table.add_files([a_file_of(table)], check_duplicate_files=False), NO_ROWS),
    "roll back": (lambda table: table.manage_snapshots().rollback_to_snapshot(2).commit(), FOLLOWS),
    "enable gc": (lambda table: set_property(table, "gc.enabled", "true"), STATED),
    "unset gc": (lambda table: table.transaction().remove_properties("gc.enabled").commit_transaction(), STATED),
    "write elsewhere": (lambda table: set_property(table, "write.data.path", "/tmp"), "is set by the server"),
}


def a_file_of(table: Table) -> str:
    path: str = next(iter(table.scan().plan_files())).file.file_path
    return path


def set_property(table: Table, key: str, value: str) -> None:
    table.transaction().set_properties({key: value}).commit_transaction()


@pytest.fixture
def catalog(estate: Estate, way: Way) -> Catalog:
    return load_catalog("bridge", type="rest", uri=estate.url, warehouse=way.catalog)


@pytest.fixture
def table(catalog: Catalog, way: Way) -> Table:
    return catalog.load_table(way.identifier)


def require_readable(catalog: Catalog, way: Way) -> None:
    table = catalog.load_table(way.identifier)
    for version, count in way.table.rows.items():
        assert len(table.scan(snapshot_id=version).to_arrow()) == count


@ways(*TABLES)
@pytest.mark.parametrize("versions", EXPIRE)
def test_expire(catalog: Catalog, table: Table, way: Way, versions: str) -> None:
    with unharmed(way.table), pytest.raises(Exception, match=r"remove-snapshots.*allow_expire"):
        EXPIRE[versions](table)
    require_readable(catalog, way)


@ways(*READ_ONLY)
@pytest.mark.parametrize("versions", EXPIRE)
def test_expire_where_nothing_may_change(catalog: Catalog, table: Table, way: Way, versions: str) -> None:
    with unharmed(way.table), pytest.raises(NotImplementedError, match="does not support endpoint"):
        EXPIRE[versions](table)
    require_readable(catalog, way)


@ways(*TABLES)
@pytest.mark.parametrize("change", REFUSED)
def test_changes_that_are_refused(catalog: Catalog, table: Table, way: Way, change: str) -> None:
    act, sentence = REFUSED[change]
    with unharmed(way.table), pytest.raises(Exception, match=sentence):
        act(table)
    require_readable(catalog, way)


@ways(*TABLES)
def test_a_namespace_with_tables_stays(catalog: Catalog, way: Way) -> None:
    with unharmed(way.table), pytest.raises(Exception, match=r"not empty|cannot be dropped"):
        catalog.drop_namespace(way.table.namespace)
    require_readable(catalog, way)


@ways(*TABLES)
def test_who_asks_for_all_files_reads_the_sentence(table: Table, way: Way) -> None:
    for name in ("all_files", "all_manifests"):
        with unharmed(way.table), pytest.raises(FileNotFoundError, match=GUARD):
            getattr(table.inspect, name)()
    assert len(table.inspect.files()) and len(table.inspect.snapshots()) == len(way.table.rows) + 1


@ways("dir_unguarded-storage", "irc_unguarded-storage")
def test_without_the_guard_all_files_are_shown(table: Table, way: Way) -> None:
    with unharmed(way.table):
        assert len(table.inspect.all_files())
        assert len(table.inspect.snapshots()) == len(way.table.rows)
    assert table.properties["gc.enabled"] == "false"


def without_schemas(snapshots: list[Snapshot]) -> list[Snapshot]:
    return [snapshot.model_copy(update={"schema_id": None}) for snapshot in snapshots]


@pytest.mark.parametrize("place", ["dir", "irc"])
def test_expire_where_it_is_allowed(estate: Estate, place: str) -> None:
    """Tagged and current versions stay. The ids of schemas follow the first version that is still there."""
    made = make_table(estate.url, estate.folder, f"{place}-spare")
    catalog = load_catalog("bridge", type="rest", uri=estate.url, warehouse=f"{place}_expiring")
    table = catalog.load_table(f"{made.namespace}.{made.name}")
    before, current = without_schemas(table.snapshots()), max(made.rows)
    EXPIRE["all"](table)
    kept = [snapshot for snapshot in before if snapshot.snapshot_id in (0, 2, current)]
    assert without_schemas(table.refresh().snapshots()) == kept and len(kept) == 3
    assert [version["version"] for version in lance.dataset(made.location).versions()] == [2, current]
    assert table.properties["gc.enabled"] == "false"


@ways(*TABLES, *ALONE)
@pytest.mark.parametrize("purge", [False, True], ids=["drop", "purge"])
def test_drop(catalog: Catalog, way: Way, estate: Estate, purge: bool) -> None:
    with unharmed(way.table):
        (catalog.purge_table if purge else catalog.drop_table)(way.identifier)
        require_dropped(estate, way.table, purged=purge)
    require_readable(catalog, way)
