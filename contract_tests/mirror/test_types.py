"""What becomes of Lance's values: the expected ones are written here by hand."""

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from contract_tests.mirror.mirroring import Lake

ID = uuid.UUID("8c6a1c1e-4f0e-4d6b-9f3e-1d2c3b4a5968")
BERLIN = ZoneInfo("Europe/Berlin")

VALUES: dict[str, tuple[pa.Array, list[Any]]] = {
    "int8": (pa.array([-128, None, 127], pa.int8()), [-128, None, 127]),
    "uint32": (pa.array([2**32 - 1, None, 0], pa.uint32()), [2**32 - 1, None, 0]),
    "uint64": (pa.array([2**64 - 1, None, 0], pa.uint64()), [Decimal(2**64 - 1), None, Decimal(0)]),
    "float16": (pa.array(np.array([1.5, -2, 65504], "f2")), [1.5, -2.0, 65504.0]),
    "float64": (pa.array([1e300, None, -0.0]), [1e300, None, -0.0]),
    "bool": (pa.array([True, None, False]), [True, None, False]),
    "dictionary": (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    "large_string": (pa.array(["ü" * 40, None, ""], pa.large_string()), ["ü" * 40, None, ""]),
    "large_binary": (pa.array([b"\xff" * 40, None, b""], pa.large_binary()), [b"\xff" * 40, None, b""]),
    "fixed": (pa.array([b"abc", None, b"\0\0\0"], pa.binary(3)), [b"abc", None, b"\0\0\0"]),
    "decimal": (
        pa.array([Decimal("123.45"), None, Decimal("-0.01")], pa.decimal128(7, 2)),
        [Decimal("123.45"), None, Decimal("-0.01")],
    ),
    "date32": (
        pa.array([date(1969, 12, 31), None, date(9999, 1, 1)]),
        [date(1969, 12, 31), None, date(9999, 1, 1)],
    ),
    "date64": (
        pa.array([date(2020, 2, 29), None, date(1900, 1, 1)], pa.date64()),
        [date(2020, 2, 29), None, date(1900, 1, 1)],
    ),
    "time32": (
        pa.array([time(1, 2, 3, 4000), None, time(0)], pa.time32("ms")),
        [time(1, 2, 3, 4000), None, time(0)],
    ),
    "time64": (
        pa.array([1001, None, 86_399_999_999_999], pa.time64("ns")),
        [time(0, 0, 0, 1), None, time(23, 59, 59, 999999)],
    ),
    "seconds": (
        pa.array([-1, None, 0], pa.timestamp("s")),
        [datetime(1969, 12, 31, 23, 59, 59), None, datetime(1970, 1, 1)],
    ),
    "nanoseconds": (
        pa.array([1_234_567_890_123_456_789, None, 999], pa.timestamp("ns")),
        [datetime(2009, 2, 13, 23, 31, 30, 123456), None, datetime(1970, 1, 1)],
    ),
    "zoned": (
        pa.array([datetime(2024, 7, 1, 12, tzinfo=BERLIN), None, None], pa.timestamp("us", "Europe/Berlin")),
        [datetime(2024, 7, 1, 10, tzinfo=UTC), None, None],
    ),
    "duration": (pa.array([1500, None, -1], pa.duration("ms")), [1_500_000, None, -1_000]),
    "vector": (pa.array([[1, 2], None, [3, None]], pa.list_(pa.float32(), 2)), [[1.0, 2.0], None, [3.0, None]]),
    "matrix": (
        pa.array([[[1, 2], [3, 4]], None, [[5, 6], [7, 8]]], pa.list_(pa.list_(pa.int16(), 2), 2)),
        [[[1, 2], [3, 4]], None, [[5, 6], [7, 8]]],
    ),
    "list": (pa.array([[1, None], [], None], pa.list_(pa.uint16())), [[1, None], [], None]),
    "large_list": (
        pa.array([[{"x": 1}], [], [None]], pa.large_list(pa.struct([("x", pa.int8())]))),
        [[{"x": 1}], [], [None]],
    ),
    "struct": (
        pa.array(
            [{"a": 1, "v": [1, 2]}, None, {"a": None, "v": None}],
            pa.struct([("a", pa.int8()), ("v", pa.list_(pa.float16(), 2))]),
        ),
        [{"a": 1, "v": [1.0, 2.0]}, None, {"a": None, "v": None}],
    ),
    "map": (
        pa.array([[("k", 1), ("l", None)], [], None], pa.map_(pa.string(), pa.int16())),
        [[("k", 1), ("l", None)], [], None],
    ),
    "uuid": (pa.array([ID.bytes, None, ID.bytes], pa.uuid()), [ID, None, ID]),
}
"""By name: what is written with pylance, and what Iceberg clients are to read."""


NEWER = {"map", "matrix", "struct", "large_list"}
"""What older Lance files cannot hold."""


def write(lake: Lake, *names: str) -> None:
    columns = {name: VALUES[name][0] for name in names or VALUES}
    lake.write(pa.table({"id": [0, 1, 2], **columns}), data_storage_version="2.2")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path))


def test_values_of_every_type(lake: Lake) -> None:
    write(lake)
    lake.bring()
    seen = lake.seen(1)
    assert seen["id"].to_pylist() == [0, 1, 2]
    assert {name: seen[name].to_pylist() for name in VALUES} == {name: each for name, (_, each) in VALUES.items()}


def test_after_deletions_and_compaction(lake: Lake) -> None:
    """Then arrays may be slices of others."""
    write(lake)
    lake.open().delete("id = 1")
    lake.open().optimize.compact_files()
    lake.bring()
    for version in (2, lake.open().version):
        seen = lake.seen(version)
        assert {name: seen[name].to_pylist() for name in VALUES} == {
            name: [each[0], each[2]] for name, (_, each) in VALUES.items()
        }


@pytest.mark.parametrize("storage", ["2.0", "2.1", "2.2"])
def test_every_file_format(lake: Lake, storage: str) -> None:
    columns = {name: array for name, (array, _) in VALUES.items() if storage == "2.2" or name not in NEWER}
    lake.write(pa.table({"id": [0, 1, 2], **columns}), data_storage_version=storage)
    lake.bring()
    seen = lake.seen(1)
    for name in columns:
        assert seen[name].to_pylist() == VALUES[name][1], name


def test_rows_of_many_batches(lake: Lake) -> None:
    size = 40_000
    floats = np.arange(size * 128, dtype="f4")
    rows = pa.table({"id": np.arange(size), "v": pa.FixedSizeListArray.from_arrays(pa.array(floats), 128)})
    lake.write(rows)
    lake.open().delete("id % 1000 = 7")
    lake.bring()
    seen = lake.seen(2).sort_by("id")
    assert len(seen) == size - size // 1000
    kept = np.arange(size)[np.arange(size) % 1000 != 7]
    assert seen["id"].to_numpy().tolist() == kept.tolist()
    assert np.array_equal(seen["v"].combine_chunks().flatten().to_numpy(), floats.reshape(-1, 128)[kept].ravel())
