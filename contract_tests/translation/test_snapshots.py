"""Lance versions and tags as Iceberg snapshots, log and refs."""

import re
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.snapshots import Snapshot

from contract_tests.translation.lance_tables import alter, table_info
from contract_tests.translation.strategies import table, table_infos, version
from contract_tests.translation.tables import PLAIN
from irc_bridge.catalog.models import Field, IcebergView, MirrorLag, TableInfo
from irc_bridge.translation.metadata import table_metadata


def snapshots(info: TableInfo) -> list[Snapshot]:
    return table_metadata(info, PLAIN).snapshots


def rows(count: int) -> pa.Table:
    return pa.table({"a": list(range(count)), "b": ["x"] * count})


@given(info=table_infos())
def test_time_never_runs_backwards(info: TableInfo) -> None:
    metadata = table_metadata(info, PLAIN)

    times = [entry.timestamp_ms for entry in metadata.snapshot_log]
    assert times == sorted(times)
    assert metadata.last_updated_ms >= times[-1]
    assert [entry.snapshot_id for entry in metadata.snapshot_log] == [known.version for known in info.versions]
    for entry, known in zip(metadata.snapshot_log, info.versions, strict=True):
        assert entry.timestamp_ms >= known.timestamp_ms


@given(info=table_infos())
def test_a_version_is_a_snapshot_of_the_same_number(info: TableInfo) -> None:
    metadata = table_metadata(info, PLAIN)

    numbers = [known.version for known in info.versions]
    assert [snapshot.snapshot_id for snapshot in metadata.snapshots] == numbers
    assert [snapshot.sequence_number for snapshot in metadata.snapshots] == numbers
    assert [snapshot.parent_snapshot_id for snapshot in metadata.snapshots] == [
        each - 1 or None for each in numbers
    ]
    assert metadata.current_snapshot_id == metadata.last_sequence_number == numbers[-1]


@given(info=table_infos())
def test_refs_point_to_listed_snapshots_and_main_to_the_latest(info: TableInfo) -> None:
    metadata = table_metadata(info, PLAIN)

    listed = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    assert metadata.refs["main"].snapshot_id == metadata.current_snapshot_id
    assert str(metadata.refs["main"].snapshot_ref_type) == "branch"
    tags = {name: ref.snapshot_id for name, ref in metadata.refs.items() if name != "main"}
    assert tags == {name: number for name, number in info.tags.items() if number in listed and name != "main"}
    assert {str(metadata.refs[name].snapshot_ref_type) for name in tags} <= {"tag"}


def test_clocks_that_go_back_and_come_right_again() -> None:
    info = table(version(1, 1000), version(2, 400), version(3, 1000), version(5, 900), version(6, 2000))

    log = table_metadata(info, PLAIN).snapshot_log
    assert [entry.timestamp_ms for entry in log] == [1000, 1000, 1000, 1000, 2000]
    assert [snapshot.timestamp_ms for snapshot in snapshots(info)] == [1000, 400, 1000, 900, 2000]


@pytest.mark.parametrize(
    ("word", "operation"),
    [
        ("Append", "append"),
        ("Delete", "delete"),
        ("Overwrite", "overwrite"),
        ("Update", "overwrite"),
        ("Merge", "overwrite"),
        ("DataReplacement", "overwrite"),
        ("DataOverlay", "overwrite"),
        ("Restore", "overwrite"),
        ("Clone", "overwrite"),
        ("Unknown", "overwrite"),
        ("", "overwrite"),
        ("Rewrite", "replace"),
        ("CreateIndex", "replace"),
        ("Project", "replace"),
        ("UpdateConfig", "replace"),
        ("ReserveFragments", "replace"),
    ],
)
def test_every_lance_operation_has_an_iceberg_operation(word: str, operation: str) -> None:
    (snapshot,) = snapshots(table(version(1, operation=word)))

    assert snapshot.summary is not None
    assert snapshot.summary.operation.value == operation


def test_operations_of_pylance_are_all_decided() -> None:
    """A new one must be looked at: does it leave the rows as they are?"""
    operations = {
        name
        for name, kind in vars(lance.LanceOperation).items()
        if isinstance(kind, type) and issubclass(kind, lance.LanceOperation.BaseOperation)
    }

    assert operations - {"BaseOperation"} == {
        "Append",
        "Clone",
        "CreateIndex",
        "DataOverlay",
        "DataReplacement",
        "Delete",
        "Merge",
        "Overwrite",
        "Project",
        "Restore",
        "Rewrite",
        "Update",
        "UpdateConfig",
    }


