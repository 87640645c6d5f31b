"""Stock pylance writes through the class; pyiceberg sees the right version after each change."""

from collections.abc import Callable
from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest

from contract_tests.client.catalogs import ON_DISK, ONLY_PLAIN, Catalog, rows


class Writer:
    """Changes one table and looks at it as others do."""

    def __init__(self, catalog: Catalog, table: list[str]) -> None:
        self.catalog = catalog
        self.table = table
        self.namespace = catalog.connect()

    def write(self, mode: str, *ids: int) -> Any:
        return lance.write_dataset(rows(*ids), namespace_client=self.namespace, table_id=self.table, mode=mode)

    def open(self, version: int | None = None) -> Any:
        """As a process that was not there before."""
        return lance.dataset(namespace_client=self.catalog.connect(), table_id=self.table, version=version)

    def ids(self, version: int | None = None) -> list[int]:
        return sorted(self.open(version).to_table(columns=["id"])["id"].to_pylist())


@pytest.fixture
def writer(catalog: Catalog, table: list[str]) -> Writer:
    return Writer(catalog, table)


CHANGES: dict[str, tuple[Callable[[Any], object], list[int]]] = {
    "delete": (lambda dataset: dataset.delete("id = 2"), [0, 1, 3]),
    "update": (lambda dataset: dataset.update({"id": "id + 10"}, where="id = 3"), [0, 1, 2, 13]),
    "merge_insert": (
        lambda dataset: (
            dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(3, 7))
        ),
        [0, 1, 2, 3, 7],
    ),
    "add_columns": (lambda dataset: dataset.add_columns({"twice": "id * 2"}), [0, 1, 2, 3]),
    "index": (lambda dataset: dataset.create_scalar_index("id", "BTREE"), [0, 1, 2, 3]),
    "insert": (lambda dataset: dataset.insert(rows(9)), [0, 1, 2, 3, 9]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_the_next_version(writer: Writer, change: str) -> None:
    apply, expected = CHANGES[change]
    writer.write("create", 0, 1)
    assert writer.catalog.version(writer.table) == 1
    dataset = writer.write("append", 2, 3)
    assert writer.catalog.version(writer.table) == 2
    apply(dataset)
    assert writer.catalog.version(writer.table) == 3
    assert writer.ids() == expected
    assert writer.ids(2) == [0, 1, 2, 3]
    assert writer.open().version == 3


def test_overwrite_keeps_the_older_versions(writer: Writer) -> None:
    writer.write("create", 0, 1)
    writer.write("overwrite", 5)
    assert writer.catalog.version(writer.table) == 2
    assert (writer.ids(1), writer.ids()) == ([0, 1], [5])


def test_compaction(writer: Writer) -> None:
    dataset = writer.write("create", 0)
    for each in range(1, 5):
        dataset = writer.write("append", each)
    dataset.optimize.compact_files()
    version = writer.catalog.version(writer.table)
    assert version is not None and version > 5
    found = writer.open()
    assert (found.version, len(found.get_fragments())) == (version, 1)
    assert writer.ids() == [0, 1, 2, 3, 4]


def test_a_write_without_change_of_rows_says_nothing_on_standard_error(
    writer: Writer, capfd: pytest.CaptureFixture[str]
) -> None:
    """pylance warns there when an answer names no final manifest."""
    writer.write("create", 0)
    writer.write("append", 1)
    assert capfd.readouterr().err == ""


@ON_DISK
def test_files_are_the_same_as_without_a_catalog(writer: Writer) -> None:
    location = writer.write("create", 0).uri
    writer.write("append", 1)
    alone = lance.dataset(location)
    assert (alone.version, alone.count_rows()) == (2, 2)
    assert [each["version"] for each in alone.versions()] == [1, 2]


@ON_DISK
def test_versions_that_storage_decides_about_go_past_the_catalog(catalog: Catalog, table: list[str]) -> None:
    namespace = catalog.connect(managed_by="storage")
    for mode in ("create", "append"):
        lance.write_dataset(rows(1), namespace_client=namespace, table_id=table, mode=mode)
    described = namespace.describe_table(ln.DescribeTableRequest(id=table, load_detailed_metadata=True))
    assert (described.managed_versioning, described.version) == (False, 2)
    assert described.properties and described.properties.get("managed_by", "storage") == "storage"
    assert lance.dataset(namespace_client=namespace, table_id=table).count_rows() == 2


@ON_DISK
def test_a_table_whose_writer_died_before_the_first_version_is_overwritten(writer: Writer) -> None:
    writer.namespace.declare_table(ln.DeclareTableRequest(id=writer.table))
    declared = ln.DescribeTableRequest(id=writer.table, check_declared=True)
    assert writer.namespace.describe_table(declared).is_only_declared is True
    writer.write("overwrite", 4)
    assert writer.namespace.describe_table(declared).is_only_declared is False
    assert (writer.catalog.version(writer.table), writer.ids()) == (1, [4])


@ON_DISK
def test_names_with_characters_of_their_own(catalog: Catalog, name: str) -> None:
    namespace = catalog.connect()
    levels = [f"a b {name}", "c+d"]
    for depth in (1, 2):
        namespace.create_namespace(ln.CreateNamespaceRequest(id=levels[:depth]))
    table = [*levels, "t ü"]
    for mode in ("create", "append"):
        lance.write_dataset(rows(1), namespace_client=namespace, table_id=table, mode=mode)
    assert catalog.version(table) == 2
    assert lance.dataset(namespace_client=namespace, table_id=table).count_rows() == 2


def test_columns_added_are_read_by_the_next_process(writer: Writer) -> None:
    writer.write("create", 1, 2).add_columns(pa.field("note", pa.string()))
    assert writer.open().schema.names == ["id", "name", "note"]


@ONLY_PLAIN
def test_manifests_that_are_named_by_their_version(writer: Writer) -> None:
    """As Lance did before it counted backwards."""
    lance.write_dataset(
        rows(0), namespace_client=writer.namespace, table_id=writer.table, enable_v2_manifest_paths=False
    )
    writer.write("append", 1).delete("id = 0")
    listed = writer.namespace.list_table_versions(ln.ListTableVersionsRequest(id=writer.table))
    names = [each.manifest_path.rpartition("/")[2] for each in listed.versions]
    assert names == ["1.manifest", "2.manifest", "3.manifest"]
    assert (writer.ids(), writer.catalog.version(writer.table)) == ([1], 3)
