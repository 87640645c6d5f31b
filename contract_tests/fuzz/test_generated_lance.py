"""Whatever is sent to a Lance route, the answer is one of the specification, and none is a 5xx."""

from collections.abc import Iterator
from typing import Any

import pytest

from contract_tests.fuzz.generated import OF_EACH, Fuzz, name_of, operations
from contract_tests.lance.client import Lance, ok
from contract_tests.lance.specification import ABSENT, SPECIFICATION
from contract_tests.worlds.world import COMPATIBLE

pytestmark = pytest.mark.skipif(not SPECIFICATION.exists(), reason=ABSENT)
OPERATIONS = operations(SPECIFICATION)
KNOWN = {"id": ["fuzzed", "space$fuzzed", "space", "$", "other"], "index_name": ["fuzzed"]}


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzz]:
    with COMPATIBLE.start(tmp_path_factory.mktemp("fuzz")) as bridge, Lance(bridge.server.url) as lance:
        ok(lance.namespace(["space"], "create"))
        ok(lance.create(["fuzzed"]))
        ok(lance.create(["space", "fuzzed"]))
        yield Fuzz(lance.uri, lance.session, KNOWN)


@pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
def test_each_operation(fuzz: Fuzz, operation: Any) -> None:
    fuzz.run(operation)
    assert fuzz.sent[name_of(operation)] >= OF_EACH - 1
