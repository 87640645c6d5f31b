"""What each engine must find in the tables of `mirror_lake`: at every version the rows that pylance finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from contract_tests.engines.mirror_lake import LEFT_OUT, Place, lance_rows, versions_of
from contract_tests.engines.same_rows import Row, of_lance, require_same
from contract_tests.worlds.bridge import Client


@dataclass(frozen=True)
class Engine:
    rows: Callable[[Place, str, int, pa.Schema], list[Row]]
    """Of a table at a version; the schema is Lance's."""
    count: Callable[[Place, str, int], int]
    null_is_empty: bool = False
    """Whether it takes a null for an empty list or map, where that holds structs."""


def require_times(place: Place, rows: Callable[[int, pa.Schema], list[Row]]) -> None:
    """`rows` gives those of the table `life` as of a moment, in milliseconds; the schema is Lance's."""
    table = place.tables["life"]
    with Client(place.url) as client:
        log = client.metadata((place.namespace,), "life")["snapshot-log"]
    moments = sorted({each["timestamp-ms"] for each in log})
    for moment in (moments[0], moments[len(moments) // 2], moments[-1] + 1000):
        version = max(each["snapshot-id"] for each in log if each["timestamp-ms"] <= moment)
        expected = lance_rows(table, version)
        require_same(rows(moment, expected.schema), of_lance(expected))


def instant(moment: int) -> datetime:
    return datetime.fromtimestamp(moment / 1000, UTC)


def require_inner_fields(place: Place, found: Sequence[Sequence[Any]], null_is_empty: bool = False) -> None:
    """`found` are, of the table `nested`, the ids, a field of a struct and a field of those in a list; of rows in
    which the first of these fields is less than 'at 7'."""

    def inner(places: list[dict[str, Any] | None] | None) -> list[str | None] | None:
        if places is None:
            return [] if null_is_empty else None
        return [None if each is None else each["at"] for each in places]

    table = place.tables["nested"]
    rows = lance_rows(table, versions_of(table)[-1]).to_pylist()
    chosen = [row for row in rows if row["place"] is not None and row["place"]["where"] < "at 7"]
    expected = [(row["id"], row["place"]["where"], inner(row["places"])) for row in chosen]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


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
