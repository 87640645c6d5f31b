"""Predicates of count_rows that would end the server, fill its memory, or never end."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import psutil
import pyarrow as pa
import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract_tests.conftest import Start
from contract_tests.lance.client import Lance, ok, refused
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.s3 import S3, SECRET
from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.counting_pool import CountingPool, Limits

MIB = 1024**2
PROGRAM = "irc_bridge.lance_store.counting_process"
ROWS = 20_000
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int64()), "s": [f"x{n}" * 100 for n in range(ROWS)]})
SLOW = "length(" + "||".join(["s"] * 400) + ") > 0"
"""Allowed, and takes a minute or gigabytes."""

ATTACKS = {
    "3000 terms": " or ".join(f"a={n}" for n in range(3000)),
    "5000 additions": "id=" + "+".join(["1"] * 5000),
    "300 additions": "id=" + "+".join(["id"] * 300),
    "900 minus": "id=" + "- " * 900 + "id",
    "a range": "range(1,1000000000) is not null",
    "a range with backticks": "`range`(1,1000000000) is not null",
    "a range with quotes": '"range"(1,1000000000) is not null',
    "a resized array": "array_resize([1],2000000000) is null",
    "a repeated text": "repeat(s,2000000000)='x'",
    "a padded text": "lpad(s,2000000000)='x'",
    "a huge replacement": "replace(replace(s,'','" + "y" * 1000 + "'),'','" + "y" * 1000 + "')='x'",
    "10000 brackets": "(" * 10000 + "id=1" + ")" * 10000,
    "10000 open brackets": "(" * 10000,
    "10000 array brackets": "[" * 10000 + "1" + "]" * 10000 + " is null",
    "900 not": "not " * 900 + "id=1",
    "900 not with brackets": "not(" * 900 + "id=1" + ")" * 900,
    "100 casts": "cast(" * 100 + "id" + " as bigint)" * 100 + "=1",
    "900 casts": "id" + "::bigint" * 900 + "::bool",
    "20 coalesce": "coalesce(" * 20 + "s" + ",s)" * 20 + "='x1'",
    "8 coalesce": " or ".join(["coalesce(" * 8 + "s" + ",s)" * 8 + "='x1'"] * 100),
    "case": "case when id=1 then " * 500 + "true" + " else false end" * 500,
    "900 fields": "s" + ".a" * 900 + "=1",
    "900 elements": "s" + "['a']" * 900 + "=1",
    "a text of a megabyte": "s='" + "x" * MIB + "'",
    "a text of 200 KiB": "s like '" + "%x" * (100 * 1024) + "'",
    "a name of 200 KiB": "x" * (200 * 1024) + "=1",
    "digits": "id=" + "9" * (200 * 1024),
    "an exponent": "id=1e999999999",
    "a regular expression": "regexp_match(s,'((((((a{100}){100}){100}){100}){100}){100})') is null",
    "a regular expression of classes": r"regexp_like(s,'\\p{L}{1000}{1000}')",
    "a regular expression that goes back": "regexp_match(s,'(x+x+)+y') is not null and id < 0",
    "surrogates": "s='\ud800'",
    "nothing": "\x00",
    "a placeholder": "id = ?",
    "a subquery": "id in (select id from t, t, t, t, t)",
    "division": "1/0=1",
    "the smallest number": "-9223372036854775808 / -1 = 1",
    "factorial": "factorial(21)>0",
}
COUNTED = {
    "300 additions": 1,
    "900 casts": ROWS - 1,
    "8 coalesce": 0,
    "a regular expression that goes back": 0,
    "the smallest number": 0,
    "a text of 200 KiB": 0,
    "digits": 0,
}
"""Those that may be counted as well, because they cost little, with the right count."""


@dataclass
class Attacked:
    server: Server
    client: Lance

    def count(self, predicate: str) -> Any:
        return self.client.table(["t"], "count_rows", {"predicate": predicate})

    @property
    def processes(self) -> list[psutil.Process]:
        return [each for each in psutil.Process(self.server.process.pid).children(True) if is_counting(each)]


def is_counting(process: psutil.Process) -> bool:
    try:
        return PROGRAM in process.cmdline()
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def attacked(start: Start) -> Iterator[Attacked]:
    with start(arguments=("{cwd}/tables",)) as server, Lance(server.url) as client:
        ok(client.create(["t"], TABLE))
        yield Attacked(server, client)


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_every_bad_predicate_is_refused_and_the_server_lives(attacked: Attacked) -> None:
    server = psutil.Process(attacked.server.process.pid)
    before = server.memory_info().rss
    assert ok(attacked.count("id >= 19990")) == 10
    for name, predicate in ATTACKS.items():
        answer = attacked.count(predicate)
        if answer.status_code == 200:
            assert answer.json() == COUNTED[name], name
        else:
            assert answer.status_code == 400, f"{name}: {answer.text[:500]}"
            assert len(refused(answer, 400, 13)) < 3000, name
    assert server.is_running()
    assert server.memory_info().rss - before < 200 * MIB
    assert len(attacked.processes) <= Limits().processes
    assert ok(attacked.count("id >= 19990")) == 10
    assert "Traceback" not in attacked.server.text() and "panicked" not in attacked.server.text()


def test_other_requests_go_on_beside_counts_that_take_long(attacked: Attacked) -> None:
    done = []

    def attack() -> None:
        with suppress(requests.ConnectionError, requests.Timeout):
            attacked.count(SLOW)
            done.append(time.monotonic())

    for _ in range(60):
        threading.Thread(target=attack, daemon=True).start()
    until(lambda: len(attacked.processes) == Limits().processes)
    with Lance(attacked.server.url) as other:
        for _ in range(10):
            ok(other.table(["t"], "describe", {}))
            assert ok(other.table(["t"], "count_rows", {})) == ROWS
            ok(other.create(["other"], TABLE.slice(0, 3), mode="overwrite"))
    assert len(done) < 60
    assert len(attacked.processes) <= Limits().processes
    for process in attacked.processes:
        assert process.memory_info().rss < Limits().memory + 512 * MIB
    attacked.server.kill()


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_no_process_outlives_the_server(attacked: Attacked, end: str, busy: bool) -> None:
    ok(attacked.count("id = 7"))
    (process,) = attacked.processes
    if busy:
        threading.Thread(target=pytest.raises, args=(Exception, attacked.count, SLOW), daemon=True).start()
        until(lambda: process.cpu_percent(0.1) > 10)
    if end == "kill":
        os.kill(attacked.server.process.pid, signal.SIGKILL)
        attacked.server.process.wait()
    else:
        assert attacked.server.stop()
    until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, 10)


def test_a_process_that_somebody_ends_is_started_again(attacked: Attacked) -> None:
    for _ in range(2):
        assert ok(attacked.count("id = 7")) == 1
        for process in attacked.processes:
            process.kill()
    assert ok(attacked.count("id = 7")) == 1


def test_nobody_sees_the_credentials_of_the_storage(start: Start, s3: S3) -> None:
    options = "".join(f'storage.{key} = "{value}"\n' for key, value in s3.options.items())
    own = {"IRC_BRIDGE__SERVER__TOKEN": "token-of-the-server"}
    configuration = f'[warehouses.main]\nroot = "{s3.bucket("secret")}"\n{options}'
    server = start(configuration, environment=own)
    with Lance(server.url, **{"x-api-key": own["IRC_BRIDGE__SERVER__TOKEN"]}) as client:
        attacked = Attacked(server, client)
        ok(client.create(["t"], TABLE.slice(0, 10)))
        assert ok(attacked.count("id > 6")) == 3
        (process,) = attacked.processes
        shown = [*process.cmdline(), *process.environ().values()]
        assert not [each for each in shown if SECRET in each or "token-of-the-server" in each]


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("tables") / "t.lance")
    lance.write_dataset(TABLE, place)
    return place


def counted(pool: CountingPool, location: str, predicate: str) -> int:
    return pool.count(location, {}, location, 1, predicate)


def test_a_count_that_takes_too_long_is_ended(location: str) -> None:
    slow = " or ".join(["coalesce(" * 12 + "s" + ",s)" * 12 + "='x1'"] * 20)
    with closing(CountingPool(Limits(processes=1, seconds=1, memory=16 * 1024 * MIB))) as pool:
        assert counted(pool, location, "id < 3") == 3
        with pytest.raises(InvalidInput, match="more than 1 seconds"):
            counted(pool, location, slow)
        assert counted(pool, location, "id < 3") == 3


def test_a_count_that_takes_too_much_memory_is_ended(location: str) -> None:
    with closing(CountingPool(Limits(processes=1, memory=256 * MIB))) as pool:
        with pytest.raises(InvalidInput, match="more than 256 MiB"):
            counted(pool, location, "length(repeat(s, 1000)) > 0")
        assert counted(pool, location, "id < 3") == 3


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    folder = tmp_path_factory.mktemp("fuzzed")
    with Server(str(folder / "tables"), "--port", "0", cwd=Path(folder)) as server, Lance(server.url) as client:
        ok(client.create(["t"], TABLE.slice(0, 100)))
        yield Attacked(server, client)


WORDS = st.sampled_from(
    [
        *(
            "id",
            "s",
            "1",
            "'x'",
            "(",
            ")",
            "[",
            "]",
            ",",
            ".",
            "=",
            "<",
            "+",
            "-",
            "*",
            "/",
            "%",
            "||",
            "::",
            "not",
        ),
        *(
            "and",
            "or",
            "in",
            "is",
            "null",
            "like",
            "between",
            "case",
            "when",
            "cast(",
            "as",
            "int",
            "length(",
            "`",
        ),
        *(
            "'",
            '"',
            "--",
            ";",
            "1e9",
            "x''",
            "true",
            "date",
            "interval",
            "select",
            "from",
            "array[",
            "{",
            "}",
            "?",
        ),
    ]
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=20))
def test_any_text_is_counted_or_refused(fuzzed: Attacked, predicate: str) -> None:
    answer = fuzzed.count(predicate)
    if answer.status_code == 200:
        assert 0 <= answer.json() <= 100
    else:
        refused(answer, 400, 13)
