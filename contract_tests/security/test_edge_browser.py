"""A user of the bridge visits a hostile web page, in a real browser."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from contract_tests.security.attacker import Attacker, attacker
from contract_tests.security.target import Target, contents_below, running_target
from contract_tests.worlds.process import Guard

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECONDS = 120
HOSTILE, REBOUND = "attacker.example", "rebound.example"
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--no-proxy-server", "--remote-debugging-port=0",
    f"--host-resolver-rules=MAP {HOSTILE} 127.0.0.1,MAP {REBOUND} 127.0.0.1",
]  # fmt: skip

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here: no hostile page was visited in a browser"
)


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_target(tmp_path_factory.mktemp("visited")) as target:
        yield target


@contextmanager
def browser(url: str, folder: Path) -> Iterator[None]:
    """Looks at one page, for as long as the block takes."""
    assert CHROMIUM
    log = (folder / "chromium.log").open("wb")
    command = [CHROMIUM, *ARGUMENTS, f"--user-data-dir={folder / 'profile'}", url]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True
    )
    guard = Guard(process)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        guard.release()
        log.close()


def report_of_visit(host: str, attacking: Attacker, folder: Path) -> list[dict[str, Any]]:
    with browser(f"http://{host}:{attacking.port}/page", folder):
        return attacking.reports.get(timeout=SECONDS)


def test_a_page_of_another_site_changes_nothing_and_reads_nothing(visited: Target, tmp_path: Path) -> None:
    before = contents_below(visited.root)
    with attacker(visited.address) as attacking:
        attacking.bridges = [f"http://{name}:{visited.address[1]}" for name in ("127.0.0.1", "localhost")]
        outcomes = report_of_visit(HOSTILE, attacking, tmp_path)
    assert len(outcomes) == 36
    for outcome in outcomes:
        opaque = outcome.get("type") == "opaque" and outcome["status"] == 0
        assert "blocked" in outcome or opaque, outcome
        assert not outcome.get("text"), outcome
    refused = [line for line in visited.server.log if " 403 " in line]
    assert len(refused) >= 30, "the page did reach the server"
    assert contents_below(visited.root) == before


def test_a_page_whose_name_leads_here_changes_nothing_and_reads_nothing(visited: Target, tmp_path: Path) -> None:
    """By DNS rebinding, where the browser takes the bridge for the page's own server."""
    before = contents_below(visited.root)
    with attacker(visited.address) as attacking:
        attacking.bridges = [f"http://{REBOUND}:{attacking.port}"]
        outcomes = report_of_visit(REBOUND, attacking, tmp_path)
    assert len(outcomes) == 18
    fetched = [outcome for outcome in outcomes if "status" in outcome]
    assert len(fetched) == 12, "the browser lets the page read what comes from its own origin"
    for outcome in fetched:
        assert outcome["status"] == 403
        assert REBOUND in outcome["text"] and "metadata" not in outcome["text"]
    for outcome in outcomes:
        assert outcome.get("type") not in ("loaded", "open"), outcome
    assert contents_below(visited.root) == before
