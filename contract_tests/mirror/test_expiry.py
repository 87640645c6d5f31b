from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from contract_tests.mirror.mirroring import Lake, in_turn
from contract_tests.worlds.s3 import S3
from irc_bridge.mirror.expiry import Expired, expire
from irc_bridge.mirror.pieces import Piece, Source, Written

HOUR, DAY = 3_600_000, 24 * 3_600_000
LATER = 4_000_000_000_000
"""Long after every file of a test was written."""


@pytest.fixture(params=["local", "s3"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    if request.param == "local":
        return Lake(str(tmp_path))
    server: S3 = request.getfixturevalue("s3")
    return Lake(server.bucket("expiry"), server.options)


def expired(lake: Lake, grace: int, now: int) -> Expired:
    info = lake.info()
    return expire(Source(info.location, lake.options), info, grace, now)


def now_of(lake: Lake) -> int:
    return lake.info().updated_ms


def mirrored(lake: Lake) -> None:
    """Three versions, of which the first shares its file with the second."""
    lake.write(pa.table({"id": [1]}))
    lake.write(pa.table({"id": [2]}), mode="append")
    lake.write(pa.table({"id": [3]}), mode="overwrite")
    lake.bring()


def test_nothing_goes_while_lance_has_the_versions(lake: Lake) -> None:
    mirrored(lake)
    assert expired(lake, 0, now_of(lake)) == Expired(0, 0, 0)
    assert lake.mirror().present() == {1, 2, 3}


def test_versions_go_after_the_grace(lake: Lake) -> None:
    mirrored(lake)
    lake.open().cleanup_old_versions(timedelta(0))
    now = now_of(lake)
    assert expired(lake, HOUR, now) == Expired(0, 2, 0)
    assert expired(lake, HOUR, now + HOUR // 2) == Expired(0, 2, 0)
    gone = expired(lake, HOUR, now + HOUR + 60_000)
    assert gone == Expired(2, 0, 4)  # two data files and two manifests
    assert lake.mirror().present() == {3}
    assert lake.seen(3)["id"].to_pylist() == [3]
    assert expired(lake, HOUR, now + HOUR + 60_000) == Expired(0, 0, 0)


def test_without_grace(lake: Lake) -> None:
    mirrored(lake)
    lake.open().cleanup_old_versions(timedelta(0))
    assert expired(lake, 0, now_of(lake)).versions == 2


def test_what_a_dead_run_left_goes_after_a_day(lake: Lake) -> None:
    mirrored(lake)
    lake.write(pa.table({"id": [4]}), mode="append")

    class Died(Exception):
        pass

    orders: list[tuple[Source, Sequence[Piece]]] = []

    def die(source: Source, pieces: Sequence[Piece]) -> list[list[Written]]:
        orders.append((source, pieces))
        raise Died

    with pytest.raises(Died):
        [*lake.mirror().bring([4], die)]
    # executors outlive the driver
    assert all([*in_turn(*each)] for each in orders)
    now = now_of(lake)
    assert expired(lake, 0, now + DAY // 2) == Expired(0, 0, 0)
    assert expired(lake, 0, now + 2 * DAY) == Expired(0, 0, 1)
    lake.bring()
    assert sorted(lake.seen(4)["id"].to_pylist()) == [3, 4]


def test_no_file_of_lance_goes(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    mirrored(lake)
    lake.open().cleanup_old_versions(timedelta(0))

    def of_lance() -> set[Path]:
        return {each for each in Path(lake.uri).rglob("*") if each.is_file() and "_iceberg" not in each.parts}

    before = of_lance()
    expired(lake, 0, LATER)
    assert of_lance() == before
    assert lake.open().to_table()["id"].to_pylist() == [3]
    assert lake.seen(3)["id"].to_pylist() == [3]


def test_logs_are_kept_for_a_month(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    mirrored(lake)
    log = Path(lake.uri, "_iceberg", "log", "20260101T000000-0.json")
    log.parent.mkdir()
    log.write_text("{}")
    now = log.stat().st_mtime_ns // 1_000_000
    expired(lake, 0, now + 29 * DAY)
    assert log.exists()
    expired(lake, 0, now + 31 * DAY)
    assert not log.exists()
