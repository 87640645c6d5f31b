"""The directory namespace in one process, held against pylance's native one on the same disk."""

import itertools
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance_namespace as ln
from lance.namespace import DirectoryNamespace

from contract_tests.directory.opened import Directory, declared, open_in
from contract_tests.load import folders
from contract_tests.load.report import Line, at_least, rates_of, slower_at_most

CALLERS = 64
FEW, MANY = 200, 20_000
ROUNDS = 3

Call = Callable[[str], object]


def namespace(root: Path) -> Iterator[Line]:
    for count in (FEW, MANY):
        folders.declared(root / f"declared_{count}", count)
    yield from declares(root)
    yield from lookups(root)


def declares(root: Path) -> Iterator[Line]:
    ours, native = _both(root, FEW, "declare")
    one = rates_of({"ours": _alone(_declare(ours)), "native": _alone(_declare_natively(native))}, ROUNDS)
    yield at_least(f"declare, {FEW} tables", one["ours"], one["native"], 0.5)
    many = rates_of({"ours": _together(_declare(ours)), "native": _together(_declare_natively(native))}, ROUNDS)
    yield at_least(f"declare, {CALLERS} callers", many["ours"], many["native"], 3)
    small, large = _ours(root, FEW, "small"), _ours(root, MANY, "large")
    sizes = rates_of({"small": _alone(_declare(small)), "large": _alone(_declare(large))}, ROUNDS)
    yield slower_at_most(f"declare, {MANY:,} tables / {FEW}", sizes["large"], sizes["small"], 2)


def lookups(root: Path) -> Iterator[Line]:
    for count in (FEW, MANY):
        ours, native = _both(root, count, "look")
        names = [f"t{n}" for n in range(0, count, max(1, count // 500))]
        for what, mine, theirs in (
            ("describe", _describe(ours), _describe_natively(native)),
            ("exists", _exists(ours), _exists_natively(native)),
        ):
            found = rates_of({"ours": _each(mine, names), "native": _each(theirs, names)}, ROUNDS)
            yield at_least(f"{what}, {count:,} tables", found["ours"], found["native"], 3)
    lists = {"ours": _each(_list(ours), ["small"] * 50), "native": _each(_list_natively(native), ["small"] * 50)}
    found = rates_of(lists, ROUNDS)
    yield at_least(f"list {folders.LISTED} of {MANY:,} tables", found["ours"], found["native"], 2)


def _both(root: Path, count: int, use: str) -> tuple[Directory, DirectoryNamespace]:
    return _ours(root, count, f"{use}_ours"), DirectoryNamespace(
        root=str(_copy(root, count, f"{use}_native")), dir_listing_enabled="false"
    )


def _ours(root: Path, count: int, use: str) -> Directory:
    return open_in("v2", _copy(root, count, use))


def _copy(root: Path, count: int, use: str) -> Path:
    copy = root / f"declared_{count}_{use}"
    shutil.copytree(root / f"declared_{count}", copy)
    return copy


_numbers = itertools.count()


def _alone(call: Call) -> Callable[[], float]:
    return lambda: _rate(call, [f"new{next(_numbers)}" for _ in range(60)])


def _together(call: Call) -> Callable[[], float]:
    def measure() -> float:
        names = [f"new{next(_numbers)}" for _ in range(CALLERS * 8)]
        with ThreadPoolExecutor(CALLERS) as callers:
            start = time.perf_counter()
            list(callers.map(call, names))
            return len(names) / (time.perf_counter() - start)

    return measure


def _each(call: Call, names: Sequence[str]) -> Callable[[], float]:
    return lambda: _rate(call, names)


def _rate(call: Call, names: Sequence[str]) -> float:
    start = time.perf_counter()
    for name in names:
        call(name)
    return len(names) / (time.perf_counter() - start)


def _declare(catalog: Directory) -> Call:
    return lambda name: catalog.create_table(("ns", name), declared())


def _declare_natively(native: DirectoryNamespace) -> Call:
    return lambda name: native.declare_table(ln.DeclareTableRequest(id=["ns", name]))


def _describe(catalog: Directory) -> Call:
    return lambda name: catalog.load_table(("ns", name))


def _describe_natively(native: DirectoryNamespace) -> Call:
    return lambda name: native.describe_table(ln.DescribeTableRequest(id=["ns", name]))


def _exists(catalog: Directory) -> Call:
    def exists(name: str) -> None:
        assert catalog.table_exists(("ns", name))

    return exists


def _exists_natively(native: DirectoryNamespace) -> Call:
    return lambda name: native.table_exists(ln.TableExistsRequest(id=["ns", name]))


def _list(catalog: Directory) -> Call:
    def listed(name: str) -> None:
        assert len(catalog.list_tables((name,)).items) == folders.LISTED

    return listed


def _list_natively(native: DirectoryNamespace) -> Call:
    def listed(name: str) -> None:
        assert len(native.list_tables(ln.ListTablesRequest(id=[name])).tables) == folders.LISTED

    return listed
