"""Any life of a table, mirrored at any moments: engines see what pylance saw at each version."""

import tempfile
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from contract_tests.mirror.mirroring import Lake, in_order

Rows = list[dict[str, Any]]
_NUMBERS = st.integers(0, 9)


class Mirrored(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.lake = Lake(self.folder.name)
        self.rows: dict[int, Rows] = {}
        self.next = 0
        self.new_columns = 0
        self.checked: set[int] = set()

    @initialize(count=st.integers(0, 5))
    def begin(self, count: int) -> None:
        self.lake.write(self._new(count, pa.schema([("id", pa.int64()), ("a", pa.string())])))
        self._saw()

    @rule(count=st.integers(0, 6), size=st.integers(1, 4))
    def append(self, count: int, size: int) -> None:
        self.lake.write(self._new(count, self._table.schema), mode="append", max_rows_per_file=size)
        self._saw()

    @rule(count=st.integers(0, 3))
    def overwrite(self, count: int) -> None:
        self.lake.write(self._new(count, self._table.schema), mode="overwrite")
        self._saw()

    @rule(rest=_NUMBERS)
    def delete(self, rest: int) -> None:
        self._table.delete(f"id % 10 = {rest}")
        self._saw()

    @rule(rest=_NUMBERS)
    def update(self, rest: int) -> None:
        self._table.update({"id": "id + 10"}, where=f"id % 10 = {rest}")
        self._saw()

    @rule(with_values=st.booleans())
    def add_column(self, with_values: bool) -> None:
        self.new_columns += 1
        name = f"c{self.new_columns}"
        self._table.add_columns({name: "id * 3"} if with_values else pa.schema([pa.field(name, pa.int64())]))
        self._saw()

    @precondition(lambda self: len(self._table.schema) > 2)
    @rule(data=st.data())
    def drop_column(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([each for each in self._table.schema.names if each != "id"]))
        self._table.drop_columns([name])
        self._saw()

    @precondition(lambda self: len(self._table.schema) > 1)
    @rule(data=st.data())
    def rename_column(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([each for each in self._table.schema.names if each != "id"]))
        self.new_columns += 1
        self.lake.rename(name, f"n{self.new_columns}")
        self._saw()

    @rule()
    def compact(self) -> None:
        self._table.optimize.compact_files(target_rows_per_fragment=100)
        self._saw()

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        lance.dataset(self.lake.uri, version=data.draw(st.sampled_from(sorted(self.rows)))).restore()
        self._saw()

    @rule()
    def clean_up(self) -> None:
        self._table.cleanup_old_versions(timedelta(0))
        self.rows = {version["version"]: self.rows[version["version"]] for version in self._table.versions()}

    @rule(data=st.data())
    def mirror(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sets(st.sampled_from(sorted(self.rows)), min_size=1))
        brought = self.lake.bring(chosen)
        assert all(each.outcome == "mirrored" for each in brought)
        assert chosen <= self.lake.mirror().present()

    @invariant()
    def engines_see_what_lance_saw(self) -> None:
        present = self.lake.mirror().present() if self.rows else set()
        assert present <= self.rows.keys()
        for version in present - self.checked:
            seen = self.lake.seen(version)
            assert in_order(seen, "id") == self.rows[version], version
            self.checked.add(version)

    def teardown(self) -> None:
        self.checked.clear()
        if self.rows:
            self.engines_see_what_lance_saw()
        self.folder.cleanup()

    @property
    def _table(self) -> lance.LanceDataset:
        return self.lake.open()

    def _new(self, count: int, schema: pa.Schema) -> pa.Table:
        ids = range(self.next, self.next + count)
        self.next += count
        columns = [
            pa.array([str(each) if pa.types.is_string(field.type) else each for each in ids], field.type)
            for field in schema
        ]
        return pa.table(columns, schema=schema)

    def _saw(self) -> None:
        for version in self._table.versions():
            number = version["version"]
            if number not in self.rows:
                self.rows[number] = in_order(self.lake.open(number).to_table(), "id")


TestMirrored = Mirrored.TestCase
TestMirrored.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=[*HealthCheck], derandomize=True
)