def test_a_real_history(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(10), tmp_path / "t")
    dataset = lance.write_dataset(rows(5), tmp_path / "t", mode="append")
    dataset.tags.create("before", 2)
    dataset.delete("a < 3")
    dataset.update({"b": "'y'"}, where="a = 8")
    alter(dataset, path="b", name="c")
    dataset.create_scalar_index("a", "BTREE")
    dataset.tags.create("main", 3)

    metadata = table_metadata(table_info(tmp_path / "t"), PLAIN)

    operations = [snapshot.summary.operation.value for snapshot in metadata.snapshots if snapshot.summary]
    assert operations == ["overwrite", "append", "delete", "overwrite", "replace", "replace"]
    assert {name: (ref.snapshot_id, str(ref.snapshot_ref_type)) for name, ref in metadata.refs.items()} == {
        "main": (6, "branch"),
        "before": (2, "tag"),
    }
    assert [snapshot.schema_id for snapshot in metadata.snapshots] == [1, 1, 1, 1, 5, 5]


def test_counts_are_those_of_lance_and_records_are_rows_that_a_reader_sees(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(10), tmp_path / "t")
    dataset = lance.write_dataset(rows(5), tmp_path / "t", mode="append")
    dataset.delete("a < 3")

    for snapshot in snapshots(table_info(tmp_path / "t")):
        seen = lance.dataset(tmp_path / "t", version=snapshot.snapshot_id)
        fragments = seen.get_fragments()
        assert snapshot.summary is not None
        assert snapshot.summary.additional_properties == {
            "total-records": str(seen.count_rows()),
            "total-data-files": str(sum(len(fragment.data_files()) for fragment in fragments)),
            "total-delete-files": str(sum(fragment.deletion_file() is not None for fragment in fragments)),
            "total-files-size": str(
                sum(file.file_size_bytes or 0 for fragment in fragments for file in fragment.data_files())
            ),
        }


def test_counts_that_lance_does_not_give_are_left_out() -> None:
    (snapshot,) = snapshots(table(version(1, total_rows="3", total_fragments="1")))

    assert snapshot.summary is not None
    assert snapshot.summary.additional_properties == {"total-records": "3"}


@given(info=table_infos())
def test_a_manifest_list_is_a_path_below_the_table_that_says_what_to_do(info: TableInfo) -> None:
    for snapshot in snapshots(info):
        folder, name = snapshot.manifest_list.rsplit("/", 1)
        assert folder == f"{info.location}/_iceberg"
        assert re.fullmatch(r"[A-Za-z0-9._-]+\.avro", name)
        assert f"Lance-version-{snapshot.snapshot_id}-has-no-Parquet-copy" in name
        assert "run-irc-bridge-mirror-or-read-it-with-lance.dataset-of-pylance" in name


LISTS = "file:///data/t.lance/_iceberg/versions"
OTHER = (Field(0, "a", pa.int64(), True), Field(1, "b", pa.string(), True))


def lagging(*mirrored: int, **properties: str) -> TableInfo:
    """Four versions, of which the last two have a column more."""
    versions = [version(number, 1000 * number) for number in (1, 2, 3, 4)]
    versions[2:] = [replace(each, schema=OTHER, max_field_id=1) for each in versions[2:]]
    lists = {number: f"{LISTS}/{number}-x.avro" for number in mirrored}
    return replace(table(*versions, tags={"old": 1, "new": 3}, properties=properties), mirrored=lists)


@pytest.mark.parametrize(
    ("mirrored", "properties", "lag", "current"),
    [
        ((1, 2), {}, "serve-mirrored", 2),
        ((1, 2), {"managed_by": "STORAGE"}, "serve-mirrored", 2),
        ((4,), {}, "serve-mirrored", 4),
        ((), {}, "serve-mirrored", 4),
        ((1, 2), {}, "serve-latest", 4),
        ((1, 2), {"managed_by": "impl"}, "serve-mirrored", 4),
        ((1, 2), {"managed_by": "Impl"}, "serve-latest", 4),
    ],
)
def test_which_version_is_current(
    mirrored: tuple[int, ...], properties: dict[str, str], lag: MirrorLag, current: int
) -> None:
    metadata = table_metadata(lagging(*mirrored, **properties), replace(PLAIN, mirror_lag=lag))

    assert metadata.current_snapshot_id == metadata.refs["main"].snapshot_id == current
    assert [entry.snapshot_id for entry in metadata.snapshot_log] == list(range(1, current + 1))
    assert [snapshot.snapshot_id for snapshot in metadata.snapshots] == [1, 2, 3, 4]
    assert metadata.schema().column_names == (["a"] if current == 2 else ["a", "b"])
    schemas = {schema.schema_id: schema.column_names for schema in metadata.schemas}
    shown = [schemas[snapshot.schema_id] for snapshot in metadata.snapshots if snapshot.schema_id is not None]
    assert shown == [["a"], ["a"], ["a", "b"], ["a", "b"]]
    assert (metadata.last_sequence_number, metadata.last_updated_ms, metadata.last_column_id) == (4, 4000, 2)
    assert {name: ref.snapshot_id for name, ref in metadata.refs.items()} == {"old": 1, "new": 3, "main": current}
    said = [metadata.properties.get(f"irc-bridge.{name}-version") for name in ("latest", "mirrored")]
    assert said == (["4", str(max(mirrored))] if mirrored else [None, None])


