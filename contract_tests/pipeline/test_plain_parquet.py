"""Parquet files that executors read by themselves: rows and types are those of Spark's own reading."""

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from contract_tests.pipeline.conftest import Import
from contract_tests.pipeline.tables import T, at, contents, files, rows
from contract_tests.worlds.spark import LEAVES_SOCKETS
from irc_bridge.errors import Internal
from irc_bridge.pipeline.plain_parquet import shares

pytestmark = LEAVES_SOCKETS

NOON = datetime.datetime(2024, 1, 1, 12)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "id": (pa.int64(), [1, 2, 3]),
    "tiny": (pa.int8(), [1, None, -3]),
    "small": (pa.int16(), [1, None, -3]),
    "whole": (pa.int32(), [1, None, -3]),
    "single": (pa.float32(), [1.5, None, float("-inf")]),
    "double": (pa.float64(), [1.5, None, float("inf")]),
    "decimal": (pa.decimal128(4, 2), [decimal.Decimal("12.34"), None, decimal.Decimal("-0.01")]),
    "yes": (pa.bool_(), [True, None, False]),
    "text": (pa.string(), ["a", None, "é" * 1000]),
    "large": (pa.large_string(), ["a", None, ""]),
    "kind": (pa.dictionary(pa.int32(), pa.string()), ["a", None, "a"]),
    "bytes": (pa.binary(), [b"\x00", None, b""]),
    "key": (pa.large_binary(), [b"\x00", None, b""]),
    "day": (pa.date32(), [datetime.date(2024, 2, 29), None, datetime.date(1582, 10, 10)]),
    "moment": (pa.timestamp("us", "UTC"), [NOON, None, datetime.datetime(1, 1, 1)]),
    "abroad": (pa.timestamp("ms", "Europe/Paris"), [NOON, None, NOON]),
    "local": (pa.timestamp("us"), [NOON, None, datetime.datetime(9999, 12, 31)]),
    "list": (pa.list_(pa.int32()), [[1, None], None, []]),
    "vector": (pa.list_(pa.float32(), 2), [[1, 2], None, [3, 4]]),
    "map": (pa.map_(pa.string(), pa.list_(pa.float64())), [[("k", [1.0])], None, []]),
    "struct": (pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))]), [{"a": 1}, None, {}]),
}
EVERY_TYPE = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})
OTHER = pa.schema([("id", pa.int64()), ("kind", pa.string())])


def every_type(folder: Path) -> None:
    pq.write_table(EVERY_TYPE, folder / "a.parquet")


def many_row_groups(folder: Path) -> None:
    for number in range(3):
        pq.write_table(rows(range(1000 * number, 1000 * number + 900)), folder / f"{number}.parquet", 100)


def larger_than_a_share(folder: Path) -> None:
    noise = pa.array([str(hash((1, each))) * 20 for each in range(40_000)])
    table = pa.table({"id": range(40_000), "noise": noise})
    pq.write_table(table, folder / "a.parquet", 5_000, compression="none", use_dictionary=False)


def odd_names(folder: Path) -> None:
    for number, name in enumerate(["a b", "a?b", "a#b", "50%", "a%20b", "é", "[1]", "{2}"]):
        pq.write_table(rows([number]), folder / f"{name}.parquet")


def other_order(folder: Path) -> None:
    pq.write_table(rows([1]), folder / "a.parquet")
    pq.write_table(rows([2]).select(["name", "id"]), folder / "b.parquet")


def without_rows(folder: Path) -> None:
    pq.write_table(rows([]), folder / "a.parquet")
    pq.write_table(rows([1]), folder / "b.parquet")
    pq.ParquetWriter(folder / "c.parquet", rows([]).schema).close()


def nothing_at_all(folder: Path) -> None:
    pq.write_table(rows([]), folder / "a.parquet")


def int96(folder: Path) -> None:
    table = pa.table({"id": [1], "at": pa.array([NOON], pa.timestamp("us"))})
    pq.write_table(table, folder / "a.parquet", use_deprecated_int96_timestamps=True)


