"""`irc-bridge import` on a Spark that is there already, as in spark-submit or a notebook."""

import json
import re
import shlex
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from contract_tests.pipeline.conftest import Import
from contract_tests.pipeline.tables import SCHEMA, T, at, contents, files, parquet, rows
from contract_tests.worlds.spark import LEAVES_SOCKETS
from irc_bridge.errors import InvalidInput

pytestmark = LEAVES_SOCKETS


class TestFormats:
    def test_parquet_files_of_a_pattern_make_a_table(self, run_import: Import, root: Path, tmp_path: Path) -> None:
        parquet(tmp_path / "a1.parquet", rows(range(10)))
        parquet(tmp_path / "a2.parquet", rows(range(10, 30)))
        report = run_import(tmp_path / "a*.parquet", T)
        made = at(root)
        assert contents(made) == rows(range(30)).to_pylist()
        assert (report["table"], report["version"], report["rows"], report["replaced"]) == (T, 1, 30, 0)
        sizes = [file.stat().st_size for file in (root / "t.lance/data").iterdir()]
        assert (report["fragments"], report["bytes"]) == (len(made.get_fragments()), sum(sizes))
        assert report["seconds"] > 0

    def test_csv(self, run_import: Import, root: Path, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("id;name\n1;x\n2;\n")
        run_import(tmp_path / "a.csv", T, "--format", "csv", "--option", "sep=;")
        assert contents(at(root)) == [{"id": 1, "name": "x"}, {"id": 2, "name": None}]
        assert at(root).schema.field("id").type == pa.int32()

    def test_json(self, run_import: Import, root: Path, tmp_path: Path) -> None:
        lines = [{"id": 1, "place": {"x": 1.5}, "tags": ["a", "b"]}, {"id": 2, "place": None, "tags": []}]
        (tmp_path / "a.json").write_text("\n".join(map(json.dumps, lines)))
        run_import(tmp_path / "a.json", T, "--format", "json")
        assert contents(at(root)) == lines

    def test_sql(self, run_import: Import, root: Path) -> None:
        report = run_import("SELECT id, id * 0.5D AS half FROM range(7)", T, "--format", "sql")
        assert report["rows"] == 7
        assert contents(at(root)) == [{"id": each, "half": each * 0.5} for each in range(7)]

    def test_iceberg(self, run_import: Import, spark: SparkSession, root: Path) -> None:
        if spark.conf.get("spark.sql.catalog.lake", None) is None:
            pytest.skip("no Iceberg runtime for Spark, and it cannot be fetched from Maven Central")
        spark.sql(
            "CREATE TABLE lake.ns.source USING iceberg AS SELECT id, cast(id AS STRING) AS name FROM range(5)"
        )
        spark.sql("DELETE FROM lake.ns.source WHERE id = 3")
        run_import("lake.ns.source", T, "--format", "iceberg")
        place = f"{spark.conf.get('spark.sql.catalog.lake.warehouse')}/ns/source"
        run_import(place, "main.default.by_path", "--format", "iceberg")
        wanted = [{"id": each, "name": str(each)} for each in (0, 1, 2, 4)]
        assert contents(at(root)) == contents(at(root, name="by_path")) == wanted

    def test_what_is_no_source(self, run_import: Import, root: Path, tmp_path: Path) -> None:
        for kind, source, said in [
            ("parquet", str(tmp_path / "nothing.parquet"), "nothing.parquet"),
            ("sql", "SELEC 1", "SELEC"),
            ("sql", "SELECT * FROM nowhere", "nowhere"),
            ("sql", "SELECT 1 AS a, 2 AS a", "several columns named a"),
        ]:
            with pytest.raises(InvalidInput, match=said) as refused:
                run_import(source, T, "--format", kind)
            assert "\n" not in refused.value.message
        assert list(root.iterdir()) == []


class TestModes:
    def test_append_and_overwrite(self, run_import: Import, root: Path, tmp_path: Path) -> None:
        first, second = (parquet(tmp_path / f"{name}.parquet", rows(range(5), name)) for name in "ab")
        run_import(first, T)
        at(root).update_metadata({"color": "blue"})
        assert run_import(second, T, "--mode", "append")["version"] == 3
        assert at(root).count_rows() == 10
        ids = [field.id() for field in at(root).lance_schema.fields()]
        assert run_import(second, T, "--mode", "overwrite")["version"] == 4
        assert contents(at(root)) == rows(range(5), "b").to_pylist()
        assert at(root).metadata["color"] == "blue"
        assert [field.id() for field in at(root).lance_schema.fields()] == ids
        assert at(root, version=3).count_rows() == 10

    def test_overwrite_makes_a_table_too(self, run_import: Import, root: Path) -> None:
        run_import("SELECT 1L AS id", T, "--format", "sql", "--mode", "overwrite")
        assert contents(at(root)) == [{"id": 1}]

    def test_a_source_without_rows(self, run_import: Import, root: Path) -> None:
        none = "SELECT id, 'x' AS name FROM range(0)"
        assert run_import(none, T, "--format", "sql")["version"] == 1
        assert at(root).schema == SCHEMA
        lance.write_dataset(rows([1]), str(root / "t.lance"), mode="append")
        assert run_import(none, T, "--format", "sql")["version"] == 2
        assert run_import(none, T, "--format", "sql", "--mode", "upsert", "--key", "id")["version"] == 2
        assert run_import(none, T, "--format", "sql", "--mode", "overwrite")["version"] == 3
        assert at(root).count_rows() == 0

    def test_upsert(self, run_import: Import, root: Path, tmp_path: Path) -> None:
        for start in range(0, 40, 10):
            lance.write_dataset(rows(range(start, start + 10)), str(root / "t.lance"), mode="append")
        at(root).delete("id = 12")
        at(root).create_scalar_index("id", "BTREE")
        source = parquet(tmp_path / "a.parquet", rows([*range(5, 25), 99], "new"))
        report = run_import(source, T, "--mode", "upsert", "--key", "id")
        assert (report["rows"], report["replaced"], report["version"]) == (21, 19, 7)
        wanted = {row["id"]: row for row in rows(range(40)).to_pylist()}
        wanted |= {row["id"]: row for row in rows([*range(5, 25), 99], "new").to_pylist()}
        assert contents(at(root)) == sorted(wanted.values(), key=lambda row: row["id"])
        # the second lost all its rows, the fourth none
        kept = {each.fragment_id: each.num_deletions for each in at(root).get_fragments()}
        assert (kept[0], 1 in kept, kept[2], kept[3]) == (5, False, 5, 0)
        assert at(root).to_table(filter="id = 7").to_pylist() == [{"id": 7, "name": "new7"}]
        assert "Update" in str(at(root).read_transaction(7))

    def test_upsert_by_several_columns(self, run_import: Import, root: Path) -> None:
        old = pa.table(
            {
                "id": pa.array([1, 1, 2, None], pa.int32()),
                "kind": pa.array(["a", "b", "a", "a"]).dictionary_encode(),
                "value": [1, 2, 3, 4],
            }
        )
        lance.write_dataset(old, str(root / "t.lance"))
        source = "SELECT * FROM VALUES (1L, 'b', 20L), (2L, 'c', 30L) AS t(id, kind, value)"
        report = run_import(source, T, "--format", "sql", "--mode", "upsert", "--key", "kind", "--key", "id")
        assert report["replaced"] == 1
        found = sorted((row["value"], row["id"], row["kind"]) for row in at(root).to_table().to_pylist())
        assert found == [(1, 1, "a"), (3, 2, "a"), (4, None, "a"), (20, 1, "b"), (30, 2, "c")]

    def test_upsert_makes_a_table_too(self, run_import: Import, root: Path) -> None:
        run_import("SELECT id FROM range(3)", T, "--format", "sql", "--mode", "upsert", "--key", "id")
        assert at(root).count_rows() == 3

    @pytest.mark.parametrize(
        ("source", "key", "said"),
        [
            ("SELECT 1L AS id UNION ALL SELECT 1L", "id", "several rows with the key 1"),
            ("SELECT 1L AS id UNION ALL SELECT NULL", "id", "key is null"),
            ("SELECT 1L AS id", "name", "no such column, it has id"),
            ("SELECT 1L AS id, 1.5D AS score", "score", "no type to find rows by"),
        ],
    )
    def test_keys_that_tell_no_rows_apart(
        self, run_import: Import, root: Path, source: str, key: str, said: str
    ) -> None:
        table = pa.table({"id": [1], "name": ["x"], "score": [1.5]})
        lance.write_dataset(table, str(root / "t.lance"))
        before = files(root)
        with pytest.raises(InvalidInput, match=said):
            run_import(source, T, "--format", "sql", "--mode", "upsert", "--key", key)
        assert files(root) == before

    def test_modes_and_keys_go_together(self, run_import: Import) -> None:
        for arguments in (["--mode", "upsert"], ["--key", "id"]):
            with pytest.raises(InvalidInput, match="--key"):
                run_import("SELECT 1L AS id", T, "--format", "sql", *arguments)


README = Path(__file__).parents[2] / "irc_bridge/pipeline/README.md"


def test_the_commands_of_the_readme(run_import: Import, root: Path, tmp_path: Path) -> None:
    lines = re.findall(r"^irc-bridge import (.*)$", README.read_text("utf-8"), re.MULTILINE)
    assert len(lines) == 3
    (tmp_path / "events").mkdir()
    parquet(tmp_path / "events/1.parquet", rows(range(3)))
    (tmp_path / "users.csv").write_text("id,name\n1,ann\n2,bob\n")
    (tmp_path / "users.json").write_text('{"id": 7, "name": "eve"}')
    for line in lines:
        # Spark was started in another folder
        placed = re.sub(r"(events/|users\.(csv|json))", rf"{tmp_path}/\1", line)
        run_import(*shlex.split(placed))
    assert contents(at(root, name="events")) == rows(range(3)).to_pylist()
    assert contents(at(root, version=1, name="users")) == [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}]
    assert contents(at(root, name="users")) == [{"id": 7, "name": "eve"}]
