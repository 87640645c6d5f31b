"""Whatever is sent to an Iceberg route, the answer is one of the specification, and none is a 5xx."""

from collections.abc import Iterator
from typing import Any

import pytest

from contract_tests.fuzz.generated import OF_EACH, Fuzz, name_of, operations
from contract_tests.strangers.openapi import SPECIFICATION
from contract_tests.worlds.world import COMPATIBLE

pytestmark = pytest.mark.skipif(not SPECIFICATION.exists(), reason=f"there is no {SPECIFICATION.name}")
OPERATIONS = operations(SPECIFICATION)
KNOWN = {
    "prefix": ["main"],
    "namespace": ["default", "space", "space\x1fdeep"],
    "table": ["fuzzed", "other"],
    "view": ["fuzzed"],
}


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzz]:
    with COMPATIBLE.start(tmp_path_factory.mktemp("fuzz")) as bridge:
        bridge.client.create_namespace("space")
        bridge.client.create_table(("default",), "fuzzed")
        bridge.client.create_table(("space",), "fuzzed")
        yield Fuzz(bridge.server.url, bridge.client.session, KNOWN)


@pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
def test_each_operation(fuzz: Fuzz, operation: Any) -> None:
    fuzz.run(operation)
    assert fuzz.sent[name_of(operation)] >= OF_EACH - 1
