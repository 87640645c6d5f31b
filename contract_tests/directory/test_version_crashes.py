"""kill -9 at every step of making and deleting versions."""

from pathlib import Path

import lance
import pytest

from contract_tests.directory.opened import (
    VERSIONED,
    Directory,
    append,
    declared,
    load,
    names,
    new_table,
    open_in,
    path_of,
    versions,
)
from contract_tests.directory.staging import stage, stage_first
from contract_tests.directory.test_crashes import roots_after_crashes
from irc_bridge.catalog.models import NewVersion, TableInfo, VersionRange

T = ("t",)

pytestmark = pytest.mark.parametrize("mode", VERSIONED)


def staged(info: TableInfo) -> list[Path]:
    return list(Path(path_of(info), "_versions").glob("*.manifest-*"))


def stage_second(catalog: Directory) -> None:
    stage(catalog.create_table(T, new_table(owner="ann")).location, 1)


def stage_the_first(catalog: Directory) -> None:
    stage_first(catalog.create_table(T, declared(owner="ann")).location, 1)


def create(catalog: Directory) -> None:
    info = load(catalog, T)
    [path] = staged(info)
    catalog.create_table_versions([NewVersion(T, len(info.versions) + 1, str(path))])


@pytest.mark.parametrize("prepare", [stage_second, stage_the_first])
def test_killed_while_a_version_is_made(root: Path, mode: str, prepare: object) -> None:
    assert callable(prepare)
    killed = roots_after_crashes(create, mode, root, prepare)
    before = 1 if prepare is stage_second else 0
    reached = set()
    for folder in killed:
        catalog = open_in(mode, folder)
        assert names(catalog) == ["t"]
        info = load(catalog, T)
        assert info.properties["owner"] == "ann"
        reached.add(len(info.versions))
        for path in staged(info):
            [made] = catalog.create_table_versions([NewVersion(T, before + 1, str(path))])
            assert made.version == before + 1
        assert versions(load(catalog, T)) == list(range(1, before + 2))
        assert lance.dataset(info.location).to_table()["id"].to_pylist() == [1]
        assert staged(info) == []
        append(info, 2)
        assert versions(load(catalog, T)) == list(range(1, before + 3))
    assert reached == {before, before + 1}


def delete(catalog: Directory) -> None:
    catalog.delete_table_versions(T, [VersionRange(1, 3), VersionRange(4, 5)], ignore_missing=True)


def test_killed_while_versions_are_deleted(root: Path, mode: str) -> None:
    def prepare(catalog: Directory) -> None:
        info = catalog.create_table(T, new_table(owner="ann"))
        for number in range(4):
            append(info, number)
        Path(path_of(info), "_versions", "latest_version_hint.json").unlink()

    killed = roots_after_crashes(delete, mode, root, prepare)
    assert len(killed) >= 3
    for folder in killed:
        catalog = open_in(mode, folder)
        left = versions(load(catalog, T))
        assert {3, 5} <= set(left) <= {1, 2, 3, 4, 5}
        delete(catalog)
        assert versions(load(catalog, T)) == [3, 5]
        assert lance.dataset(load(catalog, T).location).count_rows() == 4
