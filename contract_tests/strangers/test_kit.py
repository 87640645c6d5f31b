"""The REST Compatibility Kit says the same of the bridge as of the server behind it."""

from collections import Counter
from pathlib import Path

import pytest

from contract_tests.strangers.kit import run_kit
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.servers import reference_server
from contract_tests.worlds.upstream import bridge_over

FOUND = {"passed": 136, "skipped": 8, "failed": 1}
"""Of the reference server itself, which lets a table be made in a namespace that is not there."""
KNOWN_TO_FAIL = ("RESTCompatibilityKitCatalogTests", "tableCreationWithoutNamespace()")


def made(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def test_it_scores_through_the_bridge_what_it_scores_straight(tmp_path: Path) -> None:
    try:
        with reference_server(made(tmp_path, "straight")) as url:
            straight = run_kit(url, "main", made(tmp_path, "straight-reports"))
        with (
            reference_server(made(tmp_path, "behind")) as url,
            bridge_over(url, tmp_path / "bridge") as server,
        ):
            through = run_kit(server.url, "main", made(tmp_path, "through-reports"))
    except CannotRun as reason:
        pytest.skip(f"REST Compatibility Kit: {reason}")
    assert Counter(outcome.kind for outcome in straight.values()) == FOUND
    assert straight[KNOWN_TO_FAIL].kind == "failed"
    assert through.keys() == straight.keys()
    differ = {
        test: (f"straight: {straight[test]}", f"through the bridge: {through[test]}")
        for test in straight
        if straight[test].kind != through[test].kind
    }
    assert not differ
