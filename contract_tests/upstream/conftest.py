from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import requests

from contract_tests.upstream.faulty import Handler, Received, Reply, Upstream, faulty_upstream
from contract_tests.upstream.lance_catalog import UpstreamCatalog, opened
from contract_tests.upstream.replies import answer, error
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.upstream import bridge_over
from contract_tests.worlds.world import UpstreamWorld
from irc_bridge.catalog.models import Levels

CONFIG = (
    b'{"defaults":{"prefix":"ware/house","a":"b"},"overrides":{"uri":"http://past.the.bridge","token":"upstream\'s",'
    b'"scan-planning-mode":"client"},"endpoints":["GET /v1/{prefix}/namespaces","POST /v1/{prefix}/x/y"],'
    b'"idempotency-key-lifetime":"PT30M"}'
)
PREFIX = "/v1/ware/house"


@dataclass
class Behind:
    """The server behind the bridge, which does what a test says."""

    server: Server
    upstream: Upstream
    handler: list[Handler] = field(default_factory=list)

    @property
    def base(self) -> str:
        return f"{self.server.url}/v1/main"

    def does(self, handler: Handler) -> None:
        self.handler[:] = [handler]
        self.upstream.requests.clear()

    def says(self, reply: Reply) -> None:
        self.does(lambda _: reply)

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Method and target of the requests since then."""
        return [(each.method, each.target) for each in self.upstream.requests]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Behind]:
    handler: list[Handler] = []

    def handle(received: Received) -> Reply | None:
        if received.path == "/v1/config":
            return answer(body=CONFIG)
        return handler[0](received) if handler else error(500, "NobodySaidWhatToDo")

    settings = getattr(request.module, "SETTINGS", "")
    with (
        faulty_upstream(handle) as upstream,
        bridge_over(upstream.url, tmp_path_factory.mktemp("bridge"), settings) as server,
    ):
        behind = Behind(server, upstream, handler)
        requests.get(f"{behind.base}/namespaces", timeout=60)  # asks for the configuration, once
        yield behind


@pytest.fixture
def behind(running: Behind) -> Behind:
    running.handler.clear()
    running.upstream.requests.clear()
    return running


@pytest.fixture
def catalog(upstream: UpstreamWorld) -> UpstreamCatalog:
    return opened(upstream)


@pytest.fixture
def table(catalog: UpstreamCatalog, name: str) -> Levels:
    catalog.create_namespace((f"lance_{name}",), {})
    return (f"lance_{name}", "t")
