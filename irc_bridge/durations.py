"""Durations as people write them: a number with a unit (`90m`, `7d`), or plain seconds."""

import re

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TEXT = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(ms|s|m|h|d)?")
EXPECTED = "a number with a unit (ms, s, m, h or d), such as 90m or 2d, or plain seconds"

Milliseconds = int


def milliseconds(value: object) -> Milliseconds:
    """The milliseconds that `value` stands for. ValueError for everything that is no duration."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"Input should be {EXPECTED}")
    match = _TEXT.fullmatch(str(value).strip().lower())
    if match is None:
        raise ValueError(f"Input should be {EXPECTED}")
    return round(float(match[1]) * _UNITS[match[2] or "s"])