def unsigned(folder: Path) -> None:
    pq.write_table(pa.table({"id": [1], "n": pa.array([4_000_000_000], pa.uint32())}), folder / "a.parquet")


def a_later_column_less(folder: Path) -> None:
    pq.write_table(rows(range(2000)), folder / "a.parquet")
    pq.write_table(rows([5000]).select(["id"]), folder / "b.parquet")


def a_later_column_more(folder: Path) -> None:
    pq.write_table(rows(range(2000)), folder / "a.parquet")
    pq.write_table(rows([5000]).append_column("more", [[1]]), folder / "b.parquet")


def a_later_narrow_column(folder: Path) -> None:
    pq.write_table(rows(range(2000)), folder / "a.parquet")
    pq.write_table(rows([5000]).set_column(0, "id", pa.array([5000], pa.int32())), folder / "b.parquet")


def of_an_old_spark(folder: Path) -> None:
    old = {"org.apache.spark.version": "2.4.8"}
    table = pa.table({"id": [1, 2], "day": [datetime.date(1500, 1, 1), datetime.date(2024, 1, 1)]})
    pq.write_table(table.replace_schema_metadata(old), folder / "a.parquet")


def of_another_calendar(folder: Path) -> None:
    spark = {"org.apache.spark.version": "4.1.0", "org.apache.spark.legacyDateTime": ""}
    table = pa.table({"id": [1, 2], "day": [datetime.date(1500, 1, 1), datetime.date(2024, 1, 1)]})
    pq.write_table(table.replace_schema_metadata(spark), folder / "a.parquet")


def partitions(folder: Path) -> None:
    for kind in ("a", "b"):
        (folder / f"kind={kind}").mkdir()
        pq.write_table(rows([ord(kind)]), folder / f"kind={kind}" / "a.parquet")


def partitions_that_know_better(folder: Path) -> None:
    for kind in ("a", "b"):
        (folder / f"kind={kind}").mkdir()
        table = pa.table({"id": [ord(kind)], "kind": ["not this"]}, schema=OTHER)
        pq.write_table(table, folder / f"kind={kind}" / "a.parquet")


PLAIN = [every_type, many_row_groups, larger_than_a_share, odd_names, other_order, without_rows, nothing_at_all]
BY_SPARK = [int96, unsigned, of_an_old_spark, of_another_calendar, partitions]
BY_SPARK += [partitions_that_know_better]
FOUND_OUT_LATER = [a_later_column_less, a_later_column_more, a_later_narrow_column]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("make", [*PLAIN, *BY_SPARK, *FOUND_OUT_LATER], ids=lambda make: make.__name__)
def test_the_same_as_by_spark(
    run_import: Import, spark: SparkSession, root: Path, source: Path, make: Callable[[Path], None]
) -> None:
    make(source)
    done = run_import(source, T)
    wanted = run_import(f"SELECT * FROM parquet.`{source}`", "main.default.by_spark", "--format", "sql")
    assert done["rows"] == wanted["rows"]
    assert at(root).schema == at(root, name="by_spark").schema
    assert contents(at(root)) == contents(at(root, name="by_spark"))
    fragments = at(root).get_fragments()
    used = {f"data/{file.path}" for fragment in fragments for file in fragment.data_files()}
    assert {each for each in files(root) if each.startswith("data/")} == used
    frame = spark.read.parquet(str(source))
    shared = shares(frame, frame.limit(0).toArrow().schema)
    assert bool(shared) == (make not in BY_SPARK)
    if make is larger_than_a_share:
        assert len(shared) == 2


def test_a_file_that_is_no_parquet(run_import: Import, root: Path, source: Path) -> None:
    many_row_groups(source)
    broken = source / "1.parquet"
    broken.write_bytes(broken.read_bytes()[:-2000])
    with pytest.raises(Internal, match=r"1\.parquet"):
        run_import(source, T)
    assert list(root.glob("t.lance/data/*")) == []
