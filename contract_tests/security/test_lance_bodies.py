"""Arrow bodies that claim to be larger than they are, or are none at all."""

import random
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract_tests.lance.client import ROWS, Lance, ipc, ok
from contract_tests.lance.test_arrow_types import ARRAYS, stream
from contract_tests.worlds.bridge import Server

MIB = 1024**2
LIMIT = 64 * MIB
_SOME = 123456
"""A number of rows that stands nowhere else in a stream."""
GROWTH = 3 * LIMIT
"""What a body of the largest size may take: as it came, as it is read, and while Lance writes it."""


class Attacked:
    def __init__(self, server: Server, client: Lance) -> None:
        self.server = server
        self.client = client
        self.process = psutil.Process(server.process.pid)

    @property
    def peak(self) -> int:
        """The most memory that the server ever had."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

    def refuses(self, body: bytes, *statuses: int) -> str:
        answer = self.client.table(["bomb"], "create", body)
        assert answer.status_code in (statuses or (400, 413)), answer.text[:500]
        assert answer.json()["code"] == 13
        assert self.client.table(["bomb"], "exists", {}).status_code == 404
        message: str = answer.json()["error"]
        return message


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    folder = tmp_path_factory.mktemp("bodies")
    (folder / "irc-bridge.toml").write_text(
        f'[server]\nmax_create_body_bytes = {LIMIT}\n[warehouses.main]\nroot = "{folder / "tables"}"\n'
    )
    with Server("--port", "0", cwd=folder) as server, Lance(server.url) as client:
        ok(client.create(["warm"]))
        yield Attacked(server, client)
        assert "panicked" not in server.text() and "Traceback" not in server.text()


def one(array: pa.Array) -> pa.Table:
    return pa.table({"c": array})


def zeros(size: int) -> pa.Table:
    return one(
        pa.FixedSizeBinaryArray.from_buffers(pa.binary(MIB), size // MIB, [None, pa.py_buffer(bytes(size))])
    )


def with_options(rows: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def of_length(length: int, rows: pa.Table) -> bytes:
    """What says that it has so many rows."""
    return ipc(rows).replace(struct.pack("<q", _SOME), struct.pack("<q", length))


def views(count: int, size: int) -> pa.Array:
    """Many views of one text."""
    numbers = np.zeros((count, 4), np.int32)
    numbers[:, 0] = size
    numbers[:, 1] = int.from_bytes(b"xxxx", "little")
    return pa.Array.from_buffers(
        pa.string_view(), count, [None, pa.py_buffer(numbers.tobytes()), pa.py_buffer(b"x" * size)]
    )


def growing_dictionary(deltas: int, size: int) -> bytes:
    """Each batch adds to the dictionary of the one before, which is copied each time."""
    sink, words = pa.BufferOutputStream(), list[str]()
    schema = pa.schema([("c", pa.dictionary(pa.int32(), pa.string()))])
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as writer:
        for number in range(deltas):
            words.append(f"{number}" + "x" * size)
            column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), words)
            writer.write_batch(pa.record_batch([column], schema=schema))
    return bytes(sink.getvalue())


def small_batches(count: int) -> bytes:
    head = ipc(ROWS.slice(0, 0))[:-8]
    batch = ipc(ROWS.slice(0, 1))[len(head) : -8]
    return head + batch * count


def deep(levels: int) -> pa.Table:
    kind = pa.int8()
    for _ in range(levels):
        kind = pa.list_(kind)
    return pa.table({"c": pa.array([], kind)})


BOMBS: dict[str, Callable[[], bytes]] = {
    "zeros in zstd": lambda: with_options(zeros(512 * MIB), compression="zstd"),
    "zeros in lz4": lambda: with_options(zeros(512 * MIB), compression="lz4"),
    "text in zstd": lambda: with_options(one(pa.array(["x" * (128 * MIB)])), compression="zstd"),
    "a dictionary in zstd": lambda: with_options(
        one(pa.array(["x" * (128 * MIB)]).dictionary_encode()), compression="zstd"
    ),
    "2^33 nulls": lambda: of_length(2**33, one(pa.nulls(_SOME))),
    "2^62 nulls": lambda: of_length(2**62, one(pa.nulls(_SOME))),
    "2^28 nulls in a struct": lambda: of_length(2**28, one(pa.StructArray.from_arrays([pa.nulls(_SOME)], ["a"]))),
    "empty structs": lambda: ipc(one(pa.Array.from_buffers(pa.struct([]), 2**30, [None]))),
    "lists of 2^27 nulls": lambda: ipc(one(pa.FixedSizeListArray.from_arrays(pa.nulls(2**27), 2**27))),
    "one run": lambda: with_options(
        one(pa.RunEndEncodedArray.from_arrays(pa.array([2**40], pa.int64()), pa.array([1]))), allow_64bit=True
    ),
    "views": lambda: ipc(one(views(4000, MIB))),
    "views in a struct": lambda: ipc(one(pa.StructArray.from_arrays([views(4000, MIB)], ["a"]))),
    "views in a list": lambda: ipc(one(pa.LargeListArray.from_arrays([0, 4000], views(4000, MIB)))),
    "views in a dictionary": lambda: ipc(one(pa.DictionaryArray.from_arrays(pa.array([0]), views(4000, MIB)))),
    "a growing dictionary": lambda: growing_dictionary(100, 100_000),
    "small batches": lambda: small_batches(150_000),
    "a schema of 20 MB": lambda: ipc(pa.table({"c": [1]}).replace_schema_metadata({"a": "x" * 20_000_000})),
    "200000 columns": lambda: ipc(pa.table({f"c{number}": pa.array([], pa.int8()) for number in range(200_000)})),
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_body_that_takes_more_memory_than_the_limit(attacked: Attacked, bomb: str) -> None:
    before = attacked.peak
    body = BOMBS[bomb]()
    assert len(body) < LIMIT
    attacked.refuses(body)
    assert attacked.peak - before < GROWTH


def test_a_body_of_the_largest_size_is_taken(attacked: Attacked, name: str) -> None:
    rows = one(pa.array(np.random.default_rng(1).integers(0, 2**62, (LIMIT - MIB) // 8)))
    before = attacked.peak
    ok(attacked.client.table([name], "create", ipc(rows)))
    assert attacked.peak - before < 2 * GROWTH


def test_creates_do_not_keep_others_waiting(attacked: Attacked) -> None:
    """All of them write for a while."""
    body = ipc(
        pa.table({"c": pa.nulls(LIMIT - MIB), "d": pa.array([True] * (LIMIT - MIB))}).slice(0, LIMIT // 2 - MIB)
    )
    with ThreadPoolExecutor(20) as callers, Lance(attacked.server.url) as other:
        creates = [
            callers.submit(attacked.client.table, ["slow"], "create", body, mode="overwrite") for _ in range(20)
        ]
        for _ in range(20):
            ok(other.table(["warm"], "describe", {}))
        assert not all(each.done() for each in creates)
        assert {each.result().status_code for each in creates} == {200}


PLAIN = ipc(ROWS)
NONE = {
    "only the end": b"\xff\xff\xff\xff\0\0\0\0",
    "a batch without a schema": PLAIN[len(ipc(ROWS.slice(0, 0))) - 8 :],
    "zeros": bytes(1000),
    "a length of 2 GiB": b"\xff\xff\xff\xff\xff\xff\xff\x7f" + PLAIN[8:],
    "a negative length": b"\xff\xff\xff\xff\xff\xff\xff\xff" + PLAIN[8:],
    "JSON": b'{"id": [1]}',
    "parquet": b"PAR1" + bytes(100) + b"PAR1",
    "no UTF-8": ipc(pa.table({"nnnn": [1]})).replace(b"nnnn", b"\xff\xff\xff\xff"),
    "metadata in no UTF-8": ipc(ROWS.replace_schema_metadata({"kkkk": "v"})).replace(b"kkkk", b"\xff" * 4),
    "a time zone in no UTF-8": ipc(one(pa.array([1], pa.timestamp("s", "ZZZZ")))).replace(b"ZZZZ", b"\xff" * 4),
    "compressed as by Arrow 0.17": ipc(ROWS.replace_schema_metadata({"ARROW:experimental_compression": "zstd"})),
    "texts in no UTF-8": ipc(one(pa.array(["abcdefgh"]))).replace(b"abcdefgh", b"\xff" * 8),
    "offsets that fall": ipc(one(pa.array(["aaaa", "bbbb"]))).replace(
        struct.pack("<iii", 0, 4, 8), struct.pack("<iii", 0, 8, 4)
    ),
    "63 levels": ipc(deep(63)),
    "120 levels": ipc(deep(120)),
}  # fmt: skip


def test_a_file_is_no_stream(attacked: Attacked) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    attacked.refuses(bytes(sink.getvalue()), 400)


@pytest.mark.parametrize("kind", NONE)
def test_a_body_that_is_no_stream(attacked: Attacked, kind: str) -> None:
    attacked.refuses(NONE[kind], 400)


def test_a_schema_as_deep_as_lance_reads_it(attacked: Attacked, name: str) -> None:
    ok(attacked.client.create([name], deep(62)))
    ok(attacked.client.table([name], "describe", {"load_detailed_metadata": True}))


def test_a_stream_that_is_cut_off(attacked: Attacked) -> None:
    body = stream(one(ARRAYS["dictionary"]), "zstd")
    whole = pa.ipc.open_stream(body).read_all().num_rows
    for end in range(1, len(body), 9):
        answer = attacked.client.table(["cut"], "create", body[:end])
        if answer.status_code == 200:
            # it ends between two batches: that is a stream
            assert pa.ipc.open_stream(body[:end]).read_all().num_rows <= whole
            ok(attacked.client.table(["cut"], "drop"))
        else:
            assert answer.status_code == 400, answer.text


NUMBERS = [0, -1, 1, 8, 64, 127, 2**31 - 1, 2**31, 2**33, 2**62, -(2**63), -(2**31)]


@settings(max_examples=300)
@given(st.sampled_from(sorted(ARRAYS)), st.sampled_from([None, "zstd"]), st.randoms(use_true_random=False))
def test_any_change_of_a_body_is_taken_or_refused(
    attacked: Attacked, kind: str, compression: str | None, chance: random.Random
) -> None:
    body = bytearray(stream(one(ARRAYS[kind]), compression))
    for _ in range(chance.choice([1, 1, 2, 5])):
        position = chance.randrange(len(body))
        width = chance.choice([1, 4, 8])
        position -= position % width
        number = chance.choice([*NUMBERS, chance.randrange(256)]) % 2 ** (8 * width)
        body[position : position + width] = number.to_bytes(width, "little")
    answer = attacked.client.table(["changed"], "create", bytes(body), mode="overwrite")
    assert answer.status_code in (200, 400, 413), answer.text[:500]
