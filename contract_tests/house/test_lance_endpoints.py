"""The table of endpoints of the Lance protocol is the specification's list of operations."""

import pytest

from contract_tests.lance.specification import ABSENT, SPECIFICATION, specification
from irc_bridge.lance_rest.endpoints import ENDPOINTS
from irc_bridge.lance_rest.router import PATHS

pytestmark = pytest.mark.skipif(not SPECIFICATION.exists(), reason=ABSENT)


def test_it_has_exactly_the_fifty_four_operations() -> None:
    known = specification()
    assert known
    ours = sorted((each.operation, each.method, each.path) for each in ENDPOINTS)
    assert ours == sorted((each.id, each.method, each.template) for each in known.operations)
    assert len(ours) == 54


def test_every_operation_is_routed() -> None:
    known = specification()
    assert known
    for each in known.operations:
        path = each.template.replace("{id}", "a%24b%2F").replace("{index_name}", "i%2F")
        for prefix in (None, "some", "v1"):
            raw = f"/lance/{prefix}{path}" if prefix else f"/lance{path}"
            match = PATHS.find(each.method, raw.encode())
            assert (match.endpoint.operation, match.prefix) == (each.id, prefix)
            assert set(match.params.values()) <= {"a%24b%2F", "i%2F"}
            assert len(match.params) == each.template.count("{")
