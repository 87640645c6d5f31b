"""Every version of a table with a life is what pylance says it is."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from contract_tests.mirror.mirroring import ALL, Lake, in_turn, same_rows
from contract_tests.worlds.s3 import S3

NESTED = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int16()))])


def rows(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": [f"row {each}" for each in ids],
            "vector": pa.array([[each, 0.5] for each in ids], pa.list_(pa.float32(), 2)),
            "nested": pa.array([{"a": each, "b": None if each % 2 else [each]} for each in ids], NESTED),
        }
    )


@pytest.fixture(params=["local", "s3"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    if request.param == "local":
        return Lake(str(tmp_path))
    server: S3 = request.getfixturevalue("s3")
    return Lake(server.bucket("mirror"), server.options)


def live(lake: Lake) -> None:
    """16 versions."""
    lake.write(rows(0, 10))
    dataset = lake.write(rows(10, 30), mode="append", max_rows_per_file=7)
    dataset.delete("id % 5 = 1")
    dataset.update({"text": "'new'"}, where="id = 3")
    dataset.add_columns({"twice": "id * 2"})
    dataset.add_columns(pa.schema([pa.field("none", pa.string())]))
    dataset.delete("id % 5 = 2")
    lake.rename("text", "words")
    dataset = lake.open()
    dataset.drop_columns(["nested"])
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    dataset.delete("id = 14")
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        dataset.to_table().slice(3, 4)
    )
    dataset.create_scalar_index("id", "BTREE")
    lake.write(rows(100, 105), mode="overwrite").delete("true")
    lake.write(rows(7, 9), mode="append")


def require_alike(lake: Lake, versions: list[int]) -> None:
    assert lake.mirror().present() == set(versions)
    for version in versions:
        assert same_rows(lake.seen(version), lake.open(version).to_table()), version


def test_every_version(lake: Lake) -> None:
    live(lake)
    numbers = [version["version"] for version in lake.open().versions()]
    assert len(numbers) > 15
    assert [each.version for each in lake.bring()] == numbers
    require_alike(lake, numbers)
    assert lake.bring() == []


def test_some_versions_and_then_those_between(lake: Lake) -> None:
    live(lake)
    last = lake.open().version
    assert [each.version for each in lake.bring([7])] == [7]
    assert [each.version for each in lake.bring([last, 4, 12])] == [4, 12, last]
    require_alike(lake, [4, 7, 12, last])
    lake.bring()
    require_alike(lake, [*range(1, last + 1)])


def test_what_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    for number in range(20):
        lake.write(rows(number, number + 1), mode="append")
    [brought] = lake.bring([20])
    assert (brought.files_written, brought.files_reused) == (20, 0)
    dataset = lake.write(rows(20, 21), mode="append")
    [brought] = lake.bring([21])
    assert (brought.files_written, brought.files_reused) == (1, 20)
    dataset.delete("id = 3")
    dataset.create_scalar_index("text", "BTREE")
    deletion, index = lake.bring([22, 23])
    assert (deletion.files_written, deletion.files_reused) == (0, 20)  # the fragment has no row left
    assert (index.files_written, index.files_reused) == (0, 20)
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    compacted = lake.bring()[-1]
    assert (compacted.files_written, compacted.files_reused) == (1, 0)
    dataset.add_columns({"z": "id"})
    dataset.drop_columns(["text"])
    added, dropped = lake.bring()
    assert (added.files_written, dropped.files_written) == (1, 0)


def test_the_manifests_of_many_fragments_are_not_written_again(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.write(pa.table({"id": range(2500)}), max_rows_per_file=1)
    lake.bring([1])
    before = lake.files("manifests")
    assert len(before) == 3
    lake.write(pa.table({"id": [2500]}), mode="append")
    lake.open().delete("id = 700")
    lake.bring([2])
    added = lake.files("manifests") - before
    assert len(added) == 1
    lake.bring([3])
    rewritten = lake.files("manifests") - before - added
    assert len(rewritten) == 1
    for version in (1, 2, 3):
        assert same_rows(lake.seen(version), lake.open(version).to_table())


def test_many_small_manifests_become_few(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    for number in range(230):
        lake.write(pa.table({"id": [number]}), mode="append")
    lake.bring()
    seen = lake.seen(230)
    assert sorted(seen["id"].to_pylist()) == [*range(230)]
    [newest] = [name for name in lake.files("versions") if name.startswith("230-")]
    listed = Path(lake.uri, "_iceberg", "versions", newest).read_bytes()
    assert listed.count(b"_iceberg/manifests/") + listed.count(b".avro") < 230 * 2


def test_a_table_made_again_has_a_mirror_of_its_own(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.write(rows(0, 3))
    lake.bring()
    kept = Path(lake.uri, "_iceberg").rename(tmp_path / "kept")
    for each in [*Path(lake.uri).rglob("*")][::-1]:
        each.unlink() if each.is_file() else each.rmdir()
    lake.write(rows(5, 6))
    kept.rename(Path(lake.uri, "_iceberg"))
    assert lake.mirror().present() == set()
    lake.bring()
    assert lake.seen(1)["id"].to_pylist() == [5]


def test_rows_without_a_column_to_show_are_counted(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.write(pa.table({"id": [1, 2, 3], "hidden": pa.array([1, 2, 3], pa.decimal256(60, 2))}))
    lake.open().drop_columns(["id"])
    lake.open().add_columns(pa.schema([pa.field("later", pa.string())]))
    assert [each.rows for each in lake.bring()] == [3, 3, 3]
    assert lake.seen(3).to_pylist() == [{"later": None}] * 3


def test_versions_that_lance_cleans_up_meanwhile_are_left_out(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    for number in range(3):
        lake.write(rows(number, number + 1), mode="overwrite")
    mirror = lake.mirror()
    lake.open().cleanup_old_versions(timedelta(0))
    outcomes = {each.version: each.outcome for each in mirror.bring(ALL, in_turn)}
    assert outcomes == {1: "cleaned up meanwhile", 2: "cleaned up meanwhile", 3: "mirrored"}
    require_alike(lake, [3])
