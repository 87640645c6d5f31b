"""Identifiers there and back, whatever is in them."""

from itertools import count

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lance.namespace import RestNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    ListTablesRequest,
)

from contract_tests.lance.client import Lance, id_of, ok
from contract_tests.worlds.world import ONE_WORLD, Bridge
from irc_bridge.errors import InvalidInput
from irc_bridge.names import identifier, levels_of

ODD = "ab.,:;-_ +%&=?#@!~'\"()[]{}<>|^`*éß漢😀\\"
NAMES = st.text(st.sampled_from(ODD), min_size=1, max_size=6).filter(lambda name: name.strip(" .") == name)
DELIMITERS = st.sampled_from(["$", ".", "::", "#", "%", "+", "é", " ", "$$"])

_numbers = count()


@given(st.lists(st.text(max_size=3), max_size=4).map(tuple), st.text(min_size=1, max_size=2))
def test_an_identifier_means_its_names_or_is_refused(levels: tuple[str, ...], delimiter: str) -> None:
    try:
        text = identifier(levels, delimiter)
    except InvalidInput:
        # names without the delimiter can be told apart, but for one that is nothing but empty text
        assert any(delimiter in name for name in levels) or "" in levels or len(delimiter) > 1
        return
    assert levels_of(text, delimiter) == levels


@ONE_WORLD
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAMES, DELIMITERS)
def test_odd_names_and_delimiters_on_the_wire(lance_rest: Lance, odd: str, delimiter: str) -> None:
    levels = [f"n{next(_numbers)}{odd}", f"{odd}t"]
    assume(levels_of(delimiter.join(levels), delimiter) == tuple(levels))
    query = {"delimiter": delimiter}
    ok(lance_rest.namespace(levels[:1], "create", {"id": levels[:1]}, **query))
    made = ok(lance_rest.table(levels, "declare", {"id": levels}, **query))
    assert ok(lance_rest.table(levels, "describe", {"id": levels}, **query)) == made
    assert ok(lance_rest.list(levels[:1], "table/list", **query)) == {"tables": levels[1:]}
    assert id_of(levels, {}) and ok(lance_rest.table(levels, "drop", None, **query))["id"] == levels


@ONE_WORLD
@pytest.mark.parametrize("delimiter", ["$", "::", "#"])
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(odd=NAMES)
def test_odd_names_through_lances_own_client(bridge: Bridge, delimiter: str, odd: str) -> None:
    levels = [f"n{next(_numbers)}{odd}", f"{odd}t"]
    assume(levels_of(delimiter.join(levels), delimiter) == tuple(levels))
    rest = RestNamespace(uri=f"{bridge.server.url}/lance", delimiter=delimiter)
    rest.create_namespace(CreateNamespaceRequest(id=levels[:1]))
    made = rest.declare_table(DeclareTableRequest(id=levels))
    assert rest.describe_table(DescribeTableRequest(id=levels)).location == made.location
    assert rest.list_tables(ListTablesRequest(id=levels[:1])).tables == levels[1:]
