"""Lance tables with a mirror of every version: always the same ones, made with pylance, read by each engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa

from contract_tests.engines.mirror_types import NESTED, TIMES, TYPES, Column, nested_rows, rows_of
from contract_tests.mirror.mirroring import Lake as Table
from contract_tests.translation.lance_tables import alter

TEXTS: list[list[str | None]] = [
    [None, "", "a", "x" * 15, "x" * 16],
    ["x" * 17, "x" * 16 + "y", "x" * 30],
    ["y" * 15 + "\ud7ff" + "end", "y" * 15 + "\ud7ff"],
    ["z" * 15 + "\U0010ffff" + "end", "z" * 16 + "\U0010ffff"],
    ["\U0010ffff" * 20, "\U0010ffff" * 17],
    ["Grüße", "日本語のとても長い文字列ですからここで切れます", "😀" * 20],
]
"""Fragments of texts around the length to which bounds are cut."""
FLOATS: list[list[float | None]] = [
    [0.0, -0.0, None],
    [float("nan"), 1.0, 2.0],
    [float("nan"), float("nan")],
    [float("inf"), 3.0],
    [float("-inf"), -3.0],
    [None, None],
    [-0.0],
    [5e-324, 1.7976931348623157e308],
]
HELD = "held"
"""The table that a test changes."""
ODD_NAMES = ["a b", "per%20cent", "Grüße", "it's", "plus+plus", "hash#tag", "what?", "semi;colon", "Mixed"]
LEFT_OUT = {"left_out": {"nothing", "wide", "picture", "place.nothing"}, "only_left_out": {"nothing"}}
"""Columns that Iceberg has no type for."""


@dataclass(frozen=True)
class Place:
    """Where a bridge serves the tables."""

    name: str
    url: str
    namespace: str
    tables: Mapping[str, Table]

    @property
    def catalog(self) -> str:
        """What engines that know all places call this one."""
        return self.name.replace(", another server", "_behind")

    @property
    def s3_properties(self) -> dict[str, str]:
        """What Iceberg's own readers need for the storage of the tables. Nothing for a local disk."""
        options = next(iter(self.tables.values())).options
        if not options:
            return {}
        return {
            "s3.endpoint": options["aws_endpoint"],
            "s3.access-key-id": options["aws_access_key_id"],
            "s3.secret-access-key": options["aws_secret_access_key"],
            "s3.path-style-access": "true",
            "client.region": "us-east-1",
        }


def fill(root: str, options: Mapping[str, str]) -> dict[str, Table]:
    tables = {name: Table(root, options, name) for name in [*MAKERS, *ODD_NAMES, HELD]}
    for name, table in tables.items():
        MAKERS.get(name, _people)(table)
        table.bring()
    return tables


def versions_of(table: Table) -> list[int]:
    return [each["version"] for each in table.open().versions()]


def _people(table: Table) -> None:
    table.write(pa.table({"id": [1, 2, 3], "name": ["Ada", "Bo", None]}))
    table.open().delete("id = 2")


def _in_fragments(columns: Mapping[str, Column]) -> Callable[[Table], None]:
    """Each fragment has values above those of the one before, and a row of nulls."""

    def make(table: Table) -> None:
        table.write(rows_of(columns, range(12)), max_rows_per_file=4)
        table.open().delete("id = 5")
        table.write(rows_of(columns, range(12, 14)), mode="append")

    return make


def _texts(table: Table) -> None:
    for number, texts in enumerate(TEXTS):
        values = [None if text is None else text.encode() for text in texts]
        table.write(pa.table({"id": [number] * len(texts), "text": texts, "bytes": values}), mode="append")
    for number, ending in enumerate([b"\xff" * 20, b"a" * 15 + b"\xff" * 5], len(TEXTS)):
        table.write(
            pa.table({"id": [number], "text": pa.array([None], pa.string()), "bytes": [ending]}), mode="append"
        )


def _floats(table: Table) -> None:
    for number, values in enumerate(FLOATS):
        float32 = pa.array(
            [None if each is None or 0 < abs(each) < 1e-300 else each for each in values], pa.float64()
        )
        columns = {
            "id": pa.array([number] * len(values)),
            "double": pa.array(values, pa.float64()),
            "single": float32.cast(pa.float32(), safe=False),
        }
        table.write(pa.table(columns), mode="append")


def _nested(storage_version: str) -> Callable[[Table], None]:
    def make(table: Table) -> None:
        whole = storage_version == "2.2"
        rows = nested_rows(range(10), whole)
        table.write(rows, max_rows_per_file=4, data_storage_version=storage_version)
        table.open().delete("id in (2, 5, 6)")
        table.write(nested_rows(range(10, 13), whole), mode="append")
        alter(table.open(), path="place.at", name="where")
        table.open().drop_columns(["place.inner"])
        if whole:
            table.open().add_columns(pa.schema([pa.field("later", NESTED)]))
        table.open().optimize.compact_files()

    return make


def _life_rows(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    place = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int16()))])
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": [None if each % 4 == 3 else f"row {each}" for each in ids],
            "vector": pa.array([[each, 0.5] for each in ids], pa.list_(pa.float32(), 2)),
            "nested": pa.array([{"a": each, "b": None if each % 2 else [each, None]} for each in ids], place),
        }
    )


