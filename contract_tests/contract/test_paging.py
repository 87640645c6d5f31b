import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract_tests.contract.tables import SEARCH
from contract_tests.worlds.bridge import Client, assert_error, assert_ok, namespace_path, table_path
from contract_tests.worlds.world import NESTED_WORLDS, ONE_WORLD, Bridge

Place = tuple[str, ...]
PURGE = {"purgeRequested": "true"}
_counter = itertools.count()


def pages(client: Client, path: str, key: str, **query: str) -> Iterator[list[Any]]:
    token: str | None = ""
    while token is not None:
        listed = assert_ok(client.get(path, params={**query, "pageToken": token}))
        token = listed.get("next-page-token")
        assert token != "", "an empty token starts from the beginning"
        yield [entry["name"] if key == "identifiers" else entry[-1] for entry in listed[key]]


@pytest.fixture
def many(client: Client, name: str) -> Place:
    client.create_namespace(name)
    for each in ("d", "a", "c", "e", "b"):
        client.declare_table((name,), each)
        client.create_namespace(name, f"n{each}")
    return (name,)


LISTS = pytest.mark.parametrize(
    ("kind", "everything"),
    [("tables", ["a", "b", "c", "d", "e"]), ("namespaces", ["na", "nb", "nc", "nd", "ne"])],
)


def list_of(kind: str, parent: Place) -> tuple[str, str, dict[str, str]]:
    if kind == "tables":
        return f"{namespace_path(parent)}/tables", "identifiers", {}
    return "namespaces", "namespaces", {"parent": "\x1f".join(parent)}


