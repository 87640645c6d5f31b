"""Contract tests that every backend passes, here against the image: read-only, without capabilities, in 512 MB."""

from contract_tests.contract.test_namespaces import TestNamespaces, test_every_listed_namespace_loads
from contract_tests.contract.test_tables import TestCreate, TestDeclare, TestDrop, TestMetrics
from contract_tests.contract.test_tags import location, test_pyiceberg, test_set_moved_and_removed

__all__ = [
    "TestCreate",
    "TestDeclare",
    "TestDrop",
    "TestMetrics",
    "TestNamespaces",
    "location",
    "test_every_listed_namespace_loads",
    "test_pyiceberg",
    "test_set_moved_and_removed",
]