def _life(table: Table) -> None:
    table.write(_life_rows(0, 10))
    dataset = table.write(_life_rows(10, 30), mode="append", max_rows_per_file=7)
    dataset.tags.create("two-fragments", 2)
    dataset.delete("id % 5 = 1")
    dataset.tags.create("deleted", dataset.version)
    dataset.update({"text": "'new'"}, where="id = 3")
    dataset.add_columns({"twice": "id * 2"})
    dataset.add_columns(pa.schema([pa.field("none", pa.string())]))
    dataset.delete("id % 5 = 2")
    alter(dataset, path="text", name="words")
    dataset.drop_columns(["nested"])
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    dataset.delete("id = 14")
    upsert = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    upsert.execute(dataset.to_table().slice(3, 4))
    dataset.create_scalar_index("id", "BTREE")
    table.write(_life_rows(100, 105), mode="overwrite").delete("true")
    table.write(_life_rows(7, 9), mode="append")
    table.open(2).restore()


def _columns(table: Table) -> None:
    """Names change their meaning, which field ids tell."""
    dataset = table.write(pa.table({"id": [1, 2], "a": ["a1", "a2"], "b": ["b1", "b2"], "n": [1, None]}))
    for old, new in [("a", "c"), ("b", "a"), ("c", "b")]:
        alter(dataset, path=old, name=new)
    dataset.drop_columns(["a"])
    dataset.add_columns({"a": "'another'"})
    alter(dataset, path="n", data_type=pa.int32())
    alter(dataset, path="id", name="Number One")
    alter(dataset, path="a", name="Grüße")
    dataset.add_columns(pa.schema([pa.field("select", pa.float32()), pa.field("it's", pa.list_(pa.string()))]))
    alter(dataset, path="Number One", name="id")


def _vectors(table: Table) -> None:
    def rows(first: int, last: int) -> pa.Table:
        ids = range(first, last)
        deep = pa.list_(pa.list_(pa.float64(), 2), 2)
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "single": pa.array([[each, -0.5, each / 3] for each in ids], pa.list_(pa.float32(), 3)),
                "half": pa.array(
                    [None if each % 3 == 0 else [each, 0.5] for each in ids], pa.list_(pa.float16(), 2)
                ),
                "bytes": pa.array([[each, 255] for each in ids], pa.list_(pa.uint8(), 2)),
                "deep": pa.array([None if each % 4 == 1 else [[each, 1], [2, 3]] for each in ids], deep),
            }
        )

    table.write(rows(0, 9), max_rows_per_file=4)
    table.open().delete("id = 3")
    dataset = table.open()
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(8, 11))
    table.open().add_columns({"norm": "array_length(single)"})


def _empty(table: Table) -> None:
    table.write(pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())}))
    table.open().add_columns(pa.schema([pa.field("more", pa.int32())]))


def _emptied(table: Table) -> None:
    table.write(pa.table({"id": range(6)}), max_rows_per_file=3)
    table.open().delete("id < 3")
    table.open().delete("id >= 3")
    table.write(pa.table({"id": [7]}), mode="append")


def _many(table: Table) -> None:
    """1,000 fragments."""
    numbers = range(1000)
    table.write(pa.table({"id": numbers, "text": [f"row {each}" for each in numbers]}), max_rows_per_file=1)
    table.write(pa.table({"id": [1000, 1001], "text": [None, "last"]}), mode="append")
    table.open().delete("id = 500 or id = 1000")


def _left_out(table: Table) -> None:
    place = pa.struct([("x", pa.int64()), ("nothing", pa.null())])
    blob = pa.field("picture", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    fields = [("id", pa.int64()), ("nothing", pa.null()), ("wide", pa.decimal256(50, 2)), blob, ("place", place)]
    values: dict[str, list[Any]] = {
        "id": [1, 2, 3],
        "nothing": [None] * 3,
        "wide": [None] * 3,
        "picture": [b"one", None, b"three"],
        "place": [{"x": 1, "nothing": None}, None, {"x": None, "nothing": None}],
    }
    # pylance writes blobs like this one only up to file version 2.1
    table.write(pa.table(values, schema=pa.schema(fields)), data_storage_version="2.1")
    table.open().delete("id = 2")


def _only_left_out(table: Table) -> None:
    table.write(pa.table({"nothing": pa.nulls(3)}))
    table.open().add_columns({"id": "1"})


MAKERS: dict[str, Callable[[Table], None]] = {
    "types": _in_fragments(TYPES),
    "times": _in_fragments(TIMES),
    "texts": _texts,
    "floats": _floats,
    "nested": _nested("2.2"),
    "nested_2_1": _nested("2.1"),
    "nested_2_0": _nested("2.0"),
    "life": _life,
    "columns": _columns,
    "vectors": _vectors,
    "empty": _empty,
    "emptied": _emptied,
    "many": _many,
    "left_out": _left_out,
    "only_left_out": _only_left_out,
}


def lance_rows(table: Table, version: int) -> pa.Table:
    dataset: lance.LanceDataset = table.open(version)
    blobs = [field.name for field in dataset.schema if (field.metadata or {}).get(b"lance-encoding:blob")]
    return dataset.to_table(columns=[name for name in dataset.schema.names if name not in blobs])