@ONE_WORLD
class TestPages:
    @LISTS
    @pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 1000])
    def test_pages_make_the_whole(
        self, client: Client, many: Place, kind: str, everything: list[str], size: int
    ) -> None:
        path, key, query = list_of(kind, many)
        seen = list(pages(client, path, key, **query, pageSize=str(size)))
        assert list(itertools.chain(*seen)) == everything
        assert all(len(page) == size for page in seen[:-1])
        assert len(seen) == -(-5 // size)

    @LISTS
    def test_an_empty_token_needs_no_size(
        self, client: Client, many: Place, kind: str, everything: list[str]
    ) -> None:
        path, key, query = list_of(kind, many)
        assert list(itertools.chain(*pages(client, path, key, **query))) == everything

    @LISTS
    @pytest.mark.parametrize("more", [{}, {"pageSize": "2"}])
    def test_without_a_token_everything_comes_at_once(
        self, client: Client, many: Place, kind: str, everything: list[str], more: dict[str, str]
    ) -> None:
        path, key, query = list_of(kind, many)
        listed = assert_ok(client.get(path, params={**query, **more}))
        assert len(listed[key]) == len(everything)
        assert listed.get("next-page-token") is None

    @LISTS
    @pytest.mark.parametrize("size", ["0", "-1", "abc", "1.5", "٣", "", "1e3", "99999999999999999999999"])
    def test_sizes_that_are_none(
        self, client: Client, many: Place, kind: str, everything: list[str], size: str
    ) -> None:
        path, _, query = list_of(kind, many)
        response = client.get(path, params={**query, "pageToken": "", "pageSize": size})
        if size in ("", "99999999999999999999999"):
            assert response.status_code in (200, 400)
        else:
            assert_error(response, 400, "BadRequestException", names="pageSize")

    @LISTS
    @pytest.mark.parametrize("token", ["garbage", "!!!", "é", "%00", "a" * 5000, "'", "\x00"])
    def test_tokens_that_are_none(
        self, client: Client, many: Place, kind: str, everything: list[str], token: str
    ) -> None:
        path, _, query = list_of(kind, many)
        response = client.get(path, params={**query, "pageToken": token})
        assert_error(response, 400, "BadRequestException", names="pageToken")

    def test_a_token_outlives_the_name_it_stands_on(self, client: Client, many: Place) -> None:
        path, _, _ = list_of("tables", many)
        first = assert_ok(client.get(path, params={"pageToken": "", "pageSize": "2"}))
        client.delete(table_path(many, "b"), params=PURGE)
        client.delete(table_path(many, "c"), params=PURGE)
        query = {"pageToken": first["next-page-token"], "pageSize": "2"}
        second = assert_ok(client.get(path, params=query))
        assert [entry["name"] for entry in second["identifiers"]] == ["d", "e"]
        assert second.get("next-page-token") is None

    def test_an_empty_list_is_one_page(self, client: Client, name: str) -> None:
        client.create_namespace(name)
        assert list(pages(client, f"{namespace_path((name,))}/tables", "identifiers")) == [[]]
        assert list(pages(client, "namespaces", "namespaces", parent=name)) == [[]]


@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_root_namespace_stands_in_the_pages_once(bridge: Bridge, size: int) -> None:
    client = bridge.client
    if "child namespaces" not in bridge.world.cannot:
        for each in ("aaa", "zzz"):
            client.create_namespace(f"{each}{next(_counter)}")
    paged = list(itertools.chain(*pages(client, "namespaces", "namespaces", pageSize=str(size))))
    assert paged == sorted(set(paged))
    assert paged.count("default") == 1
    assert sorted(levels[0] for levels in client.namespaces()) == paged


def test_pages_of_the_root(client: Client, name: str) -> None:
    mine = [f"{name}_{each}" for each in "abc"]
    for each in mine:
        client.declare_table(("default",), each)
    paged = list(itertools.chain(*pages(client, "namespaces/default/tables", "identifiers", pageSize="2")))
    assert [each for each in paged if each in mine] == mine
    assert len(paged) == len(set(paged))


NAMES = st.text("abAB%+ é", min_size=1, max_size=4)
CHANGES = st.lists(st.tuples(st.booleans(), NAMES), max_size=6)


def walk_while_others_change(
    client: Client,
    list_of_pages: Iterator[list[Any]],
    changes: list[tuple[bool, str]],
    create: Callable[[str], object],
    drop: Callable[[str], object],
    start: set[str],
) -> None:
    """What was there all the time is seen once; nothing is seen twice."""
    present, touched, seen = set(start), set(), []
    for page in list_of_pages:
        seen += page
        for creates, name in changes[:2]:
            if creates != (name in present):
                (create if creates else drop)(name)
                (present.add if creates else present.remove)(name)
                touched.add(name)
        changes = changes[2:]
    assert len(seen) == len(set(seen))
    assert start - touched <= set(seen) <= start | touched
    assert seen == sorted(seen)


@NESTED_WORLDS
@SEARCH
@given(start=st.sets(NAMES, min_size=1, max_size=7), changes=CHANGES, size=st.integers(1, 3))
def test_tables_paged_while_others_create_and_drop(
    client: Client, start: set[str], changes: list[tuple[bool, str]], size: int
) -> None:
    place = client.create_namespace(f"paging{next(_counter)}")
    for each in start:
        client.declare_table(place, each)
    walk_while_others_change(
        client,
        pages(client, f"{namespace_path(place)}/tables", "identifiers", pageSize=str(size)),
        changes,
        lambda name: client.declare_table(place, name),
        lambda name: client.delete(table_path(place, name)),
        start,
    )


@NESTED_WORLDS
@SEARCH
@given(start=st.sets(NAMES, min_size=1, max_size=7), changes=CHANGES, size=st.integers(1, 3))
def test_namespaces_paged_while_others_create_and_drop(
    client: Client, start: set[str], changes: list[tuple[bool, str]], size: int
) -> None:
    parent = client.create_namespace(f"paging{next(_counter)}")
    for each in start:
        client.create_namespace(*parent, each)
    walk_while_others_change(
        client,
        pages(client, "namespaces", "namespaces", parent=parent[0], pageSize=str(size)),
        changes,
        lambda name: client.create_namespace(*parent, name),
        lambda name: client.delete(namespace_path((*parent, name))),
        start,
    )
