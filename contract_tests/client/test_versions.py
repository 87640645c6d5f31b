"""The version and tag operations, asked for as LanceDB, Ray and others do."""

from typing import Any

import lance
import lance_namespace as ln
import pytest

from contract_tests.client.catalogs import ON_DISK, Catalog, rows
from contract_tests.directory.staging import stage
from contract_tests.worlds.bridge import version_numbers
from contract_tests.worlds.writer import folder_of
from irc_bridge.client import IcebergRestNamespace

pytestmark = ON_DISK
COUNT = 5


@pytest.fixture
def namespace(catalog: Catalog, table: list[str]) -> IcebergRestNamespace:
    """With five versions of the table."""
    namespace = catalog.connect()
    for each in range(COUNT):
        mode = "append" if each else "create"
        lance.write_dataset(rows(each), namespace_client=namespace, table_id=table, mode=mode)
    return namespace


def listed(namespace: IcebergRestNamespace, table: list[str], **more: Any) -> ln.ListTableVersionsResponse:
    return namespace.list_table_versions(ln.ListTableVersionsRequest(id=table, **more))


def numbers(response: ln.ListTableVersionsResponse) -> list[int]:
    return [each.version for each in response.versions]


def test_versions_in_both_orders(namespace: IcebergRestNamespace, table: list[str]) -> None:
    assert numbers(listed(namespace, table)) == [1, 2, 3, 4, 5]
    assert numbers(listed(namespace, table, descending=True)) == [5, 4, 3, 2, 1]
    assert numbers(listed(namespace, table, descending=True, limit=1)) == [5]


@pytest.mark.parametrize("descending", [False, True])
def test_versions_page_by_page(namespace: IcebergRestNamespace, table: list[str], descending: bool) -> None:
    found: list[int] = []
    token = None
    for _ in range(COUNT):
        page = listed(namespace, table, descending=descending, limit=2, page_token=token)
        found += numbers(page)
        token = page.page_token
        if token is None:
            break
    assert found == ([5, 4, 3, 2, 1] if descending else [1, 2, 3, 4, 5])


def test_a_version_says_where_its_manifest_is(namespace: IcebergRestNamespace, table: list[str]) -> None:
    location = namespace.describe_table(ln.DescribeTableRequest(id=table)).location or ""
    found = namespace.describe_table_version({"id": table, "version": 2}).version
    manifest = folder_of(location) / "_versions" / f"{2**64 - 1 - 2}.manifest"
    assert f"/{found.manifest_path}" == str(manifest)
    assert found.manifest_size == manifest.stat().st_size
    assert namespace.describe_table_version({"id": table}).version.version == COUNT
    for missing in (COUNT + 1, 99):
        with pytest.raises(ln.errors.TableVersionNotFoundError):
            namespace.describe_table_version({"id": table, "version": missing})


def test_a_table_without_versions_has_none(catalog: Catalog, table: list[str]) -> None:
    namespace = catalog.connect()
    namespace.declare_table(ln.DeclareTableRequest(id=table))
    assert numbers(listed(namespace, table)) == []
    with pytest.raises(ln.errors.TableVersionNotFoundError):
        namespace.describe_table_version({"id": table})


def test_old_versions_are_deleted(catalog: Catalog, namespace: IcebergRestNamespace, table: list[str]) -> None:
    ranges = [{"start_version": 0, "end_version": 3}, {"start_version": 4, "end_version": 5}]
    gone = namespace.batch_delete_table_versions({"id": table, "ranges": ranges})
    assert gone.deleted_count == 3
    assert numbers(listed(namespace, table)) == [3, 5]
    assert version_numbers(catalog.metadata(table).snapshots) == [3, 5]
    again = namespace.batch_delete_table_versions({"id": table, "ranges": ranges})
    assert again.deleted_count == 0
    lance.write_dataset(rows(9), namespace_client=namespace, table_id=table, mode="append")
    assert catalog.version(table) == 6


def test_versions_that_are_needed_stay(namespace: IcebergRestNamespace, table: list[str]) -> None:
    namespace.create_table_tag(ln.CreateTableTagRequest(id=table, tag="kept", version=2))
    for start, end, why in ((4, -1, "main"), (1, 3, "kept")):
        with pytest.raises(ln.errors.InvalidInputError, match=f"{why} is on it"):
            namespace.batch_delete_table_versions(
                {"id": table, "ranges": [{"start_version": start, "end_version": end}]}
            )
    assert numbers(listed(namespace, table)) == [1, 2, 3, 4, 5]


