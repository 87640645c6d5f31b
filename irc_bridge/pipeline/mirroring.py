"""Mirrors brought up to date: which versions of which tables, and what was done."""

import json
import re
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from irc_bridge.catalog.models import History, Levels, TableInfo, TableVersion, Unchanged
from irc_bridge.catalog.ports import Catalog
from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.mirror_layout import LOGS
from irc_bridge.mirror.expiry import expire
from irc_bridge.mirror.mirrors import Brought, Mirror, Work
from irc_bridge.mirror.pieces import Piece, Source, Writer, Written, allowed_locations_of, source_of
from irc_bridge.pipeline.work import run
from irc_bridge.storage.base import open_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORTH_BYTES = 8 * 1024 * 1024
"""Fragments smaller than that share a Spark task."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions to mirror: the latest where both bounds are None."""

    first: int | None = None
    last: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Versions":
        """`latest`, `all` or `A..B`, both included."""
        if text == "latest":
            return cls()
        if text == "all":
            return cls(1)
        match = re.fullmatch(r"(\d{1,18})\.\.(\d{1,18})?", text)
        if match is None or not 0 < int(match[1]) <= int(match[2] or match[1]):
            raise InvalidInput(f"versions must be latest, all, A..B or A.. and not {text}")
        return cls(int(match[1]), int(match[2]) if match[2] else None)

    def of(self, versions: Iterable[TableVersion]) -> list[int]:
        numbers = [version.version for version in versions]
        if self.first is None:
            return numbers[-1:]
        return [each for each in numbers if self.first <= each <= (self.last or each)]


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome for one table."""

    table: str
    versions: Sequence[Brought]
    latest: int | None
    mirrored: int | None
    """The newest version that engines can read."""
    lag_seconds: float
    """For how long there has been a version after it."""
    seconds: float

    def summary(self) -> dict[str, object]:
        done = [each for each in self.versions if each.outcome == "mirrored"]
        return {
            "table": self.table,
            "versions": len(done),
            "mirrored": self.mirrored,
            "latest": self.latest,
            "lag_seconds": self.lag_seconds,
            "fragments_written": sum(each.files_written for each in done),
            "fragments_reused": sum(each.files_reused for each in done),
            "bytes": sum(each.bytes_written for each in done),
            "seconds": round(self.seconds, 2),
        }


class Mirroring:
    """Does it for tables again and again; one that did not change costs a look."""

    def __init__(self, wanted: Versions, work: Work) -> None:
        self._wanted = wanted
        self._work = work
        self._seen: dict[str, Hashable] = {}

    def bring(self, name: str, catalog: Catalog, table: Levels) -> Report | None:
        """None where nothing has changed since the last time."""
        begun = time.monotonic()
        info = catalog.load_table(table, History.ALL, self._seen.get(name))
        if isinstance(info, Unchanged):
            return None
        source = source_of(catalog, table, info)
        mirror = Mirror(source, info, allowed_locations_of(catalog))
        brought = [*mirror.bring(self._wanted.of(info.versions), self._work)]
        report = _report(name, info, mirror.present(), brought, time.monotonic() - begun)
        if brought:
            _log(source, report)
        self._seen[name] = info.token
        return report


def expired(name: str, catalog: Catalog, table: Levels, grace_ms: int, now_ms: int) -> dict[str, object]:
    info = catalog.load_table(table)
    assert isinstance(info, TableInfo)
    done = expire(source_of(catalog, table, info), info, grace_ms, now_ms)
    return {"table": name, **asdict(done)}


def in_this_process(source: Source, pieces: Sequence[Piece]) -> Iterator[list[Written]]:
    return map(Writer(source), pieces)


def on_spark(session: Callable[[], "SparkSession"]) -> Work:
    """Has executors do the work; a session is asked for only when there is some."""

    def work(source: Source, pieces: Sequence[Piece]) -> list[list[Written]]:
        return run(session(), Writer(source), pieces, _weight, "Mirroring", _WORTH_BYTES)

    return work


def _weight(piece: Piece) -> int:
    return piece.size if piece.data is None else piece.size // 100


def _report(name: str, info: TableInfo, present: set[int], brought: Sequence[Brought], seconds: float) -> Report:
    latest, mirrored = info.latest, max(present, default=None)
    missed = next((each for each in info.versions if mirrored is None or each.version > mirrored), None)
    lag = None if missed is None else round(max(0.0, time.time() - missed.timestamp_ms / 1000), 3)
    return Report(name, brought, latest.version if latest else None, mirrored, lag or 0.0, seconds)


def _log(source: Source, report: Report) -> None:
    """For people, beside the mirror."""
    now = datetime.now(UTC)
    document = {"at": now.isoformat(timespec="seconds"), **report.summary()}
    document["versions"] = [asdict(each) for each in report.versions]
    name = f"{LOGS}/{now:%Y%m%dT%H%M%S}-{uuid4().hex[:8]}.json"
    open_storage(source.location, source.options).write(name, json.dumps(document, indent=2).encode())
