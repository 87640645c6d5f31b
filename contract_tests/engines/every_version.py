"""What each engine must find in the tables of `mirror_lake`: at every version the rows that pylance finds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pytest

from contract_tests.engines.mirror_lake import LEFT_OUT, Place, lance_rows, versions_of
from contract_tests.engines.same_rows import Row, of_lance, require_same


@dataclass(frozen=True)
class Engine:
    rows: Callable[[Place, str, int, pa.Schema], list[Row]]
    """Of a table at a version; the schema is Lance's."""
    count: Callable[[Place, str, int], int]
    null_is_empty: bool = False
    """Whether it takes a null for an empty list or map, where that holds structs."""


def marked(reasons: Mapping[str, str], request: pytest.FixtureRequest, place: Place, name: str) -> None:
    """Why an engine cannot read the table, by a letter of its name; `s3: ` stands before what holds there only."""
    for letter, reason in reasons.items():
        if letter in name and (not reason.startswith("s3: ") or place.s3_properties):
            request.applymarker(pytest.mark.xfail(strict=True, reason=reason.removeprefix("s3: ")))


def require_every_version(engine: Engine, place: Place, name: str) -> None:
    table = place.tables[name]
    for version in versions_of(table):
        expected = lance_rows(table, version)
        rows = of_lance(expected, LEFT_OUT.get(name, ()), engine.null_is_empty)
        if expected.column_names and not any(rows):
            # there is nothing in them that could be selected
            assert engine.count(place, name, version) == len(rows)
        else:
            require_same(engine.rows(place, name, version, expected.schema), rows)
