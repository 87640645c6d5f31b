"""The one table of endpoints is the specification's list of operations."""

import pytest

from contract_tests.strangers.openapi import SPECIFICATION, specification
from irc_bridge.iceberg_rest.endpoints import ENDPOINTS

pytestmark = pytest.mark.skipif(not SPECIFICATION.exists(), reason=f"there is no {SPECIFICATION.name}")


def test_it_has_exactly_the_thirty_operations() -> None:
    known = specification()
    assert known
    ours = sorted((each.operation, each.method, each.path) for each in ENDPOINTS)
    assert ours == sorted((each.id, each.method, each.template) for each in known.operations)
    assert len(ours) == 30


def test_every_change_is_marked() -> None:
    """What a read-only warehouse refuses follows from the method, but for the reads that are POSTs."""
    reads = {"getToken", "reportMetrics", "planTableScan", "fetchScanTasks", "cancelPlanning"}
    for each in ENDPOINTS:
        assert each.changes == (each.method in ("POST", "DELETE") and each.operation not in reads), each.operation
