"""The REST Compatibility Kit 1.11 straight at a folder of Lance tables fails by limits that the README names, and
by nothing else."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import contract_tests
from contract_tests.strangers.kit import Outcome, Test, run_kit
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.java import CannotRun

README = Path(contract_tests.__file__).parent.parent / "README.md"
TABLES, VIEWS = "RESTCompatibilityKitCatalogTests", "RESTCompatibilityKitViewCatalogTests"


@dataclass(frozen=True)
class Limit:
    named: str
    """The README's words for it."""
    message: str
    """A pattern of what the tests fail with."""
    tests: tuple[str, ...]


LIMITS = [
    Limit(
        "partition spec or a sort order",
        r"neither partitioned nor sorted|add-spec cannot be applied|add-sort-order cannot be applied",
        (
            "testAppend()",
            "testCompleteCreateOrReplaceTransactionCreate()",
            "testCompleteCreateTable()",
            "testCompleteCreateTransaction()",
            "testCompleteCreateTransactionMultipleSchemas()",
            "testCompleteCreateTransactionV2()",
            "testConcurrentAppendEmptyTable()",
            "testConcurrentAppendNonEmptyTable()",
            "testLoadTable()",
            "testRegisterTable()",
            "testRemoveUnusedSchemas(boolean)[1]",
            "testRemoveUnusedSchemas(boolean)[2]",
            "testRemoveUnusedSpec(boolean)[1]",
            "testRemoveUnusedSpec(boolean)[2]",
            "testUpdateTableAssignmentSpecConflict()",
            "testUpdateTableOrderThenRevert()",
            "testUpdateTableSchemaServerSideRetry()",
            "testUpdateTableSortOrder()",
            "testUpdateTableSortOrderServerSideRetry()",
            "testUpdateTableSpec()",
            "testUpdateTableSpecConflict()",
            "testUpdateTableSpecServerSideRetry()",
            "testUpdateTableSpecThenRevert()",
            "testUpdateTransaction()",
        ),
    ),
    Limit(
        "Iceberg engines write no rows",
        r"cannot write rows to a Lance table|cannot be created with the update add-snapshot",
        (
            "dropAfterRenameDoesntCorruptTable()",
            "testCatalogWithCustomMetricsReporter()",
            "testConcurrentReplaceTransactionPartitionSpec()",
            "testConcurrentReplaceTransactionPartitionSpec2()",
            "testConcurrentReplaceTransactionPartitionSpecConflict()",
            "testConcurrentReplaceTransactionSchema()",
            "testConcurrentReplaceTransactionSchema2()",
            "testConcurrentReplaceTransactionSchemaConflict()",
            "testConcurrentReplaceTransactionSortOrder()",
            "testConcurrentReplaceTransactionSortOrderConflict()",
            "testConcurrentReplaceTransactions()",
            "testCreateOrReplaceTransactionCreate()",
            "testCreateTransaction()",
            "testReplaceTableKeepsSnapshotLog()",
        ),
    ),
    Limit(
        "`CREATE OR REPLACE`",
        r"a Lance table is not replaced",
        (
            "testCompleteCreateOrReplaceTransactionReplace()",
            "testCompleteReplaceTransaction()",
            "testCreateOrReplaceReplaceTransactionReplace()",
            "testDefaultTablePropertiesReplaceTransaction()",
            "testOverrideTablePropertiesReplaceTransaction()",
            "testReplaceTransaction()",
        ),
    ),
    Limit(
        "format version 2",
        r"format-version cannot be [13]",
        (
            "createTableTransaction(int)[1]",
            "createTableTransaction(int)[3]",
            "replaceTableTransaction(int)[1]",
            "testCreateTableWithDefaultColumnValue()",
        ),
    ),
    Limit(
        "no metadata file",
        r"\"metadataFileLocation\" is null|Invalid metadata file location: null|Expected size: 4 but was: 1",
        (
            "testLoadTableWithMissingMetadataFile(Path)",
            "testMetadataFileLocationsRemovalAfterCommit()",
            "testRegisterExistingTable()",
        ),
    ),
]
NO_VIEWS = Limit("a folder has no views", r"[Ss]erver does not support endpoint:? (GET|POST) \S+/views", ())
"""Fails most tests of its suite."""
NOT_TRIED = {
    "createAndDropEmptyNamespace()",
    "createTableInUniqueLocation()",
    "listNamespacesWithEmptyNamespace()",
    "listTablesInEmptyNamespace()",
    "listViewsInEmptyNamespace()",
    "namespacePropertiesOnEmptyNamespace()",
    "testDropNamespaceWithNestedNamespace()",
    "testListNestedNamespaces()",
    "testNamespaceWithSlash()",
    "testTableNameWithSlash()",
}
"""What the kit tries on no server that it reaches over HTTP."""


def limit_of(test: Test) -> Limit | None:
    suite, name = test
    return NO_VIEWS if suite == VIEWS else next((limit for limit in LIMITS if name in limit.tests), None)


def is_by_a_limit(test: Test, outcome: Outcome) -> bool:
    limit = limit_of(test)
    return limit is not None and re.search(limit.message, outcome.why) is not None


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[Test, Outcome]:
    folder, reports = tmp_path_factory.mktemp("server"), tmp_path_factory.mktemp("reports")
    flags = {"rck.supports-names-with-dot": "true"}
    try:
        with Server(folder / "tables", "--port", "0", cwd=folder) as server:
            return run_kit(server.url, "main", reports, "1.11.0", flags)
    except CannotRun as reason:
        pytest.skip(f"REST Compatibility Kit: {reason}")


def test_it_fails_only_by_limits(outcomes: dict[Test, Outcome]) -> None:
    failed = {test: outcome for test, outcome in outcomes.items() if outcome.kind == "failed"}
    assert {test: outcome.why for test, outcome in failed.items() if not is_by_a_limit(test, outcome)} == {}


def test_what_is_left_out_is_known(outcomes: dict[Test, Outcome]) -> None:
    assert {name for (_, name), outcome in outcomes.items() if outcome.kind == "skipped"} == NOT_TRIED


def test_no_limit_is_one_no_more(outcomes: dict[Test, Outcome]) -> None:
    listed = {name for limit in LIMITS for name in limit.tests}
    assert {
        name for suite, name in outcomes if suite == TABLES and outcomes[suite, name].kind == "failed"
    } == listed


@pytest.mark.parametrize("limit", [*LIMITS, NO_VIEWS], ids=lambda limit: limit.named)
def test_the_readme_names_each(limit: Limit) -> None:
    words = " ".join(README.read_text().split())
    assert limit.named in words
