"""Whatever anybody changes shows in the next load."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest

from contract_tests.directory.opened import (
    Directory,
    append,
    declared,
    load,
    names,
    new_table,
    open_in,
    path_of,
    rows,
    set_properties,
    versions,
)
from irc_bridge.catalog.models import TableInfo, Unchanged
from irc_bridge.errors import TableNotFound
from irc_bridge.lance_store.mirror_layout import list_name

T = ("t",)


def settle(root: Path) -> None:
    """Makes all folders look as if they were last changed a minute ago."""
    past = time.time() - 60
    for folder, _, _ in os.walk(root):
        os.utime(folder, (past, past))


@pytest.fixture
def settled(catalog: Directory, root: Path) -> TableInfo:
    info = catalog.create_table(T, new_table())
    append(info, 1).tags.create("x", 1)
    settle(root)
    info = load(catalog, T)
    assert catalog.is_current(info.token)
    return info


def mirror(dataset: lance.LanceDataset, version: int) -> Path:
    made: Any = dataset.versions()[version - 1]["timestamp"]
    folder = Path(dataset.uri, "_iceberg", "versions")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / list_name(Path(dataset.uri).as_uri(), version, int(made.timestamp() * 1000))
    file.touch()
    return file


CHANGES: dict[str, Callable[[lance.LanceDataset], object]] = {
    "a version": lambda dataset: lance.write_dataset(rows(2), dataset, mode="append"),
    "a property": lambda dataset: dataset.update_metadata({"a": "b"}),
    "a tag": lambda dataset: dataset.tags.create("y", 2),
    "a tag moved": lambda dataset: dataset.tags.update("x", 2),
    "a tag removed": lambda dataset: dataset.tags.delete("x"),
    "a list of manifests": lambda dataset: mirror(dataset, 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_by_another_writer_shows(catalog: Directory, root: Path, settled: TableInfo, change: str) -> None:
    CHANGES[change](lance.dataset(path_of(settled)))
    assert not catalog.is_current(settled.token)
    info = catalog.load_table(T, known=settled.token)
    assert isinstance(info, TableInfo)
    assert (info.versions, info.tags, info.properties, info.mirrored) != (
        settled.versions,
        settled.tags,
        settled.properties,
        settled.mirrored,
    )


def test_a_list_of_manifests_that_comes_and_goes_in_a_folder_that_stays(
    catalog: Directory, root: Path, settled: TableInfo
) -> None:
    """Nothing but the folder of the lists tells."""
    lists = [mirror(lance.dataset(path_of(settled)), version) for version in (1, 2)]
    settle(root)
    for remove in (True, False):
        token = load(catalog, T).token
        assert catalog.is_current(token)
        if remove:
            lists[1].unlink()
        else:
            lists[1].touch()
        assert not catalog.is_current(token)
        assert sorted(load(catalog, T).mirrored) == ([1] if remove else [1, 2])
        settle(root)


def test_an_unchanged_table_is_not_read_again(
    catalog: Directory, root: Path, settled: TableInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lance, "dataset", None)
    for _ in range(3):
        again = catalog.load_table(T, known=settled.token)
        assert isinstance(again, Unchanged)
        assert catalog.is_current(again.token)


def test_another_table_made_does_not_open_this_one(
    nested: Directory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested.create_table(T, new_table())
    settle(root)
    info = load(nested, T)
    nested.create_table(("other",), declared())
    assert not nested.is_current(info.token)
    assert names(nested) == ["other", "t"]
    monkeypatch.setattr(lance, "dataset", None)
    again = nested.load_table(T, known=info.token)
    assert isinstance(again, Unchanged)
    settle(root / "__manifest")
    assert not nested.is_current(again.token)
    settled_again = nested.load_table(T, known=again.token)
    assert isinstance(settled_again, Unchanged)
    assert nested.is_current(settled_again.token)


def test_an_answer_from_between_two_changes_in_one_tick_is_never_current(
    catalog: Directory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = catalog.create_table(T, new_table())
    settle(root)
    versions_folder = Path(path_of(info), "_versions")
    changed = versions_folder.stat().st_mtime_ns
    monkeypatch.setattr(time, "time_ns", lambda: changed + 10_000_000)
    token = load(catalog, T).token
    monkeypatch.undo()
    append(info, 1)
    settle(root)
    os.utime(versions_folder, ns=(changed, changed))
    assert not catalog.is_current(token)
    fresh = catalog.load_table(T, known=token)
    assert isinstance(fresh, TableInfo)
    assert versions(fresh) == [1, 2]


def test_a_folder_from_the_future_is_never_current(catalog: Directory, root: Path, settled: TableInfo) -> None:
    future = time.time() + 3600
    os.utime(Path(path_of(settled), "_versions"), (future, future))
    token = load(catalog, T).token
    assert not catalog.is_current(token)


def test_the_same_version_made_again_is_another_table(catalog: Directory, root: Path) -> None:
    for round_ in range(5):
        info = catalog.create_table(T, new_table(round=str(round_)))
        append(info, *range(round_ + 1))
        settle(root)
        loaded = load(catalog, T)
        assert loaded.properties["round"] == str(round_)
        assert [each.summary["total_rows"] for each in loaded.versions] == ["0", str(round_ + 1)]
        catalog.drop_table(T)
        assert not catalog.is_current(loaded.token)
        with pytest.raises(TableNotFound):
            catalog.load_table(T, known=loaded.token)


def test_files_put_in_place_of_the_table_show(catalog: Directory, root: Path, settled: TableInfo) -> None:
    other = root.parent / "other"
    lance.write_dataset(rows(7), other).update_metadata({"owner": "bob"})
    folder = Path(path_of(settled))
    shutil.rmtree(folder)
    shutil.move(other, folder)
    assert not catalog.is_current(settled.token)
    assert load(catalog, T).properties["owner"] == "bob"
    assert load(catalog, T).versions[0].summary["total_rows"] == "1"


def test_a_declared_table_becomes_one_with_a_version(catalog: Directory, root: Path) -> None:
    info = catalog.create_table(T, declared())
    settle(root)
    token = load(catalog, T).token
    lance.write_dataset(rows(1), path_of(info))
    assert not catalog.is_current(token)
    assert versions(load(catalog, T)) == [1]


def test_properties_of_a_declared_table_show(root: Path, mode: str) -> None:
    one, other = open_in(mode, root), open_in(mode, root)
    one.create_table(T, declared(a="1"))
    settle(root)
    token = load(other, T).token
    set_properties(one, T, {"a": "2"})
    assert not other.is_current(token)
    fresh = other.load_table(T, known=token)
    assert isinstance(fresh, TableInfo)
    assert fresh.properties["a"] == "2"


def test_a_deregistered_and_a_renamed_table_are_not_current(nested: Directory, root: Path) -> None:
    nested.create_table(T, new_table())
    settle(root)
    token = load(nested, T).token
    assert nested.is_current(token)
    nested.rename_table(T, ("u",))
    assert not nested.is_current(token)
    settle(root)
    token = load(nested, ("u",)).token
    nested.deregister_table(("u",))
    assert not nested.is_current(token)


def test_versions_removed_by_a_cleanup_leave(catalog: Directory, root: Path) -> None:
    info = catalog.create_table(T, new_table())
    for each in range(4):
        dataset = append(info, each)
    dataset.tags.create("second", 2)
    assert versions(load(catalog, T)) == [1, 2, 3, 4, 5]
    dataset.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False)
    assert versions(load(catalog, T)) == [2, 5]
    append(info, 9)
    assert versions(load(catalog, T)) == [2, 5, 6]


def test_any_token_of_another_kind_is_not_current(catalog: Directory) -> None:
    assert not catalog.is_current(("not", "a", "token"))
    assert not catalog.is_current(None)


def test_a_probe_only_looks_at_times(
    catalog: Directory, settled: TableInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it may cost is measured in contract_tests/load."""
    looks = []
    stat = os.stat

    def counted(*args: Any, **kwargs: Any) -> os.stat_result:
        looks.append(args)
        return stat(*args, **kwargs)

    def refused(*args: Any, **kwargs: Any) -> None:
        raise AssertionError(args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", counted)
        for name in ("open", "scandir", "listdir"):
            patch.setattr(os, name, refused)
        patch.setattr("builtins.open", refused)
        assert catalog.is_current(settled.token)
    assert 0 < len(looks) <= 5, looks
