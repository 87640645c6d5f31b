"""Property tests: names of any letters, and pages of any size."""

import tempfile
from pathlib import Path

import lance
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from contract_tests.directory.opened import Directory, declared, load, names, new_table, open_in
from irc_bridge.catalog.models import PageRequest
from irc_bridge.errors import InvalidInput

UNHURRIED = settings(
    deadline=None,  # each example makes tables on a disk that others use too
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
LETTERS = st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="$/")
NAMES = st.text(LETTERS, min_size=1, max_size=40).filter(lambda name: name not in (".", ".."))
BAD = st.one_of(
    st.sampled_from(
        ["", ".", "..", "a$b", "$", "a/b", "/", "../x", "a\x00b", "\x1f", "a\x7f", "a\x85b", "\ud800"]
    ),
    st.builds("{}{}{}".format, NAMES, st.sampled_from("$/\n\t\x00\x1b"), NAMES),
)


@pytest.mark.parametrize("mode", ["compat", "v1", "v2"])
@UNHURRIED
@given(name=NAMES)
@example(name="a%2Fb")
@example(name="a b?c#d%41")
@example(name="CON")
@example(name="..\\x")
@example(name="~")
@example(name="t.lance")
@example(name=" leading and trailing ")
@example(name="ﬀ")
def test_any_name_that_is_taken_works(mode: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        catalog = open_in(mode, Path(folder))
        info = catalog.create_table((name,), new_table(name=name))
        catalog.create_table((name + "!",), declared())
        assert names(catalog) == sorted([name, name + "!"])
        assert lance.dataset(info.location).metadata["name"] == name
        assert load(catalog, (name,)).properties == info.properties
        catalog.drop_table((name + "!",))
        catalog.deregister_table((name,))
        assert names(catalog) == []
        assert catalog.register_table((name,), info.location).location == info.location
        catalog.drop_table((name,))
        assert {path.name for path in Path(folder).iterdir()} <= {"__manifest"}


@pytest.mark.parametrize("mode", ["compat", "v1", "v2"])
@UNHURRIED
@given(bad=BAD)
def test_nothing_of_a_refused_name_reaches_storage(mode: str, bad: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        catalog = open_in(mode, Path(folder))
        for new in (new_table(), declared()):
            with pytest.raises(InvalidInput, match="Not a name for a table"):
                catalog.create_table((bad,), new)
        with pytest.raises(InvalidInput):
            catalog.register_table((bad,), f"file://{folder}/x")
        assert not catalog.table_exists((bad,))
        assert not catalog.namespace_exists((bad,))
        if mode != "v1":
            with pytest.raises(InvalidInput, match="Not a name for a namespace"):
                catalog.create_namespace((bad,), {})
        assert list(Path(folder).iterdir()) == []


@pytest.mark.parametrize("mode", ["compat", "v1", "v2"])
def test_a_name_that_is_too_long_for_a_folder(mode: str, root: Path) -> None:
    catalog = open_in(mode, root)
    for name in ("x" * 247, "ü" * 124):
        with pytest.raises(InvalidInput, match="too long"):
            catalog.create_table((name,), new_table())
    catalog.create_table(("x" * 246,), new_table())
    assert names(catalog) == ["x" * 246]


def _paged(catalog: Directory, size: int, tables: bool, namespace: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    while True:
        request = PageRequest(found[-1] if found else None, size)
        page = catalog.list_tables(namespace, request) if tables else catalog.list_namespaces(namespace, request)
        assert len(page.items) <= size
        assert len(page.items) == size or not page.more
        found += page.items
        if not page.more:
            return found


@UNHURRIED
@given(
    tables=st.sets(NAMES, max_size=4),
    folders=st.sets(NAMES, max_size=4),
    spaces=st.sets(NAMES, max_size=3),
    below=st.sets(NAMES, max_size=2),
    size=st.integers(1, 5),
)
def test_pages_together_are_the_list_in_the_order_of_code_points(
    tables: set[str], folders: set[str], spaces: set[str], below: set[str], size: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        compat = open_in("compat", Path(folder))
        v1 = open_in("v1", Path(folder))
        tables = tables - spaces
        folders = folders - spaces - tables
        for space in spaces:
            compat.create_namespace((space,), {})
            for name in below:
                compat.create_namespace((space, name), {})
                compat.create_table((space, name, "deep"), declared())
        for name in tables:
            compat.create_table((name,), declared())
        for name in folders:
            v1.create_table((name,), declared())
        assert _paged(compat, size, True, ()) == names(compat) == sorted(tables | folders)
        assert _paged(compat, size, False, ()) == sorted(spaces)
        for space in spaces:
            assert _paged(compat, size, False, (space,)) == sorted(below)
        assert _paged(v1, size, True, ()) == names(v1)


def test_a_page_after_a_name_that_is_gone_or_never_was(nested: Directory) -> None:
    for name in "abcd":
        nested.create_table((name,), declared())
    nested.drop_table(("b",))
    assert nested.list_tables((), PageRequest("b", 1)).items == ("c",)
    assert nested.list_tables((), PageRequest("bb", 2)).items == ("c", "d")
    assert nested.list_tables((), PageRequest("d", 2)).items == ()
    assert nested.list_tables((), PageRequest("c", 1)).more is False
