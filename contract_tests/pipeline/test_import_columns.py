"""What becomes of the columns of a source."""

import datetime
import decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from contract_tests.pipeline.conftest import Import
from contract_tests.pipeline.tables import T, at, contents, files
from contract_tests.worlds.spark import LEAVES_SOCKETS
from irc_bridge.errors import InvalidInput

pytestmark = LEAVES_SOCKETS

TYPES = """
SELECT CAST(1 AS TINYINT) AS tiny, CAST(2 AS SMALLINT) AS small, 3 AS whole, 4L AS id, 1.5F AS single,
  2.5D AS double, 12.34BD AS decimal, true AS yes, 'text' AS text, X'00FF' AS bytes, DATE'2024-02-29' AS day,
  TIMESTAMP'2024-01-01 12:00:00Z' AS moment, TIMESTAMP_NTZ'2024-01-01 12:00:00' AS local, array(1, NULL) AS list,
  map('k', array(1.0D)) AS map, named_struct('a', 1, 'b', named_struct('c', 'd')) AS struct,
  CAST(NULL AS STRING) AS empty
"""
NOON = datetime.datetime(2024, 1, 1, 12)
VALUES = {
    "tiny": (pa.int8(), 1),
    "small": (pa.int16(), 2),
    "whole": (pa.int32(), 3),
    "id": (pa.int64(), 4),
    "single": (pa.float32(), 1.5),
    "double": (pa.float64(), 2.5),
    "decimal": (pa.decimal128(4, 2), decimal.Decimal("12.34")),
    "yes": (pa.bool_(), True),
    "text": (pa.string(), "text"),
    "bytes": (pa.binary(), b"\x00\xff"),
    "day": (pa.date32(), datetime.date(2024, 2, 29)),
    "moment": (pa.timestamp("us", "UTC"), NOON.replace(tzinfo=datetime.UTC)),
    "local": (pa.timestamp("us"), NOON),
    "list": (pa.list_(pa.int32()), [1, None]),
    "map": (pa.map_(pa.string(), pa.list_(pa.float64())), [("k", [1.0])]),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))]),
        {"a": 1, "b": {"c": "d"}},
    ),
    "empty": (pa.string(), None),
}


class TestColumns:
    def test_every_type_of_spark(self, run_import: Import, root: Path) -> None:
        run_import(TYPES, T, "--format", "sql")
        run_import(TYPES, T, "--format", "sql")
        assert {field.name: field.type for field in at(root).schema} == {
            name: kind for name, (kind, _) in VALUES.items()
        }
        assert all(field.nullable for field in at(root).schema)
        assert contents(at(root)) == 2 * [{name: value for name, (_, value) in VALUES.items()}]

    def test_values_take_the_types_of_the_table(self, run_import: Import, root: Path) -> None:
        schema = pa.schema(
            [
                pa.field("id", pa.int16(), nullable=False),
                pa.field("vector", pa.list_(pa.float32(), 2)),
                pa.field("half", pa.list_(pa.float16(), 2)),
                pa.field("kind", pa.dictionary(pa.int32(), pa.string())),
                pa.field("text", pa.large_string()),
                pa.field("key", pa.binary(2)),
                pa.field("count", pa.uint32()),
                pa.field("moment", pa.timestamp("ns", "UTC")),
                pa.field("inside", pa.struct([("y", pa.int64()), ("x", pa.float32()), ("z", pa.string())])),
                pa.field("absent", pa.list_(pa.float32(), 3)),
            ]
        )
        lance.write_dataset(schema.empty_table(), str(root / "t.lance"))
        source = (
            "SELECT named_struct('x', 1.5D, 'y', 7) AS inside, TIMESTAMP'2024-01-01 12:00:00Z' AS moment,"
            " 5L AS count, X'0102' AS key, 'long' AS text, 'a' AS kind, array(1, 2) AS half,"
            " array(0.5D, 1.5D) AS vector, 1L AS id"
        )
        run_import(source, T, "--format", "sql")
        made = at(root)
        assert made.schema == schema
        (row,) = contents(made)
        assert row == {
            "id": 1,
            "vector": [0.5, 1.5],
            "half": [1.0, 2.0],
            "kind": "a",
            "text": "long",
            "key": b"\x01\x02",
            "count": 5,
            "moment": row["moment"],
            "inside": {"y": 7, "x": 1.5, "z": None},
            "absent": None,
        }
        assert str(row["moment"]).startswith("2024-01-01 12:00:00")

    @pytest.mark.parametrize(
        ("select", "said"),
        [
            ("1L AS id, 2 AS nome", "nome: the table has no such column"),
            ("'a' AS id", "id: string cannot become int64"),
            ("1.5D AS id", "id: double cannot become int64"),
            ("'a' AS name", "id: the source has no such column, and the table takes no nulls"),
            ("1L AS id, named_struct('a', 1, 'c', 2) AS pair", "pair: the table has no field c in it"),
            ("1L AS id, named_struct('a', 'x') AS pair", "pair: its field a: string cannot become int32"),
            ("1L AS id, TIMESTAMP'2024-01-01 00:00:00' AS at", "at: timestamp.* cannot become"),
            ("1L AS id, array('a') AS vector", "vector: string cannot become float"),
        ],
    )
    def test_what_does_not_fit_is_refused_before_anything_is_written(
        self, run_import: Import, root: Path, select: str, said: str
    ) -> None:
        self.make(root)
        before = files(root)
        with pytest.raises(InvalidInput, match=said):
            run_import(f"SELECT {select}", T, "--format", "sql")
        assert files(root) == before

    @pytest.mark.parametrize(
        ("select", "said"),
        [
            ("IF(id = 77, NULL, id) AS id", "id: the source has nulls"),
            ("id, IF(id = 77, 1e300D, 1D) AS single", "single: a number of the source is too large for float"),
            ("id, IF(id = 77, 1L << 40, 1L) AS small", "small: .*1099511627776"),
            ("id, IF(id = 77, array(1F), array(1F, 2F)) AS vector", "vector: .*expected size"),
            ("id, IF(id = 77, array(1D, 1e300D), array(1D, 2D)) AS vector", "vector: .*too large"),
        ],
    )
    def test_a_value_that_does_not_fit_ends_it_and_leaves_nothing(
        self, run_import: Import, root: Path, select: str, said: str
    ) -> None:
        self.make(root)
        before = files(root)
        with pytest.raises(InvalidInput, match=said) as refused:
            run_import(f"SELECT {select} FROM range(0, 100, 1, 4)", T, "--format", "sql")
        assert "\n" not in refused.value.message
        assert files(root) == before

    def make(self, root: Path) -> None:
        schema = pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                pa.field("name", pa.string()),
                pa.field("pair", pa.struct([("a", pa.int32()), ("b", pa.int32())])),
                pa.field("at", pa.timestamp("us")),
                pa.field("single", pa.float32()),
                pa.field("small", pa.int32()),
                pa.field("vector", pa.list_(pa.float32(), 2)),
            ]
        )
        lance.write_dataset(schema.empty_table(), str(root / "t.lance"))
