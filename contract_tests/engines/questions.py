"""Filters on every type, and the ids of the rows that they leave, by Lance's own values."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from operator import eq, ge, lt
from typing import Any

from contract_tests.engines.mirror_lake import Place, lance_rows, versions_of
from contract_tests.engines.mirror_types import TIMES, TYPES
from contract_tests.engines.same_rows import of_lance

_COLUMNS = {"types": [*TYPES], "times": [*TIMES], "texts": ["text", "bytes"], "floats": ["double", "single"]}
COLUMNS = [(table, column) for table, columns in _COLUMNS.items() for column in columns]
"""And the tables that they are in."""
IS_NULL, IS_NOT_NULL = "IS NULL", "IS NOT NULL"
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<": lt, ">=": ge}


@dataclass(frozen=True)
class Question:
    column: str
    sign: str
    value: Any
    ids: tuple[int, ...]
    """Of the rows that it leaves, sorted."""

    def condition(self, column: str, literal: Callable[[Any], str]) -> str:
        return f"{column} {self.sign}" + ("" if self.value is None else f" {literal(self.value)}")


def questions_about(place: Place, table: str) -> dict[str, list[Question]]:
    """By the columns."""
    lake = place.tables[table]
    rows = [dict(row) for row in of_lance(lance_rows(lake, versions_of(lake)[-1]))]
    asked = [each for column in rows[0] if column != "id" for each in _about(column, rows)]
    return {column: list(each) for column, each in groupby(asked, lambda question: question.column)}


def _about(column: str, rows: Sequence[dict[str, Any]]) -> Iterator[Question]:
    # engines differ about NaN
    values = [(row["id"], row[column]) for row in rows if row[column] != "NaN"]
    there = [(id_, value) for id_, value in values if value is not None]
    yield Question(column, IS_NULL, None, _ids(values, lambda value: value is None))
    if len(values) == len(rows):
        yield Question(column, IS_NOT_NULL, None, _ids(values, lambda value: value is not None))
    distinct = {repr(value): value for _, value in there}.values()
    few = distinct if len(rows) != 13 else [there[len(there) // 2][1]]
    for value in few:
        for sign, holds in _SIGNS.items():
            if sign == "=" or not isinstance(value, bool):
                ids = _ids(there, lambda each: holds(each, value))  # noqa: B023
                if sign == "=" or len(values) == len(rows):
                    yield Question(column, sign, value, ids)


def _ids(values: Sequence[tuple[int, Any]], holds: Callable[[Any], bool]) -> tuple[int, ...]:
    return tuple(sorted(id_ for id_, value in values if holds(value)))


def text_of(value: Any) -> str:
    """That SQL casts to any type but bytes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return str(value).replace("'", "''")


def in_one_query(table: str, quoted: str, asked: Sequence[Question], literal: Callable[[Any], str]) -> str:
    """Its rows are the number of a question and an id."""
    return " UNION ALL ".join(
        f"SELECT {number} AS n, id FROM {table} WHERE {question.condition(quoted, literal)}"
        for number, question in enumerate(asked)
    )


def require_answers(asked: Sequence[Question], rows: Sequence[Sequence[int]]) -> None:
    found = [tuple(sorted(id_ for number, id_ in rows if number == n)) for n in range(len(asked))]
    wrong = [(question, ids) for question, ids in zip(asked, found, strict=True) if question.ids != ids]
    assert not wrong, wrong[:5]
