"""Which predicates Lance is given. Its SQL parser calls itself for each term and each bracket, and its functions
include some that fill the memory from a few characters: `range(1, 1000000000)`.

Only the words and brackets are looked at here. Whether they make an expression, Lance says."""

import re
from collections.abc import Iterator

from irc_bridge.errors import InvalidInput

LENGTH = 256 * 1024
OPERATORS = 1000
BRACKETS = 32
CALLS = 8
"""How deep functions may stand in one another: a coalesce in a coalesce makes Lance's plan four times as large."""

FUNCTIONS = frozenset(
    [
        *("ascii", "bit_length", "btrim", "char_length", "character_length", "concat", "concat_ws", "contains"),
        *("contains_tokens", "ends_with", "initcap", "instr", "left", "length", "lower", "ltrim", "octet_length"),
        *("position", "regexp_like", "regexp_match", "reverse", "right", "rtrim", "split_part", "starts_with"),
        *("strpos", "upper"),
        *("abs", "cbrt", "exp", "greatest", "isnan", "iszero", "least", "ln", "log", "log10", "log2", "power"),
        *("round", "signum", "sqrt", "trunc"),
        *("coalesce", "ifnull", "nullif", "nvl"),
        *("date_part", "date_trunc", "now", "to_date", "to_timestamp"),
        *("array_contains", "array_has", "array_has_all", "array_has_any", "array_length", "cardinality"),
        *("get_field", "list_contains", "list_has"),
        *("json_array_contains", "json_array_length", "json_exists", "json_extract", "json_get", "json_get_bool"),
        *("json_get_float", "json_get_int", "json_get_string"),
    ]
)
"""The result of each is about as long as its arguments."""
_CASTS = frozenset(["array", "bigint", "cast", "decimal", "numeric", "safe_cast", "timestamp", "try_cast"])
_WORD_OPERATORS = frozenset(["and", "between", "ilike", "in", "is", "like", "not", "or"])
_BRACKETS = {")": "(", "]": "["}

# a list of texts or numbers is one token: it may have many thousand members
_TOKEN = re.compile(
    r"""
      (?P<space> \s+)
    | (?P<comment> --|/\*)
    | (?P<bytes> [xX]'[^']*')
    | (?P<texts> '(?:[^']|'')*+' (?:\s*,\s* '(?:[^']|'')*+')*+ | "(?:[^"]|"")*+")
    | (?P<quoted> `(?:[^`]|``)*+`)
    | (?P<numbers> \d[\w.]*+ (?:\s*,\s* -?\d[\w.]*+)*+)
    | (?P<word> [^\W\d]\w*)
    | (?P<bracket> [()\[\]])
    | (?P<mark> [,.])
    | (?P<operator> ::|\|\||[<>=!]+|[-+*/%])
    """,
    re.VERBOSE,
)


def require_cheap(predicate: str) -> None:
    """InvalidInput for a predicate that could take much memory or time, or that is no single expression."""
    if len(predicate) > LENGTH:
        raise _refused(f"it has {len(predicate)} characters, and may have {LENGTH}. Use several requests")
    operators, word, opened = 0, "", list[tuple[str, bool]]()
    for kind, token in _tokens(predicate):
        if kind == "bracket":
            _bracket(token, word, opened)
        if kind == "operator" or (kind == "word" and token.lower() in _WORD_OPERATORS):
            operators += 1
        if operators > OPERATORS:
            raise _refused(f"it has more than {OPERATORS} operators. Write x IN (1, 2) for x = 1 OR x = 2")
        word = token.strip("`\"'").lower() if kind in ("word", "quoted", "texts") else ""
    if opened:
        raise _refused(f"a {opened[-1][0]} in it is not closed")


def _tokens(predicate: str) -> Iterator[tuple[str, str]]:
    position, before = 0, None
    while position < len(predicate):
        match = _TOKEN.match(predicate, position)
        if match is None:
            raise _refused(f"{predicate[position]!r} at character {position + 1} is not a part of an expression")
        kind = str(match.lastgroup)
        if kind == "comment":
            raise _refused("it holds a comment")
        if kind == "texts" and before == "word":
            raise _refused(f"{match[0][:40]} follows a word without a space")
        if kind != "space":
            yield kind, match[0]
        position, before = match.end(), kind


def _bracket(token: str, word: str, opened: list[tuple[str, bool]]) -> None:
    if token in _BRACKETS:
        if not opened or opened[-1][0] != _BRACKETS[token]:
            raise _refused(f"a {token} in it closes nothing")
        opened.pop()
        return
    is_call = token == "(" and word != "" and word not in _WORD_OPERATORS
    if is_call and word not in FUNCTIONS | _CASTS:
        raise _refused(f"the function {word[:40]} is not one of {', '.join(sorted(FUNCTIONS))}")
    opened.append((token, is_call))
    if len(opened) > BRACKETS:
        raise _refused(f"its brackets are more than {BRACKETS} deep")
    if sum(call for _, call in opened) > CALLS:
        raise _refused(f"its functions are more than {CALLS} deep in one another")


def _refused(why: str) -> InvalidInput:
    return InvalidInput(f"predicate: {why}")
