"""Rows that match a predicate: ordinary ones are counted right, whatever keeps the table."""

import datetime
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from contract_tests.lance.client import InDefault, Lance, ok, refused
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.s3 import S3

DAY = datetime.date(2024, 1, 1)


@dataclass(frozen=True)
class Row:
    id: int
    name: str | None
    day: datetime.date
    price: float
    tags: list[int]


ALL = [
    Row(
        id=n,
        name=None if n % 10 == 0 else f"näme {n} it's (x) -- /* ; %_",
        day=DAY + datetime.timedelta(days=n),
        price=n / 4,
        tags=[n % 3, n % 5],
    )
    for n in range(1000)
]
TABLE = pa.table(
    {
        "id": pa.array([row.id for row in ALL], pa.int64()),
        "name": [row.name for row in ALL],
        "day": [row.day for row in ALL],
        "price": [row.price for row in ALL],
        "tags": [row.tags for row in ALL],
        "Odd Name": pa.array([row.id % 7 for row in ALL], pa.int32()),
        "inner": [{"id": row.id, "name": row.name} for row in ALL],
    }
)

ORDINARY: list[tuple[str, Callable[[Row], bool]]] = [
    ("id > 990", lambda row: row.id > 990),
    ("id BETWEEN 10 AND 19", lambda row: 10 <= row.id < 20),
    ("NOT (id < 5 OR id >= 995)", lambda row: 5 <= row.id < 995),
    (" OR ".join(f"id = {n * 3}" for n in range(100)), lambda row: row.id < 300 and row.id % 3 == 0),
    (" AND ".join(f"id <> {n}" for n in range(100)), lambda row: row.id >= 100),
    (" OR ".join(f"(id = {n} AND price < {n})" for n in range(100)), lambda row: 0 < row.id < 100),
    (f"id IN ({', '.join(map(str, range(0, 20000, 2)))})", lambda row: row.id % 2 == 0),
    ("(" * 30 + "id = 7" + ")" * 30, lambda row: row.id == 7),
    ("name IS NULL", lambda row: row.name is None),
    ("name IS NOT NULL AND id < 20", lambda row: row.name is not None and row.id < 20),
    ("name LIKE '%me 12%'", lambda row: row.name is not None and "me 12" in row.name),
    ("name ILIKE 'NÄME 1%'", lambda row: row.name is not None and row.name.startswith("näme 1")),
    ("name = 'näme 7 it''s (x) -- /* ; %_'", lambda row: row.id == 7),
    ("name <> 'a) OR (1 = 1'", lambda row: row.name is not None),
    ("length(name) > 27", lambda row: row.name is not None and len(row.name) > 27),
    ("starts_with(lower(name), 'näme 99')", lambda row: row.name is not None and row.name.startswith("näme 99")),
    ("regexp_match(name, '^näme [0-9] ') IS NOT NULL", lambda row: row.name is not None and 0 < row.id < 10),
    ("coalesce(name, 'none') = 'none'", lambda row: row.name is None),
    ("CAST(id AS string) = '12'", lambda row: row.id == 12),
    ("id::string LIKE '12%'", lambda row: str(row.id).startswith("12")),
    ("CAST(price AS bigint) = 3", lambda row: int(row.price) == 3),
    ("CAST(price AS decimal(10, 2)) = 2.25", lambda row: row.price == 2.25),
    ("day >= date '2024-02-01' AND day < date '2024-03-01'", lambda row: 31 <= row.id < 60),
    ("date_part('month', day) = 2", lambda row: row.day.month == 2),
    ("price * 4 + 1 > 999 - 1", lambda row: row.price * 4 + 1 > 998),
    ("id % 7 = -1 + 1", lambda row: row.id % 7 == 0),
    ("`Odd Name` = 3", lambda row: row.id % 7 == 3),
    ("inner.id = 3 AND inner['name'] IS NOT NULL", lambda row: row.id == 3),
    ("array_contains(tags, 4)", lambda row: 4 in row.tags),
    ("array_length(tags) = 2 AND tags[1] = 2", lambda row: row.tags[0] == 2),
    ("round(price) = 3 AND abs(-price) < 3", lambda row: row.price in (2.5, 2.75)),
    ("true", lambda _: True),
]  # fmt: skip


Count = Callable[..., Any]


@pytest.fixture(scope="module", params=["dir", "dir on S3", "irc"])
def count(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Count]:
    """Sends count_rows for one table. The server behind an `irc` warehouse is another bridge."""
    options, root = {}, str(tmp_path_factory.mktemp("tables"))
    if request.param == "dir on S3":
        s3: S3 = request.getfixturevalue("s3")
        options, root = dict(s3.options), s3.bucket("counts")
    with ExitStack() as stack:

        def start(warehouse: str) -> Server:
            folder = tmp_path_factory.mktemp("server")
            (folder / "irc-bridge.toml").write_text(f"[warehouses.main]\n{warehouse}")
            return stack.enter_context(Server("--port", "0", cwd=folder))

        storage = "".join(f'storage.{key} = "{value}"\n' for key, value in options.items())
        server = start(f'root = "{root}"\n{storage}')
        client = stack.enter_context(Lance(server.url))
        if request.param == "irc":
            before = start(f'backend = "irc"\nuri = "{server.url}"\n')
            client = stack.enter_context(InDefault(before.url))
        ok(client.create(["counted"], TABLE))
        yield lambda **body: client.table(["counted"], "count_rows", body)


@pytest.mark.parametrize(("predicate", "is_counted"), ORDINARY, ids=[f"{each[:40]}" for each, _ in ORDINARY])
def test_ordinary_predicates(count: Count, predicate: str, is_counted: Callable[[Row], bool]) -> None:
    expected = sum(map(is_counted, ALL))
    assert expected > 0
    assert ok(count(predicate=predicate)) == expected


@pytest.mark.parametrize(
    "predicate",
    ["", " ", "id", "id >", "nothing = 1", "id = 'x'", "id > 3 LIMIT 5", "id > 3 id", "id > 3, id > 4", "id > 3;",
     "id > 3 -- 4", "id > 3 /* 4 */", "id > 3) OR (1 = 1", "(id > 3", "id > 3]", "(SELECT 1) = 1",
     "id IN (SELECT 1)",
     "EXISTS (SELECT 1)", "id > 3 UNION SELECT 1", "count(*) > 1", "id = ?", "id = $1", "id = @x", "name = 'a",
     "name = N'x'", "name = E'x'", "id / (id - id) = 1", "CAST(name AS int) = 1", "CAST(300 AS tinyint) = 1",
     "day = date '2024-13-01'", "abs(-9223372036854775808) > 0", "regexp_match(name, '(') IS NULL", "id > \x00"],
)  # fmt: skip
def test_bad_predicates(count: Count, predicate: str) -> None:
    refused(count(predicate=predicate), 400, 13, "predicate: ")


def test_a_version_that_is_not_there(count: Count) -> None:
    refused(count(predicate="id > 990", version=9), 404, 11, "9")