def test_a_mirrored_version_names_its_list() -> None:
    named = {each.snapshot_id: each.manifest_list for each in snapshots(lagging(2, 4))}

    assert (named[2], named[4]) == (f"{LISTS}/2-x.avro", f"{LISTS}/4-x.avro")
    assert all("has-no-Parquet-copy" in named[number] for number in (1, 3))


@given(info=table_infos(), chosen=st.sets(st.integers(0, 7)))
def test_a_log_ends_with_the_current_snapshot(info: TableInfo, chosen: set[int]) -> None:
    """Java refuses metadata of which this, or one of the others, is not so."""
    numbers = [known.version for known in info.versions]
    mirrored = {numbers[each]: "list" for each in chosen if each < len(numbers)}

    metadata = table_metadata(replace(info, mirrored=mirrored), PLAIN)

    assert metadata.current_snapshot_id == max(mirrored, default=numbers[-1])
    assert metadata.snapshot_log[-1].snapshot_id == metadata.current_snapshot_id
    assert metadata.last_updated_ms >= metadata.snapshot_log[-1].timestamp_ms
    assert metadata.last_sequence_number == metadata.snapshots[-1].sequence_number == numbers[-1]


@given(info=table_infos(), kept=st.sets(st.integers(0, 7)))
def test_a_snapshot_is_the_same_whichever_others_are_cleaned_up(info: TableInfo, kept: set[int]) -> None:
    """Java takes a snapshot with another parent, number or time for another one, and deletes files of the old."""
    left = tuple(each for number, each in enumerate(info.versions) if number in kept) or info.versions[-1:]

    before = {snapshot.snapshot_id: snapshot for snapshot in snapshots(info)}
    after = snapshots(replace(info, versions=left))

    def identity(snapshot: Snapshot) -> tuple[object, ...]:
        return snapshot.parent_snapshot_id, snapshot.sequence_number, snapshot.timestamp_ms

    assert {each.snapshot_id: identity(each) for each in after} == {
        each.version: identity(before[each.version]) for each in left
    }


@given(info=table_infos())
def test_the_guard_is_one_snapshot_more_to_which_nothing_refers(info: TableInfo) -> None:
    plain, guarded = table_metadata(info, PLAIN), table_metadata(info, IcebergView())

    first, *others = guarded.snapshots
    assert others == plain.snapshots
    assert (first.snapshot_id, first.sequence_number, first.timestamp_ms, first.parent_snapshot_id) == (
        0,
        0,
        0,
        None,
    )
    assert first.schema_id == guarded.current_schema_id
    assert first.summary is not None and first.summary["irc-bridge.guard"] == "true"
    assert first.manifest_list == (
        "file:///data/t.lance/_iceberg/This-is-a-Lance-table--clean-it-up-with-Lance.avro"
    )
    without = {"snapshots": guarded.snapshots}
    assert plain.model_copy(update=without) == guarded


def test_only_a_full_list_has_the_guard_and_a_declared_table_has_none() -> None:
    refs = table_metadata(table(version(1)), IcebergView(), full=False)

    assert [snapshot.snapshot_id for snapshot in refs.snapshots] == [1]
    assert table_metadata(table(), IcebergView()).snapshots == []


@pytest.mark.parametrize(("rows", "expected"), [("0", "no-rows"), ("1", "Lance-version-3-has-no-Parquet-copy")])
def test_the_copy_of_a_version_without_rows_is_the_list_without_manifests(rows: str, expected: str) -> None:
    latest = version(3, 3000, total_rows=rows)
    info = replace(table(version(1), version(2), latest), empty_list="file:///data/t.lance/no-rows.avro")

    last = snapshots(info)[-1]
    assert last.manifest_list.removeprefix("file:///data/t.lance/").removeprefix("_iceberg/").startswith(expected)


@pytest.mark.parametrize(("rows", "current"), [("0", 3), ("5", 1)])
def test_a_latest_version_without_rows_is_shown_before_an_older_copy(rows: str, current: int) -> None:
    info = table(version(1), version(2), version(3, 3000, total_rows=rows))
    info = replace(info, mirrored={1: "list"}, empty_list="empty")

    assert table_metadata(info, PLAIN).current_snapshot_id == current
