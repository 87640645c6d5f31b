"""Namespaces and tables through the class: made, listed, moved, dropped; errors by their codes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
import pytest
import requests

from contract_tests.client.catalogs import ON_DISK, Catalog, rows
from contract_tests.client.proxy import proxied
from contract_tests.worlds.writer import folder_of
from irc_bridge.client import IcebergRestNamespace

pytestmark = ON_DISK


@pytest.fixture
def namespace(catalog: Catalog) -> IcebergRestNamespace:
    return catalog.connect()


def declare(namespace: IcebergRestNamespace, table: list[str], **more: Any) -> ln.DeclareTableResponse:
    return namespace.declare_table(ln.DeclareTableRequest(id=table, **more))


def test_a_namespace_comes_and_goes(namespace: IcebergRestNamespace, name: str) -> None:
    given = {"owner": "me"}
    namespace.create_namespace(ln.CreateNamespaceRequest(id=[name], properties=given))
    namespace.create_namespace(ln.CreateNamespaceRequest(id=[name, "inner"]))
    described = namespace.describe_namespace(ln.DescribeNamespaceRequest(id=[name]))
    assert described.properties and described.properties["owner"] == "me"
    assert namespace.list_namespaces(ln.ListNamespacesRequest(id=[name])).namespaces == ["inner"]
    assert name in namespace.list_namespaces(ln.ListNamespacesRequest()).namespaces
    declare(namespace, [name, "inner", "t"])
    with pytest.raises(ln.errors.NamespaceNotEmptyError):
        namespace.drop_namespace(ln.DropNamespaceRequest(id=[name, "inner"]))
    namespace.drop_table(ln.DropTableRequest(id=[name, "inner", "t"]))
    for levels in ([name, "inner"], [name]):
        namespace.drop_namespace(ln.DropNamespaceRequest(id=levels))
    with pytest.raises(ln.errors.NamespaceNotFoundError):
        namespace.namespace_exists(ln.NamespaceExistsRequest(id=[name]))


def test_modes_of_namespaces(namespace: IcebergRestNamespace, name: str) -> None:
    asked = ln.CreateNamespaceRequest(id=[name], properties={"a": "1"})
    namespace.create_namespace(asked)
    with pytest.raises(ln.errors.NamespaceAlreadyExistsError):
        namespace.create_namespace(asked)
    kept = namespace.create_namespace(ln.CreateNamespaceRequest(id=[name], mode="exist_ok"))
    assert kept.properties and kept.properties["a"] == "1"
    with pytest.raises(ln.errors.UnsupportedOperationError, match="Cascade"):
        namespace.drop_namespace(ln.DropNamespaceRequest(id=[name], behavior="Cascade"))
    namespace.drop_namespace(ln.DropNamespaceRequest(id=[name]))
    namespace.drop_namespace(ln.DropNamespaceRequest(id=[name], mode="Skip"))
    with pytest.raises(ln.errors.NamespaceNotFoundError):
        namespace.drop_namespace(ln.DropNamespaceRequest(id=[name]))


def test_the_root_is_the_server(namespace: IcebergRestNamespace) -> None:
    assert namespace.describe_namespace(ln.DescribeNamespaceRequest()).properties == {}
    assert namespace.list_tables(ln.ListTablesRequest()).tables == []
    with pytest.raises(ln.errors.NamespaceAlreadyExistsError):
        namespace.create_namespace(ln.CreateNamespaceRequest(id=[]))


@pytest.mark.parametrize(
    "ask",
    [
        lambda namespace: namespace.describe_table(ln.DescribeTableRequest(id=["t"])),
        lambda namespace: namespace.table_exists(ln.TableExistsRequest(id=["t"])),
        lambda namespace: namespace.declare_table(ln.DeclareTableRequest(id=["t"])),
        lambda namespace: lance.write_dataset(rows(1), namespace_client=namespace, table_id=["t"]),
    ],
)
def test_a_table_of_one_level_is_told_where_it_is(
    namespace: IcebergRestNamespace, ask: Callable[[Any], object]
) -> None:
    with pytest.raises(ln.errors.InvalidInputError, match=r"\[default, t\]"):
        ask(namespace)


def test_tables_are_listed_page_by_page(catalog: Catalog, table: list[str]) -> None:
    namespace = catalog.connect()
    names = [f"t{each:02}" for each in range(13)]
    for name in names:
        declare(namespace, [table[0], name])
    pages: list[list[str]] = []
    token = None
    while True:
        listed = namespace.list_tables(ln.ListTablesRequest(id=table[:1], limit=5, page_token=token))
        pages.append(listed.tables)
        token = listed.page_token
        if not token:
            break
    assert sorted(name for page in pages for name in page) == names
    assert [len(page) for page in pages] == [5, 5, 3]
    assert sorted(namespace.list_tables(ln.ListTablesRequest(id=table[:1])).tables) == names


def test_a_server_that_ignores_pages_is_cut_here(catalog: Catalog, table: list[str]) -> None:
    """Polaris does unless told otherwise: the size and the token are taken out on the way."""
    for each in range(7):
        declare(catalog.connect(), [table[0], f"t{each}"])

    def unpaged(seen: Any, body: dict[str, Any]) -> dict[str, Any]:
        if "/tables?" in seen.path:
            return requests.get(catalog.url + seen.path.partition("?")[0], timeout=10).json()  # type: ignore[no-any-return]
        return body

    with proxied(catalog.url, rewrite=unpaged) as proxy:
        namespace = Catalog(catalog.name, proxy.url, catalog.knows_lance, catalog.properties).connect()
        first = namespace.list_tables(ln.ListTablesRequest(id=table[:1], limit=4))
        rest = namespace.list_tables(ln.ListTablesRequest(id=table[:1], limit=4, page_token=first.page_token))
    assert (first.tables, rest.tables) == (["t0", "t1", "t2", "t3"], ["t4", "t5", "t6"])
    assert first.page_token and rest.page_token is None


def test_listing_loads_no_table(catalog: Catalog, table: list[str]) -> None:
    for each in range(3):
        declare(catalog.connect(), [table[0], f"t{each}"])
    with proxied(catalog.url) as proxy:
        namespace = Catalog(catalog.name, proxy.url, catalog.knows_lance, catalog.properties).connect()
        assert len(namespace.list_tables(ln.ListTablesRequest(id=table[:1])).tables) == 3
    assert len(proxy.seen) == 2  # the configuration and the list


def test_tables_with_rows_only(namespace: IcebergRestNamespace, table: list[str]) -> None:
    declare(namespace, [table[0], "declared"])
    lance.write_dataset(rows(1), namespace_client=namespace, table_id=table)
    asked = ln.ListTablesRequest(id=table[:1], include_declared=False)
    assert namespace.list_tables(asked).tables == ["t"]
    everywhere = namespace.list_all_tables(ln.ListTablesRequest()).tables
    assert {f"{table[0]}$t", f"{table[0]}$declared"} <= set(everywhere)


def test_errors_of_tables(namespace: IcebergRestNamespace, table: list[str]) -> None:
    with pytest.raises(ln.errors.TableNotFoundError):
        namespace.describe_table(ln.DescribeTableRequest(id=table))
    with pytest.raises(ln.errors.NamespaceNotFoundError):
        declare(namespace, ["nowhere", "t"])
    with pytest.raises(ln.errors.NamespaceNotFoundError):
        namespace.list_tables(ln.ListTablesRequest(id=["nowhere"]))
    declare(namespace, table)
    with pytest.raises(ln.errors.TableAlreadyExistsError):
        declare(namespace, table)
    with pytest.raises(ln.errors.TableVersionNotFoundError):
        namespace.table_exists(ln.TableExistsRequest(id=table, version=1))
    with pytest.raises(ln.errors.UnsupportedOperationError, match="branch"):
        namespace.describe_table_version({"id": table, "version": 1, "branch": "side"})


def test_properties_are_kept(namespace: IcebergRestNamespace, table: list[str]) -> None:
    declared = declare(namespace, table, properties={"team": "a"})
    assert declared.managed_versioning is True
    described = namespace.describe_table(ln.DescribeTableRequest(id=table))
    assert described.properties and described.properties["team"] == "a"
    assert (described.location, described.managed_versioning) == (declared.location, True)


def test_a_table_is_renamed_with_its_versions(catalog: Catalog, table: list[str]) -> None:
    namespace = catalog.connect()
    lance.write_dataset(rows(1), namespace_client=namespace, table_id=table)
    namespace.rename_table(ln.RenameTableRequest(id=table, new_table_name="new"))
    renamed = [table[0], "new"]
    lance.write_dataset(rows(2), namespace_client=namespace, table_id=renamed, mode="append")
    assert catalog.version(renamed) == 2
    with pytest.raises(ln.errors.TableNotFoundError):
        namespace.describe_table(ln.DescribeTableRequest(id=table))


def test_a_dropped_table_leaves_no_file(namespace: IcebergRestNamespace, table: list[str]) -> None:
    location = lance.write_dataset(rows(1), namespace_client=namespace, table_id=table).uri
    gone = namespace.drop_table(ln.DropTableRequest(id=table))
    assert (gone.id, gone.location) == (table, location)
    assert not folder_of(location).exists()
    lance.write_dataset(rows(5), namespace_client=namespace, table_id=table)
    assert lance.dataset(namespace_client=namespace, table_id=table).count_rows() == 1


def test_a_deregistered_table_is_registered_again(catalog: Catalog, table: list[str]) -> None:
    namespace = catalog.connect()
    for mode in ("create", "append"):
        location = lance.write_dataset(rows(1), namespace_client=namespace, table_id=table, mode=mode).uri
    namespace.deregister_table(ln.DeregisterTableRequest(id=table))
    assert folder_of(location).exists()
    again = [table[0], "again"]
    asked = ln.RegisterTableRequest(id=again, location=location, properties={"team": "b"})
    registered = namespace.register_table(asked)
    assert (registered.location, (registered.properties or {})["team"]) == (location, "b")
    described = namespace.describe_table(ln.DescribeTableRequest(id=again))
    assert described.managed_versioning is True
    before = lance.dataset(namespace_client=namespace, table_id=again)
    assert (before.count_rows(), catalog.version(again)) == (2, before.version)
    lance.write_dataset(rows(3), namespace_client=namespace, table_id=again, mode="append")
    assert catalog.version(again) == before.version + 1


def test_what_is_no_table_is_not_registered(
    namespace: IcebergRestNamespace, table: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ln.errors.InvalidInputError, match="no Lance table"):
        namespace.register_table(ln.RegisterTableRequest(id=table, location=str(tmp_path / "nothing")))
    with pytest.raises(ln.errors.TableNotFoundError):
        namespace.describe_table(ln.DescribeTableRequest(id=table))
