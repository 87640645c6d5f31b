"""Native Lance and the bridge make the same names at the same time, each in processes of its own."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import lance
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    NamespaceAlreadyExistsError,
    TableAlreadyExistsError,
)

from contract_tests.directory.native import Native, seen_by_native, seen_by_us
from contract_tests.directory.opened import new_table, open_in
from irc_bridge.errors import ConcurrentModification, NamespaceAlreadyExists, TableAlreadyExists

NAMES = [f"n{number:02}" for number in range(30)]


def made_by_us(mode: str, root: Path) -> list[str]:
    catalog = open_in(mode, root)
    made = []
    for name in NAMES:
        try:
            catalog.create_namespace((name,), {})
            made.append(name)
        except (NamespaceAlreadyExists, ConcurrentModification):
            pass
        try:
            catalog.create_table(("a", name), new_table())
            made.append(f"a${name}")
        except (TableAlreadyExists, ConcurrentModification):
            pass
    return made


def made_by_native(mode: str, root: Path) -> list[str]:
    native = Native(mode, root)
    made = []
    for name in NAMES:
        try:
            native.create_namespace((name,))
            made.append(name)
        except (NamespaceAlreadyExistsError, ConcurrentModificationError):
            pass
        try:
            native.declare(("a", name))
            made.append(f"a${name}")
        except (TableAlreadyExistsError, ConcurrentModificationError):
            pass
    return made


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_each_name_is_made_once(root: Path, mode: str) -> None:
    catalog = open_in(mode, root)
    catalog.create_namespace(("a",), {})
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(4, mp_context=context) as processes:
        calls = [processes.submit(make, mode, root) for make in (made_by_us, made_by_native) * 2]
        made = sorted(name for call in calls for name in call.result())
    assert made == sorted([*NAMES, *(f"a${name}" for name in NAMES)])
    assert sorted(lance.dataset(root / "__manifest").to_table()["object_id"].to_pylist()) == ["a", *made]
    assert seen_by_us(catalog) == seen_by_native(Native(mode, root))
    # a native loser leaves the folder that it reserved
    ours = {path.name for path in root.iterdir() if not (path / ".lance-reserved").exists()} - {"__manifest"}
    assert ours <= set(seen_by_us(catalog, ("a",)).values())
