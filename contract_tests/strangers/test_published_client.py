"""The Lance project's published client for Iceberg REST catalogs, `lance_namespace_impls.IcebergNamespace`, on the
bridge over a folder and before another server. For it the first level of every identifier is the warehouse."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import lance
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeNamespaceRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    ListNamespacesRequest,
    ListTablesRequest,
)
from lance_namespace_impls.iceberg import IcebergNamespace
from lance_namespace_impls.rest_client import (
    InternalException,
    InvalidInputException,
    NamespaceAlreadyExistsException,
    NamespaceNotFoundException,
    TableAlreadyExistsException,
    TableNotFoundException,
)

from contract_tests.worlds.bridge import Client
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.servers import reference_server
from contract_tests.worlds.upstream import bridge_over
from contract_tests.worlds.world import COMPATIBLE
from contract_tests.worlds.writer import rows

DIRECTORY, UPSTREAM = "directory", "upstream"
ONLY_UPSTREAM = pytest.mark.parametrize("place", [UPSTREAM], indirect=True)


@dataclass(frozen=True)
class Place:
    url: str
    root: Path
    """Where the client puts tables unless it is told a location."""


@pytest.fixture(scope="module", params=[DIRECTORY, UPSTREAM])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("published-client")
    with ExitStack() as stack:
        if request.param == DIRECTORY:
            bridge = stack.enter_context(COMPATIBLE.start(folder))
            yield Place(bridge.server.url, folder / "tables")
            return
        (folder / "behind").mkdir()
        try:
            url = stack.enter_context(reference_server(folder / "behind", {"jdbc.strict-mode": "true"}))
        except CannotRun as reason:
            pytest.skip(str(reason))
        allowed = f'allowed_locations = ["{folder}/lake"]\npurge_after = "0s"\n'
        yield Place(stack.enter_context(bridge_over(url, folder / "bridge", allowed)).url, folder / "lake")


@pytest.fixture
def published(place: Place) -> Iterator[IcebergNamespace]:
    with closing(IcebergNamespace(endpoint=place.url, root=str(place.root))) as namespace:
        yield namespace


def made(published: IcebergNamespace, *levels: str) -> list[str]:
    """A namespace with all its parents."""
    for depth in range(1, len(levels) + 1):
        published.create_namespace(CreateNamespaceRequest(id=["main", *levels[:depth]]))
    return ["main", *levels]


def listed(published: IcebergNamespace, namespace: list[str], include_declared: bool | None = None) -> list[str]:
    request = ListTablesRequest(id=namespace, include_declared=include_declared)
    tables: list[str] = published.list_tables(request).tables
    return tables


def location_of(published: IcebergNamespace, table: list[str]) -> str:
    location = published.describe_table(DescribeTableRequest(id=table)).location
    assert location
    return str(location)


class TestNamespaces:
    def test_nested(self, published: IcebergNamespace, name: str) -> None:
        made(published, name, "b", "c")
        children = ListNamespacesRequest(id=["main", name])
        assert published.list_namespaces(children).namespaces == [f"main.{name}.b"]
        grandchildren = ListNamespacesRequest(id=["main", name, "b"])
        assert published.list_namespaces(grandchildren).namespaces == [f"main.{name}.b.c"]
        assert f"main.{name}" in published.list_namespaces(ListNamespacesRequest(id=["main"])).namespaces

    def test_properties(self, published: IcebergNamespace, name: str) -> None:
        created = published.create_namespace(CreateNamespaceRequest(id=["main", name], properties={"owner": "me"}))
        assert created.properties["owner"] == "me"
        described = published.describe_namespace(DescribeNamespaceRequest(id=["main", name]))
        assert described.properties["owner"] == "me"

    def test_twice(self, published: IcebergNamespace, name: str) -> None:
        namespace = made(published, name)
        with pytest.raises(NamespaceAlreadyExistsException):
            published.create_namespace(CreateNamespaceRequest(id=namespace))

    def test_drop(self, published: IcebergNamespace, name: str) -> None:
        namespace = made(published, name)
        published.declare_table(DeclareTableRequest(id=[*namespace, "t"]))
        with pytest.raises(InternalException, match="not empty"):
            published.drop_namespace(DropNamespaceRequest(id=namespace))
        published.deregister_table(DeregisterTableRequest(id=[*namespace, "t"]))
        published.drop_namespace(DropNamespaceRequest(id=namespace))
        with pytest.raises(NamespaceNotFoundException):
            published.describe_namespace(DescribeNamespaceRequest(id=namespace))
        published.drop_namespace(DropNamespaceRequest(id=namespace))


class TestTables:
    def test_from_declared_to_deregistered(self, published: IcebergNamespace, name: str) -> None:
        namespace = made(published, name)
        table = [*namespace, "t"]
        declared = published.declare_table(DeclareTableRequest(id=table, properties={"color": "blue"}))
        assert listed(published, namespace) == ["t"]
        assert listed(published, namespace, include_declared=False) == []
        described = published.describe_table(DescribeTableRequest(id=table, check_declared=True))
        assert described.is_only_declared
        assert described.properties["color"] == "blue"
        location = str(described.location)
        assert location.removeprefix("file://") == str(declared.location).removeprefix("file://")
        lance.write_dataset(rows(3), location)
        assert listed(published, namespace, include_declared=False) == ["t"]
        assert not published.describe_table(DescribeTableRequest(id=table, check_declared=True)).is_only_declared
        assert lance.dataset(location_of(published, table)).count_rows() == 3
        published.deregister_table(DeregisterTableRequest(id=table))
        assert listed(published, namespace) == []
        with pytest.raises(TableNotFoundException):
            location_of(published, table)
        assert lance.dataset(location).count_rows() == 3

    def test_in_a_nested_namespace(self, published: IcebergNamespace, name: str) -> None:
        namespace = made(published, name, "b", "c")
        table = [*namespace, "t"]
        declared = published.declare_table(DeclareTableRequest(id=table))
        lance.write_dataset(rows(2), str(declared.location))
        assert listed(published, namespace) == ["t"]
        assert listed(published, ["main", name, "b"]) == []
        assert lance.dataset(location_of(published, table)).count_rows() == 2

    def test_at_a_chosen_location(self, published: IcebergNamespace, place: Place, name: str) -> None:
        table = [*made(published, name), "t"]
        chosen = str(place.root / f"chosen_{name}")
        assert published.declare_table(DeclareTableRequest(id=table, location=chosen)).location == chosen
        assert location_of(published, table).removeprefix("file://") == chosen

    def test_twice(self, published: IcebergNamespace, name: str) -> None:
        table = [*made(published, name), "t"]
        published.declare_table(DeclareTableRequest(id=table))
        with pytest.raises(TableAlreadyExistsException):
            published.declare_table(DeclareTableRequest(id=table))

    def test_what_is_not_there(self, published: IcebergNamespace, name: str) -> None:
        namespace = made(published, name)
        with pytest.raises(TableNotFoundException):
            published.describe_table(DescribeTableRequest(id=[*namespace, "no"]))
        with pytest.raises(TableNotFoundException):
            published.deregister_table(DeregisterTableRequest(id=[*namespace, "no"]))
        with pytest.raises(NamespaceNotFoundException):
            published.list_tables(ListTablesRequest(id=["main", f"no_{name}"]))
        with pytest.raises(NamespaceNotFoundException):
            published.declare_table(DeclareTableRequest(id=["main", f"no_{name}", "t"]))


class TestNamesThatItEncodesTwice:
    """`a b` in a namespace leaves the client as `a%2520b`."""

    def test_namespaces(self, published: IcebergNamespace, place: Place, name: str) -> None:
        levels = (f"{name} ü", "c%d", "leaf")
        namespace = made(published, *levels)
        assert published.describe_namespace(DescribeNamespaceRequest(id=namespace)).properties is not None
        with Client(place.url) as client:
            assert client.namespaces(levels[:2]) == [levels]
        published.drop_namespace(DropNamespaceRequest(id=namespace))
        with Client(place.url) as client:
            assert client.namespaces(levels[:2]) == []

    def test_parents(self, published: IcebergNamespace, name: str) -> None:
        """These it encodes once more: `a b` leaves it as `a%252520b`."""
        first, second = f"{name} ü", "c%d"
        made(published, first, second, "leaf")
        children = ListNamespacesRequest(id=["main", first])
        assert published.list_namespaces(children).namespaces == [f"main.{first}.{second}"]
        grandchildren = ListNamespacesRequest(id=["main", first, second])
        assert published.list_namespaces(grandchildren).namespaces == [f"main.{first}.{second}.leaf"]

    def test_tables(self, published: IcebergNamespace, place: Place, name: str) -> None:
        levels = (f"{name} ü", "c%d")
        namespace = made(published, *levels)
        table = [*namespace, "t é"]
        location = str(place.root / f"odd_{name}")
        published.declare_table(DeclareTableRequest(id=table, location=location))
        assert listed(published, namespace) == ["t é"]
        with Client(place.url) as client:
            assert client.tables(levels) == ["t é"]
        assert location_of(published, table).removeprefix("file://") == location
        published.deregister_table(DeregisterTableRequest(id=table))
        assert listed(published, namespace) == []


@ONLY_UPSTREAM
def test_an_iceberg_table_beside_is_no_lance_table(published: IcebergNamespace, place: Place, name: str) -> None:
    namespace = made(published, name)
    published.declare_table(DeclareTableRequest(id=[*namespace, "lance"]))
    with Client(place.url) as client:
        client.create_table((name,), "iceberg")
        assert sorted(client.tables((name,))) == ["iceberg", "lance"]
    assert listed(published, namespace) == ["lance"]
    with pytest.raises(InvalidInputException, match="not a Lance table"):
        published.describe_table(DescribeTableRequest(id=[*namespace, "iceberg"]))
    with pytest.raises(InvalidInputException, match="not a Lance table"):
        published.deregister_table(DeregisterTableRequest(id=[*namespace, "iceberg"]))
