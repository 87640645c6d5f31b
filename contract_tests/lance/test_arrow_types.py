"""Tables of every type that Lance stores, sent as an Arrow stream."""

import datetime
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import lance
import pyarrow as pa
import pytest

from contract_tests.lance.client import Lance, ok, refused
from contract_tests.worlds.bridge import Server

DECIMALS = [Decimal("1.5"), None, Decimal("-2.5")]
WORDS = ["a", None, "longer than twelve bytes"]
BYTES = [b"a", None, b"longer than twelve bytes"]
DAYS = [datetime.date(2020, 1, 1), None, datetime.date(1969, 12, 31)]


def _extension(kind: Any, storage: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, storage)


ARRAYS: dict[str, pa.Array] = {
    "null": pa.nulls(3),
    "bool": pa.array([True, None, False]),
    **{str(kind): pa.array([1, None, 3], kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(kind): pa.array([1, None, 3], kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    **{str(kind): pa.array([1.5, None, 2.5], kind) for kind in (pa.float16(), pa.float32(), pa.float64())},
    "decimal128": pa.array(DECIMALS, pa.decimal128(20, 2)),
    "decimal128 of 38 digits": pa.array(DECIMALS, pa.decimal128(38, 10)),
    "decimal256": pa.array(DECIMALS, pa.decimal256(50, 2)),
    **{str(kind): pa.array(WORDS, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())},
    **{str(kind): pa.array(BYTES, kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())},
    "fixed_size_binary": pa.array([b"abc", None, b"def"], pa.binary(3)),
    "fixed_size_binary without bytes": pa.array([b"", b"", b""], pa.binary(0)),
    "date32": pa.array(DAYS, pa.date32()),
    "date64": pa.array(DAYS, pa.date64()),
    **{str(kind): pa.array([1, None, 3], pa.int32()).cast(kind) for kind in (pa.time32("s"), pa.time32("ms"))},
    **{str(kind): pa.array([1, None, 3]).cast(kind) for kind in (pa.time64("us"), pa.time64("ns"))},
    **{f"timestamp {unit}": pa.array([1, None, 3], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    **{f"timestamptz {unit}": pa.array([1, None, 3], pa.timestamp(unit, "UTC")) for unit in ("s", "us", "ns")},
    **{f"duration {unit}": pa.array([1, None, 3], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "list": pa.array([[1], None, [2, 3]]),
    "large_list": pa.array([[1], None, [2, 3]], pa.large_list(pa.int64())),
    "list of strings": pa.array([["a"], None, ["b", "c"]]),
    "list of views": pa.array([["a"], None, ["b", WORDS[2]]], pa.list_(pa.string_view())),
    "list of decimals": pa.array([[DECIMALS[0]], None, DECIMALS], pa.list_(pa.decimal256(40, 1))),
    "list of dictionaries": pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), pa.array(["a", "b", "a"]).dictionary_encode()
    ),
    "fixed_size_list": pa.array([[1, 2], None, [2, 3]], pa.list_(pa.float32(), 2)),
    "fixed_size_list of decimals": pa.array([DECIMALS, None, DECIMALS], pa.list_(pa.decimal128(10, 1), 3)),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": 2, "b": None}]),
    "struct of decimals": pa.array([{"a": each} for each in DECIMALS], pa.struct({"a": pa.decimal128(20, 2)})),
    "struct of views": pa.array([{"a": each} for each in WORDS], pa.struct({"a": pa.string_view()})),
    "struct without fields": pa.array([{}, {}, {}], pa.struct([])),
    "map": pa.array([[("a", 1)], None, [("b", 2)]], pa.map_(pa.string(), pa.int64())),
    "dictionary": pa.array(WORDS).dictionary_encode(),
    "uuid": _extension(pa.uuid(), pa.array([uuid.UUID(int=1).bytes, None, bytes(16)], pa.binary(16))),
    "bool8": _extension(pa.bool8(), pa.array([1, None, 0], pa.int8())),
    "json": _extension(pa.json_(), pa.array(['{"a":1}', None, "2"])),
    "fixed_shape_tensor": _extension(
        pa.fixed_shape_tensor(pa.float32(), [2]), pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2))
    ),
}  # fmt: skip

NOT_STORED = {
    "decimal32": pa.array(DECIMALS, pa.decimal32(5, 2)),
    "decimal64": pa.array(DECIMALS, pa.decimal64(10, 2)),
    "interval": pa.array([(1, 2, 3), None, (4, 5, 6)], pa.month_day_nano_interval()),
    "list_view": pa.array([[1], None, [2, 3]], pa.list_view(pa.int64())),
    "run_end_encoded": pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array([1, 2])),
    "dense_union": pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()), [pa.array([1, 2]), pa.array(["a"])]
    ),
    "sparse_union": pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, 3])]),
    "fixed_size_list without values": pa.array([[], [], []], pa.list_(pa.int32(), 0)),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lance]:
    folder = tmp_path_factory.mktemp("types")
    with Server(str(folder / "tables"), "--port", "0", cwd=folder) as server, Lance(server.url) as client:
        yield client
        assert "panicked" not in server.text() and "Traceback" not in server.text()


def stream(rows: pa.Table, compression: str | None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        # several batches, so that buffers begin anywhere
        for batch in rows.to_batches():
            writer.write_batch(batch)
            writer.write_batch(batch.slice(1))
    return bytes(sink.getvalue())


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("kind", ARRAYS)
def test_a_type_that_lance_stores(client: Lance, name: str, kind: str, compression: str | None) -> None:
    # a column of one byte before it moves all buffers after it
    rows = pa.table({"first": pa.array([1, 2, 3], pa.int8()), "c": ARRAYS[kind], "last": ARRAYS[kind]})
    made = ok(client.table([name], "create", stream(rows, compression)))
    found = lance.dataset(made["location"]).to_table()
    expected = pa.concat_tables([rows, rows.slice(1)])
    assert found.column_names == expected.column_names
    assert found.to_pylist() == expected.to_pylist()
    if "view" not in kind:
        assert found.schema.types == expected.schema.types


@pytest.mark.parametrize("kind", NOT_STORED)
def test_a_type_that_lance_does_not_store(client: Lance, name: str, kind: str) -> None:
    rows = pa.table({"c": NOT_STORED[kind]})
    refused(client.table([name], "create", stream(rows, None)), 400, 13, "Lance cannot store")
    refused(client.table([name], "exists", {}), 404, 4)
