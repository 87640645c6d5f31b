"""Two processes change one name: one is stopped before each of its steps in storage in turn, the other does all of
its work there, and the first goes on. What both were told and what is left is what one order of the two gives, or
one of the two was refused."""

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pytest

from contract_tests.directory.opened import Directory, append, new_table, open_in, path_of
from contract_tests.worlds.disks import folder_in_memory
from irc_bridge.catalog.ports import CanKeepPurged, CanListDeregistered
from irc_bridge.errors import BridgeError
from irc_bridge.lance_store.rows import RowTable
from irc_bridge.storage.local import LocalStorage

T = ("t",)
HOUR_MS = 3_600_000
ROWS = [1, 2]

Change = Callable[[Directory, str], object]


def purge(catalog: Directory, location: str) -> None:
    catalog.purge_table(T, HOUR_MS)


def purge_now(catalog: Directory, location: str) -> None:
    catalog.purge_table(T, 0)


def drop(catalog: Directory, location: str) -> None:
    catalog.drop_table(T)


def deregister(catalog: Directory, location: str) -> None:
    catalog.deregister_table(T)


def register(catalog: Directory, location: str) -> None:
    catalog.register_table(T, location)


def create(catalog: Directory, location: str) -> None:
    catalog.create_table(T, new_table())


def remove(catalog: Directory, location: str) -> None:
    assert isinstance(catalog, CanKeepPurged)
    for each in catalog.purges():
        catalog.remove_purged(each)


@dataclass(frozen=True)
class End:
    is_table: bool
    is_old: bool
    """Whether the table is the one that was there first."""
    has_files: bool
    """Whether the first table is whole where it lay."""
    is_pending: bool


def answer_of(change: Change, catalog: Directory, location: str) -> str:
    try:
        change(catalog, location)
    except BridgeError as error:
        assert error.status < 500, error.message
        if "dropped by somebody else right after that" in error.message:
            return "done"
        return "refused"
    return "done"


def end_of(mode: str, root: Path, location: str) -> End:
    catalog = open_in(mode, root)
    is_table = list(catalog.list_tables(()).items) == ["t"]
    assert is_table is catalog.table_exists(T)
    is_old = False
    if is_table:
        info = catalog.load_table(T)
        content = lance.dataset(info.location).to_table()["id"].to_pylist()  # type: ignore[union-attr]
        is_old = content == ROWS
    assert isinstance(catalog, CanListDeregistered)
    return End(is_table, is_old, is_whole(location), any(each.purge for each in catalog.deregistered()))


def is_whole(location: str) -> bool:
    try:
        dataset = lance.dataset(location)
    except ValueError:
        return False
    return dataset.to_table()["id"].to_pylist() == ROWS and dataset.version == 2


class Stopped:
    """Runs something else before the nth step that one catalog takes in storage."""

    def __init__(self, at: int, between: Callable[[], None]) -> None:
        self._left = at
        self._between = between
        self.is_over = False

    @contextmanager
    def watching(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with monkeypatch.context() as patch:
            for owner, names in ((LocalStorage, STEPS), (RowTable, ("commit", "create", "latest"))):
                for name in names:
                    patch.setattr(owner, name, self._watched(getattr(owner, name)))
            yield

    def _watched(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            if not self.is_over:
                if self._left == 0:
                    self.is_over = True
                    self._between()
                self._left -= 1
            return original(*args, **kwargs)

        return step


STEPS = ("names", "identity", "read", "put_if_absent", "promote", "write", "delete", "delete_tree", "copy_tree")


@pytest.fixture
def root() -> Iterator[Path]:
    with folder_in_memory() as folder:
        yield folder


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for the other waits in vain: it is stopped. No power fails here."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(os, "fsync", lambda _: None)


def made(root: Path, mode: str, before: Change | None) -> str:
    catalog = open_in(mode, root)
    info = catalog.create_table(T, new_table())
    append(info, *ROWS)
    if before is not None:
        before(catalog, info.location)
    return path_of(info)


LIVE = [purge, purge_now, drop, deregister]
PENDING = [remove, register, create, drop]
REMOVALS = {purge_now, drop}
CASES = [
    *((None, one, other) for one, other in itertools.product(LIVE, [*LIVE, create])),
    *((purge, one, other) for one, other in itertools.product(PENDING, PENDING)),
    *((deregister, one, other) for one, other in ((register, drop), (drop, register), (register, register))),
]


def name_of(case: object) -> str:
    return getattr(case, "__name__", "live")


@pytest.mark.parametrize(("before", "one", "other"), CASES, ids=name_of)
def test_as_if_one_came_after_the_other(
    root: Path, mode: str, before: Change | None, one: Change, other: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = root / "prepared"
    prepared.mkdir()
    folder = Path(made(prepared, mode, before)).relative_to(prepared)
    numbers = itertools.count()

    def fresh() -> tuple[Path, str]:
        copy = root / str(next(numbers))
        shutil.copytree(prepared, copy)
        return copy, str(copy / folder)

    def in_order(first: Change, second: Change) -> tuple[str, str, End]:
        copy, location = fresh()
        catalog = open_in(mode, copy)
        answers = answer_of(first, catalog, location), answer_of(second, catalog, location)
        return *answers, end_of(mode, copy, location)

    def alone(change: Change) -> tuple[str, End]:
        copy, location = fresh()
        return answer_of(change, open_in(mode, copy), location), end_of(mode, copy, location)

    forth, back = in_order(one, other), in_order(other, one)
    allowed = {forth, (back[1], back[0], back[2])}
    only_one, only_other = alone(one), alone(other)
    allowed |= {(only_one[0], "refused", only_one[1]), ("refused", only_other[0], only_other[1])}
    if {one, other} <= REMOVALS:
        # both took part in what both were asked for
        allowed.add(("done", "done", only_one[1]))
    if one is remove and other is drop:
        # the remover is stopped with the lock: what the drop wants is done by the next remover
        allowed.add(("done", "refused", end_of(mode, *fresh())))
    for step in itertools.count():
        copy, location = fresh()
        answers: list[str] = []
        stopped = Stopped(step, lambda: answers.append(answer_of(other, open_in(mode, copy), location)))  # noqa: B023
        catalog = open_in(mode, copy)
        with stopped.watching(monkeypatch):
            first = answer_of(one, catalog, location)
        if not stopped.is_over:
            return
        told = (first, answers[0], end_of(mode, copy, location))
        assert told in allowed, f"before step {step}: {told}, allowed {allowed}"
        shutil.rmtree(copy)
