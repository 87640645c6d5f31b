"""Identifiers of seed 000 in list and string style."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from irc_bridge.errors import InvalidInput
from irc_bridge.names import identifier, levels_of

NAMES = st.text(min_size=1, max_size=8)
DELIMITERS = st.text(min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("levels", "delimiter", "text"),
    [
        (("cat2", "cat5"), "$", "cat2$cat5"),
        (("cat2", "cat5", "t1"), "$", "cat2$cat5$t1"),
        (("cat4", "t3"), "#", "cat4#t3"),
        (("t1",), "$", "t1"),
        (("a$b", "c"), "::", "a$b::c"),
        ((), "$", ""),
    ],
)
def test_the_examples_of_the_seed(levels: tuple[str, ...], delimiter: str, text: str) -> None:
    assert identifier(levels, delimiter) == text
    assert levels_of(text, delimiter) == levels


@pytest.mark.parametrize("delimiter", ["$", "#", "::"])
def test_the_root_namespace_is_empty(delimiter: str) -> None:
    assert [levels_of(root, delimiter) for root in (None, "", delimiter)] == [(), (), ()]
    assert levels_of("a$b") == ("a", "b")
    assert identifier(("a", "b")) == "a$b"


@given(levels=st.lists(NAMES, max_size=4).map(tuple), delimiter=DELIMITERS)
@example(levels=("a-", "b"), delimiter="--")
@example(levels=("-", "-"), delimiter="-")
def test_both_styles_name_the_same_object(levels: tuple[str, ...], delimiter: str) -> None:
    try:
        assert levels_of(identifier(levels, delimiter), delimiter) == levels
    except InvalidInput:
        # a delimiter of several letters may begin at the end of a name
        assert any(letter in name for letter in delimiter for name in levels)


@given(levels=st.lists(NAMES, min_size=1, max_size=3), delimiter=DELIMITERS, where=st.integers(0, 2))
def test_a_name_with_the_delimiter_is_refused(levels: list[str], delimiter: str, where: int) -> None:
    where %= len(levels)
    levels[where] = bad = f"x{delimiter}y"
    with pytest.raises(InvalidInput) as refused:
        identifier(tuple(levels[where:]), delimiter)
    assert repr(bad) in refused.value.message
    assert repr(delimiter) in refused.value.message


@pytest.mark.parametrize(("levels", "delimiter"), [(("a-", "b"), "--"), (("",), "$"), (("", ""), "$")])
def test_names_that_would_come_back_as_others_are_refused(levels: tuple[str, ...], delimiter: str) -> None:
    with pytest.raises(InvalidInput, match="told apart"):
        identifier(levels, delimiter)


def test_an_empty_delimiter_is_refused() -> None:
    for call in (lambda: levels_of("ab", ""), lambda: identifier(("a", "b"), "")):
        with pytest.raises(InvalidInput, match="delimiter"):
            call()
