import itertools
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import settings

from contract_tests.lance import specification as lance_specification
from contract_tests.strangers.openapi import SPECIFICATION
from contract_tests.worlds.bridge import Client, Server
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.roots import Root
from contract_tests.worlds.s3 import S3, s3_server
from contract_tests.worlds.servers import nessie, reference_server
from contract_tests.worlds.world import IRC, NESSIE, WORLDS, Bridge, UpstreamWorld, World

Start = Callable[..., Server]

IN_UPSTREAM = [
    *("caching", "commit_crashes", "commit_races", "commit_repeats", "commits", "freshness", "lance_namespace"),
    *("managed_by", "name_races", "purges"),
    *("metadata", "mirrored", "rename", "schema_commits", "switching", "tables", "tags", "version_commits"),
]
"""What is held against a bridge before another server too. Names, namespaces, pages, errors are that server's."""


ON_NESSIE = ["managed_by", "metadata", "rename", "tables", "tags", "version_commits"]
"""What is held against a second one."""


LONG = [
    *("test_generated_iceberg", "test_generated_lance", "test_edge_bodies"),
    *("test_mirror_processes", "test_mirror_spark", "test_mirror_trino", "test_processes"),
    *("test_housekeeping_spark", "test_housekeeping_trino", "test_housekeeping_go", "test_ddl_spark"),
    *("test_kit", "test_spark", "test_spark_upstream", "test_managed_crashes", "test_model", "test_concurrency"),
    *("test_commits", "test_metadata", "test_version_crashes", "test_commit_crashes", "test_freshness"),
    *("test_version_commits", "test_caching", "test_serve", "test_s3_crashes", "test_first_versions"),
]
"""Files that take long. They come first, or some process is left alone with one at the end."""


def pytest_configure(config: pytest.Config) -> None:
    # speed is measured in contract_tests/load; how long an example takes tells nothing on a busy machine
    settings.register_profile("irc-bridge", settings.default, deadline=None)
    settings.load_profile("irc-bridge")
    config.addinivalue_line("markers", "needs(ability): what a world must be able to do for this test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not is_what_others_answer(item)]
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))
    for item in items:
        if isinstance(world := params_of(item).get("world"), World):
            for marker in item.iter_markers("needs"):
                if reason := world.cannot.get(marker.args[0]):
                    item.add_marker(pytest.mark.xfail(reason=f"{world.name}: {reason}", strict=True))


def is_what_others_answer(item: pytest.Item) -> bool:
    world = params_of(item).get("world")
    if not isinstance(world, UpstreamWorld) or item.path.parent.name == "lance":
        return False
    return item.path.stem.removeprefix("test_") not in (ON_NESSIE if world.on_s3 else IN_UPSTREAM)


def params_of(item: pytest.Item) -> dict[str, Any]:
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Generator[None]:
    yield
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", [])
    )
    reasons.update(f"expected to fail: {report.wasxfail}" for report in terminalreporter.stats.get("xfailed", []))
    left_out = [f"{count} x {reason}" for reason, count in sorted(reasons.items())]
    if not SPECIFICATION.exists():
        left_out.append(f"answers were not held against the OpenAPI: there is no {SPECIFICATION.name}")
    if not lance_specification.SPECIFICATION.exists():
        left_out.append(f"answers under /lance were not held against it: {lance_specification.ABSENT}")
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    properties = [each for report in reports for each in getattr(report, "user_properties", ())]
    if containers := dict.fromkeys(line for name, line in properties if name == "containers"):
        terminalreporter.section("containers")
        for line in containers:
            terminalreporter.line(line)
    if left_out:
        terminalreporter.section("left out of this run")
        for line in left_out:
            terminalreporter.line(line)


@pytest.fixture(scope="session", params=WORLDS, ids=lambda world: world.name)
def world(request: pytest.FixtureRequest) -> World:
    chosen: World = request.param
    if isinstance(chosen, UpstreamWorld):
        started: UpstreamWorld = request.getfixturevalue("upstream_on_s3" if chosen.on_s3 else "upstream")
        return started
    return replace(chosen, s3=request.getfixturevalue("s3")) if chosen.on_s3 else chosen


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpstreamWorld]:
    """One server for all tests that want one, each in namespaces of its own."""
    folder = tmp_path_factory.mktemp("upstream")
    with ExitStack() as stack:
        try:
            url = stack.enter_context(reference_server(folder, {"jdbc.strict-mode": "true"}))
        except CannotRun as reason:
            pytest.skip(str(reason))
        _make_default_namespace(f"{url}/v1")
        yield replace(IRC, url=url, warehouse=folder)


@pytest.fixture(scope="session")
def upstream_on_s3(s3: S3) -> Iterator[UpstreamWorld]:
    with ExitStack() as stack:
        try:
            url = stack.enter_context(nessie(s3))
        except CannotRun as reason:
            pytest.skip(str(reason))
        _make_default_namespace(f"{url}/v1/main")
        bucket = max(s3.folder.glob("nessie-*"), key=lambda folder: folder.stat().st_mtime)
        yield replace(NESSIE, url=url, s3=s3, bucket=f"s3://{bucket.name}")


def _make_default_namespace(base: str) -> None:
    made = requests.post(f"{base}/namespaces", json={"namespace": ["default"]}, timeout=60)
    assert made.status_code == 200, made.text


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """One server for all tests that want one, each in buckets of its own."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(s3_server(tmp_path_factory.mktemp("buckets")))
        except CannotRun as reason:
            pytest.skip(str(reason))
        yield server


@pytest.fixture(scope="session")
def bridge(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    with world.start(tmp_path_factory.mktemp(world.name)) as bridge:
        yield bridge


@pytest.fixture
def client(bridge: Bridge) -> Client:
    return bridge.client


@pytest.fixture
def root(bridge: Bridge) -> Root:
    return bridge.root


_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """A name that no other test uses: tests share a server."""
    return f"n{next(_numbers)}"


@pytest.fixture
def namespace(world: World, client: Client, name: str) -> tuple[str, ...]:
    """A namespace for tables, of this test alone where the world has namespaces."""
    if "child namespaces" in world.cannot:
        return ("default",)
    return client.create_namespace(f"ns_{name}")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers of this test alone, each in a folder of its own, which arguments name as {cwd}."""
    with ExitStack() as stack:

        def start_server(configuration: str = "", arguments: tuple[str, ...] = (), **more: Any) -> Server:
            folder = tmp_path / f"server{len(list(tmp_path.glob('server*')))}"
            folder.mkdir()
            if configuration:
                (folder / "irc-bridge.toml").write_text(configuration)
            named = [argument.replace("{cwd}", str(folder)) for argument in arguments]
            return stack.enter_context(Server(*named, "--port", "0", cwd=folder, **more))

        yield start_server