def test_what_lance_cleaned_up_is_no_longer_listed(namespace: IcebergRestNamespace, table: list[str]) -> None:
    """A plain server goes on telling of its snapshot."""
    location = namespace.describe_table(ln.DescribeTableRequest(id=table)).location or ""
    (folder_of(location) / "_versions" / f"{2**64 - 1 - 1}.manifest").unlink()
    assert numbers(listed(namespace, table)) == [2, 3, 4, 5]


def test_tags(catalog: Catalog, namespace: IcebergRestNamespace, table: list[str]) -> None:
    namespace.create_table_tag(ln.CreateTableTagRequest(id=table, tag="a", version=2))
    namespace.create_table_tag(ln.CreateTableTagRequest(id=table, tag="b", version=3))
    namespace.update_table_tag(ln.UpdateTableTagRequest(id=table, tag="a", version=4))
    tags = namespace.list_table_tags(ln.ListTableTagsRequest(id=table)).tags
    assert {name: each.version for name, each in tags.items()} == {"a": 4, "b": 3}
    assert all(each.manifest_size > 0 for each in tags.values())
    refs = catalog.metadata(table).refs
    assert {name: ref.snapshot_id for name, ref in refs.items()} == {"a": 4, "b": 3, "main": 5}
    namespace.delete_table_tag(ln.DeleteTableTagRequest(id=table, tag="b"))
    asked = ln.GetTableTagVersionRequest(id=table, tag="a")
    assert namespace.get_table_tag_version(asked).version == 4
    assert namespace.describe_table(ln.DescribeTableRequest(id=table, tag="a")).version == 4


def test_errors_of_tags(namespace: IcebergRestNamespace, table: list[str]) -> None:
    namespace.create_table_tag(ln.CreateTableTagRequest(id=table, tag="a", version=1))
    with pytest.raises(ln.errors.TableTagAlreadyExistsError):
        namespace.create_table_tag(ln.CreateTableTagRequest(id=table, tag="a", version=2))
    for ask in (namespace.update_table_tag, namespace.delete_table_tag, namespace.get_table_tag_version):
        with pytest.raises(ln.errors.TableTagNotFoundError):
            ask({"id": table, "tag": "none", "version": 1})
    with pytest.raises(ln.errors.TableVersionNotFoundError):
        namespace.create_table_tag(ln.CreateTableTagRequest(id=table, tag="late", version=99))
    with pytest.raises(ln.errors.InvalidInputError, match="main"):
        namespace.create_table_tag(ln.CreateTableTagRequest(id=table, tag="main", version=1))


def entry(table: list[str], location: str, *ids: int) -> dict[str, Any]:
    staged = stage(location, *ids)
    return {"id": table, "version": staged.version, "manifest_path": staged.manifest_path, "e_tag": staged.e_tag}


def test_a_batch_of_one(catalog: Catalog, namespace: IcebergRestNamespace, table: list[str]) -> None:
    location = namespace.describe_table(ln.DescribeTableRequest(id=table)).location or ""
    made = namespace.batch_create_table_versions({"entries": [entry(table, location, 7)]})
    assert ([each.version for each in made.versions], catalog.version(table)) == ([6], 6)


@pytest.mark.parametrize("stale", [False, True])
def test_a_batch_is_all_or_nothing(
    catalog: Catalog, namespace: IcebergRestNamespace, table: list[str], stale: bool
) -> None:
    """Where the server commits to several tables at once; the bridge over a folder says that it does not."""
    other = [table[0], "other"]
    there = lance.write_dataset(rows(1), namespace_client=namespace, table_id=other).uri
    location = namespace.describe_table(ln.DescribeTableRequest(id=table)).location or ""
    entries = [entry(other, there, 2), entry(table, location, 7)]
    if stale:
        lance.write_dataset(rows(8), namespace_client=catalog.connect(), table_id=table, mode="append")
    expected = (1, COUNT + stale)
    if catalog.knows_lance:
        with pytest.raises(ln.errors.UnsupportedOperationError, match="one table at a time"):
            namespace.batch_create_table_versions({"entries": entries})
    elif stale:
        with pytest.raises(ln.errors.ConcurrentModificationError):
            namespace.batch_create_table_versions({"entries": entries})
    else:
        made = namespace.batch_create_table_versions({"entries": entries})
        assert [each.version for each in made.versions] == [2, COUNT + 1]
        expected = (2, COUNT + 1)
        again = namespace.batch_create_table_versions({"entries": entries})
        assert [each.version for each in again.versions] == [2, COUNT + 1]
    assert (catalog.version(other), catalog.version(table)) == expected
    assert lance.dataset(namespace_client=catalog.connect(), table_id=other).version == expected[0]
